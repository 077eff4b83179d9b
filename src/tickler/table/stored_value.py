"""Finds values that some engine could not give back as they are: what JSON loses, and numbers beyond those of DynamoDB."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from tickler.table.key_codec import MAX_EXPONENT, MAX_SIGNIFICANT_DIGITS, MIN_EXPONENT

_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * (MAX_SIGNIFICANT_DIGITS + 1)
TOO_LARGE = 10**MAX_SIGNIFICANT_DIGITS
_SMALLEST = float(f"1E{MIN_EXPONENT}")
_LARGEST = math.nextafter(float(f"1E{MAX_EXPONENT + 1}"), 0)
_OUT_OF_RANGE = f"is 1E+{MAX_EXPONENT + 1} or more, or nearer to 0 than 1E{MIN_EXPONENT}: scale it"


def has_long_number(body: bytes) -> bool:
    """Tell whether there are more digits in a row than a number can have. A regular expression costs ten times as much."""
    return body.translate(_AS_ZEROS).find(_LONG_NUMBER) >= 0


def find_problem(value: Any, where: str) -> str | None:
    """Return what is wrong with a value, and what to do about it; None if it can be stored."""
    reason = _problem(value)
    if reason is not None:
        return f"{where} {reason}"
    inner: Iterable[tuple[str, object]] = ()
    if isinstance(value, msgspec.Struct):
        inner = ((f"{where}.{name}", getattr(value, name)) for name in value.__struct_fields__)
    elif isinstance(value, Mapping):
        inner = (each for key, entry in value.items() for each in ((f"a key of {where}", key), (f"{where}[{key!r}]", entry)))
    elif isinstance(value, list | set | frozenset):
        inner = ((f"a member of {where}", member) for member in value)
    return next((found for name, each in inner if (found := find_problem(each, name)) is not None), None)


def is_read_back(given: Any, decoded: Any) -> bool:
    """Tell whether what is decoded equals what was given, instants by their time and not by their zone."""
    if isinstance(given, datetime) and isinstance(decoded, datetime):
        return given.astimezone(UTC) == decoded.astimezone(UTC)
    if isinstance(given, msgspec.Struct):
        return type(given) is type(decoded) and all(
            is_read_back(getattr(given, name), getattr(decoded, name)) for name in given.__struct_fields__
        )
    if isinstance(given, list) and isinstance(decoded, list):
        return len(given) == len(decoded) and all(is_read_back(one, other) for one, other in zip(given, decoded, strict=True))
    if isinstance(given, dict) and isinstance(decoded, dict):
        left, right = ({_in_utc(key): entry for key, entry in each.items()} for each in (given, decoded))
        return left.keys() == right.keys() and all(is_read_back(left[key], right[key]) for key in left)
    return bool(given == decoded)


def _in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _problem(value: object) -> str | None:
    if isinstance(value, str):
        return _problem_of_text(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if -TOO_LARGE < value < TOO_LARGE else f"has more than {MAX_SIGNIFICANT_DIGITS} digits: store it as a text"
    if isinstance(value, float):
        if not math.isfinite(value):
            return f"is {value}: pass a finite number, or leave it out"
        return None if not value or _SMALLEST <= abs(value) <= _LARGEST else _OUT_OF_RANGE
    if isinstance(value, Decimal):
        return _problem_of_number(value)
    return _problem_of_instant(value) if isinstance(value, datetime) else None


def _problem_of_text(value: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"has the lone surrogate {value[error.start]!r}, which UTF-8 cannot express: replace it"
    return None


def _problem_of_number(value: Decimal) -> str | None:
    if not value.is_finite():
        return f"is {value}: pass a finite number, or leave it out"
    if value and not MIN_EXPONENT <= value.adjusted() <= MAX_EXPONENT:
        return _OUT_OF_RANGE
    digits = value.as_tuple().digits
    if len(digits) > MAX_SIGNIFICANT_DIGITS and len("".join(map(str, digits)).strip("0")) > MAX_SIGNIFICANT_DIGITS:
        return f"has more than {MAX_SIGNIFICANT_DIGITS} significant digits: round it"
    return None


def _problem_of_instant(value: datetime) -> str | None:
    offset = value.utcoffset()
    if offset is None:
        return "is a naive datetime: give it a time zone such as tzinfo=UTC"
    if offset.total_seconds() % 60:
        return f"has an offset of {offset}, which is no whole minutes: pass it as astimezone(UTC)"
    return None
