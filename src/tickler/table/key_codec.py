"""Encodes typed values as components of composite string keys, so that the order of the texts is the order of the values.

Components are joined by `#`. In a value, each character up to `%` is written as `%XX`. Whatever can follow the same beginning
then sorts in this order: the end of the key, `#`, `$` (in bounds, never in a key), an escape, any other character.

    text        New%20York
    numbers     A0 < A0.01 < A9 < B10 < B19.99: a letter for the count of whole digits (A to Y, ZA to ZY, ZZA …), then the digits
    negatives   -Y80.00~ < -Y89~ < -Z8~: letters and digits mirrored, and an end that sorts behind further digits
    instants    2024-03-15T00:00:00 < 2024-03-15T00:00:00.5, in UTC
    dates       2024-03-15
    bytes       lower-case hexadecimal
    UUIDs       their canonical text
    descending  numbers negated; digits of dates complemented; digits of instants too, and `~` at the end
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from string import ascii_uppercase, digits
from typing import Generic, TypeVar, cast
from uuid import UUID

import msgspec

from tickler.errors import InvalidInput

T = TypeVar("T")

SEPARATOR = "#"
# What DynamoDB can store as a number.
MAX_SIGNIFICANT_DIGITS = 38
MIN_EXPONENT = -130
MAX_EXPONENT = 125

_AFTER = "$"  # the character behind the separator: escaped in values, so it occurs in bounds only
_END = "~"  # sorts behind the digits and the point with which a longer text of the same value would go on
_FEW_DIGITS = 10**MAX_SIGNIFICANT_DIGITS
_OUT_OF_RANGE = 10 ** (MAX_EXPONENT + 1)

_find_unsafe = re.compile(r"[\x00-%\ud800-\udfff]").search
_ESCAPES = {code: f"%{code:02X}" for code in range(ord("%") + 1)}
_ESCAPE = re.compile("%([01][0-9A-F]|2[0-5])")

# A continuation letter, Z, sorts behind each final one: 25 digits are Y, 26 are ZA.
_LETTERS = ("", *("Z" * (count // 25) + ascii_uppercase[count % 25] for count in range(MAX_EXPONENT + 1)))
_NUMBER = re.compile(r"Z{0,5}[A-Y]([0-9]{1,126}(?:\.[0-9]{1,167})?)")
_COMPLEMENT = str.maketrans(digits, digits[::-1])
_MIRROR = str.maketrans(digits + ascii_uppercase, digits[::-1] + ascii_uppercase[::-1])


class PartCodec(msgspec.Struct, Generic[T], frozen=True):
    """Encodes values of one kind as key components. Both functions raise InvalidInput.

    `encode` refuses what has no place in an order (None, bool, NaN, a naive datetime) and what is empty.
    `decode` is its inverse and refuses each text that `encode` does not return.
    """

    kind: type[T]
    descending: bool
    encode: Callable[[T], str]
    decode: Callable[[str], T]


def codec_for(kind: type[T], *, descending: bool = False) -> PartCodec[T]:
    """Return the codec for `kind`: str, int, float, Decimal, datetime, date, bytes or UUID.

    The number kinds accept each other's values if nothing is lost, and write equal numbers alike. A float counts as the decimal
    number that its shortest repr shows, so 2.0**60 is 1152921504606847000.
    """
    found = _CODECS.get((kind, descending))
    if found is not None:
        return cast("PartCodec[T]", found)
    name = getattr(kind, "__name__", repr(kind))
    if (kind, False) in _CODECS:
        raise InvalidInput(f"a key part of type {name} cannot be descending, only numbers, instants and dates: query backwards")
    known = ", ".join(each.__name__ for each, is_descending in _CODECS if not is_descending)
    raise InvalidInput(f"a key part cannot be declared as {name}: use one of {known}")


def join(components: Sequence[str]) -> str:
    """Return the key of one or more encoded components."""
    return SEPARATOR.join(components)


def split(key: str) -> list[str]:
    """Return the encoded components of a key."""
    return key.split(SEPARATOR)


def prefix_range(prefix: str) -> tuple[str, str]:
    """Return the half-open range [low, high) of the keys that have more components behind those of `prefix`."""
    return prefix + SEPARATOR, prefix + _AFTER


def after_component(text: str) -> str:
    """Return the bound above `text` and each key that starts with `text#`, but below each component that sorts after `text`."""
    return text + _AFTER


def _refused(what: str, remedy: str = "leave it out") -> InvalidInput:
    return InvalidInput(f"a key part cannot be {what}: {remedy}")


def _wrong_type(kind: type[object], value: object) -> InvalidInput:
    if value is None:
        return _refused("None")
    if isinstance(value, bool):
        return _refused("a bool", "use a text such as 'yes', or leave it out")
    return _refused(f"of type {type(value).__name__}", f"pass a value of type {kind.__name__}, or leave it out")


def _encode_text(value: object) -> str:
    if type(value) is not str:
        if not isinstance(value, str):
            raise _wrong_type(str, value)
        value = str.__str__(value)  # the text of an enum's member, not its name
    if not value:
        raise _refused("empty")
    return value if _find_unsafe(value) is None else _escape(value)


def _escape(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        found = f"a text with the lone surrogate {value[error.start]!r}, which UTF-8 cannot express"
        raise _refused(found, "replace it, or leave the text out") from None
    return value.translate(_ESCAPES)


def _parse_text(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _encode_int(value: object) -> str:
    if type(value) is int and -_FEW_DIGITS < value < _FEW_DIGITS:
        return _ordered(str(value)) if value >= 0 else _negated(_ordered(str(-value)))
    text = _number_text(_exact(value, int))
    if "." in text:
        raise _refused(f"{value} where it is declared as int", "round it, declare it as Decimal, or leave it out")
    return text


def _encode_decimal(value: object) -> str:
    return _number_text(_exact(value, Decimal))


def _encode_float(value: object) -> str:
    number = _exact(value, float)
    text = _number_text(number)
    if isinstance(value, float):
        return text
    nearest = float(number)
    shortest = Decimal(repr(nearest))
    if number not in (nearest, shortest):
        raise _refused(f"{value} where it is declared as float", "round it, declare it as Decimal, or leave it out")
    return _number_text(shortest)


def _exact(value: object, kind: type[object]) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(float.__repr__(value))
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_type(kind, value)
    if not -_OUT_OF_RANGE < value < _OUT_OF_RANGE:
        raise _out_of_range()
    return Decimal(value)


def _out_of_range() -> InvalidInput:
    what = f"a number of 1E+{MAX_EXPONENT + 1} or more, or nearer to 0 than 1E{MIN_EXPONENT}"
    return _refused(what, "scale it, or leave it out")


def _number_text(number: Decimal) -> str:
    if not number.is_finite():
        raise _refused("NaN" if number.is_nan() else "infinite", "pass a finite number, or leave it out")
    if not number:
        return "A0"
    if not MIN_EXPONENT <= number.adjusted() <= MAX_EXPONENT:
        raise _out_of_range()
    plain = format(number.copy_abs(), "f")  # abs() and unary minus would round to the context
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    count = len(plain.replace(".", "").strip("0"))
    if count > MAX_SIGNIFICANT_DIGITS:
        raise _refused(f"a number of {count} significant digits", f"round it to {MAX_SIGNIFICANT_DIGITS}, or leave it out")
    text = _ordered(plain)
    return _negated(text) if number.is_signed() else text


def _ordered(plain: str) -> str:
    point = plain.find(".")
    return _LETTERS[len(plain) if point < 0 else point] + plain


def _negated(text: str) -> str:
    """Return the text of the negated number. It is its own inverse."""
    if text == "A0":
        return text
    if text.startswith("-"):
        return text[1:-1].translate(_MIRROR)
    return f"-{text.translate(_MIRROR)}{_END}"


def _parse_decimal(text: str) -> Decimal:
    is_negative = text.startswith("-")
    found = _NUMBER.fullmatch(_negated(text) if is_negative else text)
    if found is None:
        raise ValueError(text)
    number = Decimal(found[1])
    return number.copy_negate() if is_negative else number


def _encode_instant(value: object) -> str:
    if not isinstance(value, datetime):
        raise _wrong_type(datetime, value)
    if value.tzinfo is not UTC:
        value = _in_utc(value)
    text = datetime.isoformat(value)[:-6]  # without +00:00
    return text if len(text) == 19 else text.rstrip("0")


def _in_utc(value: datetime) -> datetime:
    if value.utcoffset() is None:
        raise _refused("a naive datetime", "give it a time zone such as tzinfo=UTC, or leave it out")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise _refused("an instant outside the years 1 to 9999 of UTC") from None


def _parse_instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _complement_instant(text: str) -> str:
    return text.translate(_COMPLEMENT) + _END


def _restore_instant(text: str) -> str:
    return text[:-1].translate(_COMPLEMENT)


def _encode_date(value: object) -> str:
    if isinstance(value, datetime):
        raise _refused("a datetime where it is declared as date", "pass its date(), or leave it out")
    if not isinstance(value, date):
        raise _wrong_type(date, value)
    return date.isoformat(value)


def _complement_date(text: str) -> str:
    return text.translate(_COMPLEMENT)


def _encode_bytes(value: object) -> str:
    if not isinstance(value, bytes):
        raise _wrong_type(bytes, value)
    if not value:
        raise _refused("empty")
    return value.hex()


def _encode_uuid(value: object) -> str:
    if not isinstance(value, UUID):
        raise _wrong_type(UUID, value)
    return str(value)


def _ascending(kind: type[T], encode: Callable[[object], str], parse: Callable[[str], T]) -> PartCodec[T]:
    return PartCodec(kind, False, encode, _checked(kind, encode, parse))


def _descending(ascending: PartCodec[T], turn: Callable[[str], str], turn_back: Callable[[str], str]) -> PartCodec[T]:
    encode_ascending, decode_ascending = ascending.encode, ascending.decode

    def encode(value: T) -> str:
        return turn(encode_ascending(value))

    def parse(text: str) -> T:
        return decode_ascending(turn_back(text))

    return PartCodec(ascending.kind, True, encode, _checked(ascending.kind, encode, parse))


def _checked(kind: type[T], encode: Callable[[T], str], parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a decoder that accepts only what `encode` returns, however much `parse` accepts."""

    def decode(text: str) -> T:
        try:
            value = parse(text)
            if encode(value) == text:
                return value
        except ValueError:
            pass
        raise InvalidInput(f"{text[:80]!r} is not a key part of type {kind.__name__}: check which template wrote the key")

    return decode


_INT = _ascending(int, _encode_int, lambda text: int(_parse_decimal(text)))
_FLOAT = _ascending(float, _encode_float, lambda text: float(_parse_decimal(text)))
_DECIMAL = _ascending(Decimal, _encode_decimal, _parse_decimal)
_INSTANT = _ascending(datetime, _encode_instant, _parse_instant)
_DATE = _ascending(date, _encode_date, date.fromisoformat)
_CODECS: dict[tuple[type[object], bool], PartCodec[object]] = {
    (codec.kind, codec.descending): cast("PartCodec[object]", codec)
    for codec in (
        _ascending(str, _encode_text, _parse_text),
        _INT,
        _FLOAT,
        _DECIMAL,
        _INSTANT,
        _DATE,
        _ascending(bytes, _encode_bytes, bytes.fromhex),
        _ascending(UUID, _encode_uuid, UUID),
        _descending(_INT, _negated, _negated),
        _descending(_FLOAT, _negated, _negated),
        _descending(_DECIMAL, _negated, _negated),
        _descending(_INSTANT, _complement_instant, _restore_instant),
        _descending(_DATE, _complement_date, _complement_date),
    )
}
