"""Strict JSON: UTF-8, unique names, and only numbers that all readers understand alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from tickler.errors import InvalidInput

_FINITE = 1.7976931348623157e308


def read_json(data: bytes) -> Any:
    """Decode JSON. `InvalidInput` says what is wrong, and where."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start} is not UTF-8: encode the text as UTF-8") from None
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise InvalidInput("is nested too deeply: flatten it") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"is not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}") from None
    except InvalidInput:
        raise
    except ValueError:  # an integer with thousands of digits
        raise InvalidInput("contains a number that is too long: write it as text") from None
    if "\\u" in text or "\\U" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InvalidInput("contains an unpaired surrogate: leave it out") from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = _first_twice(name for name, _ in pairs)
        raise InvalidInput(f"{twice[:40]!r} occurs twice: leave out one of them")
    return fields


def _first_twice(names: Iterable[str]) -> str:
    """Return the first name that recurs, in linear time: there may be a hundred thousand."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("every name comes once")


def _refuse_constant(text: str) -> NoReturn:
    raise InvalidInput(f"{text} is not a number in JSON: use a finite one, or null")


def _whole(text: str) -> int:
    number = int(text)
    if not -(1 << 63) <= number < 1 << 64:
        raise InvalidInput(f"{text[:25]} does not fit into 64 bits: write it as text")
    return number


def _fraction(text: str) -> float:
    number = float(text)
    if not -_FINITE <= number <= _FINITE:
        raise InvalidInput(f"{text[:25]} is too large for a number: write it as text")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse_constant, parse_int=_whole, parse_float=_fraction)
