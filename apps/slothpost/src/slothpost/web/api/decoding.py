"""Reads what a request says, strictly: unknown fields are refused, and the error names the field."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from slothpost.errors import InvalidField
from tickler.web import Refused

JSON = "application/json"

T = TypeVar("T")

_PLACE = re.compile(r"(?P<reason>.*?)(?: - at `\$\.?(?P<place>.*)`)?", re.DOTALL)
_NAMED = re.compile(r"Object (?P<problem>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL)


def read_body(kind: type[T], body: bytes, content_type: str) -> T:
    """Read JSON as a type. An empty body is an empty object."""
    if not body.strip():
        return converted(kind, {})
    if content_type.partition(";")[0].strip().lower() != JSON:
        raise Refused(415, f"send JSON, with `content-type: {JSON}`", "content-type")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body is not an object: send {…}")
    return converted(kind, value)


def read_query(kind: type[T], query_string: bytes) -> T:
    """Read query parameters as a type."""
    try:
        pairs = parse_qsl(query_string.decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise Refused(400, "the query is not UTF-8: encode it as UTF-8, then as %XX") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise InvalidField(name, "is given twice: leave one of them out")
        values[name] = value
    return converted(kind, values, strict=False)


def converted(kind: type[T], value: object, *, strict: bool = True) -> T:
    """Convert plain values to a type; `InvalidField` names what does not fit."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise invalid_field(kind, str(error)) from None


def in_utc(field: str, at: datetime) -> datetime:
    """Return an instant in UTC, as everything inside has it."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise InvalidField(field, "this instant cannot be used: choose one of this century") from None


def invalid_field(kind: type, message: str) -> InvalidField:
    """Say in our words what msgspec found, and where."""
    found = _PLACE.fullmatch(message)
    assert found is not None  # the pattern takes any text
    reason, place = found["reason"], found["place"] or ""
    named = _NAMED.fullmatch(reason)
    if named is None:
        return InvalidField(place or "body", f"{reason[:1].lower()}{reason[1:]}")
    field = f"{place}.{named['name']}" if place else named["name"]
    if named["problem"] == "missing required":
        return InvalidField(field, "is missing")
    if place:
        return InvalidField(field, "is unknown: leave it out")
    return InvalidField(field, f"is unknown: use {', '.join(_fields(kind)) or 'none'}")


def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))
