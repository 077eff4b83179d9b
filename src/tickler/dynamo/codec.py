"""Converts between Python values and DynamoDB's attribute values.

Missing, null and falsy are three different things. `msgspec.UNSET` means *missing*, and the attribute is left out; `None`
is a null; `False`, `0` and `""` are values. A key attribute takes only values that can be keys.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

from msgspec import UNSET

from tickler.errors import InvalidInput

Attribute = dict[str, Any]  # {"S": "text"}, {"N": "12"}, {"M": {…}}, …: one entry, as on the wire
Item = dict[str, Attribute]

MAX_DIGITS = 38
MIN_EXPONENT = -130  # of the first digit
MAX_EXPONENT = 125


def to_item(values: Mapping[str, object], *, keys: Collection[str] = ()) -> Item:
    """Convert `values` to an item. UNSET values are left out.

    `keys` are the key attributes of the table and its indexes. They refuse a null, an empty text, and any other value that
    cannot be a key; leave the attribute out to keep the item out of an index.
    """
    for name in keys:
        if values.get(name, UNSET) is not UNSET and not _can_be_key(values[name]):
            raise InvalidInput(
                f"{name}: {values[name]!r} cannot be a key: pass text, bytes or a number that is not empty, "
                "or leave the attribute out to keep the item out of the index"
            )
    return {name: to_attribute(value, name) for name, value in values.items() if value is not UNSET}


def from_item(item: Mapping[str, Attribute]) -> dict[str, Any]:
    """Convert an item to Python values. Whole numbers become int, others Decimal."""
    return {name: from_attribute(attribute) for name, attribute in item.items()}


def to_attribute(value: object, name: str = "value") -> Attribute:
    if isinstance(value, str):
        return {"S": _text(value, name)}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float | Decimal):
        return {"N": _number(value, name)}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"B": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"M": {_key(key, name): to_attribute(each, f"{name}.{key}") for key, each in value.items() if each is not UNSET}}
    if isinstance(value, Set):
        return _to_set(value, name)
    if isinstance(value, Sequence):
        return {"L": [to_attribute(each, f"{name}[{position}]") for position, each in enumerate(value)]}
    if value is UNSET:
        raise InvalidInput(f"{name}: a list cannot hold UNSET: leave the element out, or pass None for a null")
    raise InvalidInput(f"{name}: DynamoDB cannot store a {type(value).__name__}: pass text, numbers, bytes, lists, dicts or sets")


def from_attribute(attribute: Attribute) -> Any:
    ((kind, raw),) = attribute.items()
    if kind == "S" or kind == "BOOL":
        return raw
    if kind == "N":
        return _from_number(raw)
    return _READERS[kind](raw)


def size_of(item: Mapping[str, Attribute]) -> int:
    """Return the bytes of an item as DynamoDB counts them for units and limits: names and values, numbers at their longest."""
    return sum(len(name.encode()) + _size(attribute) for name, attribute in item.items())


def _size(attribute: Attribute) -> int:
    ((kind, raw),) = attribute.items()
    if kind == "S":
        return len(raw.encode())
    if kind == "N":
        return min(len(raw) // 2 + 2, 21)
    if kind == "B":
        return len(raw) * 3 // 4
    if kind == "M":
        return 3 + size_of(raw) + len(raw)
    if kind == "L":
        return 3 + sum(_size(each) + 1 for each in raw)
    if kind in ("SS", "NS", "BS"):
        return sum(_size({kind[0]: each}) for each in raw)
    return 1


def _can_be_key(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | Decimal) or (isinstance(value, str | bytes | bytearray) and len(value) > 0)


def _text(value: str, name: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{name}: {value!r} has a lone surrogate, which UTF-8 cannot encode: pass bytes") from error
    return value


def _key(key: object, name: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(f"{name}: map keys must be text, not {key!r}: pass {str(key)!r}")
    return _text(key, name)


def _number(value: int | float | Decimal, name: str) -> str:
    """Format a number exactly, whatever the caller's decimal context."""
    exact = Decimal(float.__repr__(value) if isinstance(value, float) else value)
    if not exact.is_finite():
        raise InvalidInput(f"{name}: DynamoDB cannot store {value!r}: leave it out, or pass None")
    text = str(exact)
    digits = len("".join(map(str, exact.as_tuple().digits)).rstrip("0"))
    if digits > MAX_DIGITS:
        raise InvalidInput(f"{name}: {text[:50]} has {digits} digits: DynamoDB stores {MAX_DIGITS}; pass it as text")
    if digits and not MIN_EXPONENT <= exact.adjusted() <= MAX_EXPONENT:
        limits = f"from 1E{MIN_EXPONENT} to below 1E+{MAX_EXPONENT + 1}"
        raise InvalidInput(f"{name}: {text[:50]} is out of range: DynamoDB stores numbers {limits}; pass it as text")
    return text


def _from_number(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def _to_set(value: Set[object], name: str) -> Attribute:
    if not value:
        raise InvalidInput(f"{name}: DynamoDB has no empty set: leave the attribute out")
    kinds = {next(iter(to_attribute(each, name))) for each in value}
    if len(kinds) > 1 or not kinds <= {"S", "N", "B"}:
        raise InvalidInput(f"{name}: a set must hold only text, only numbers or only bytes: pass a list")
    (kind,) = kinds
    return {f"{kind}S": sorted(to_attribute(each, name)[kind] for each in value)}


_READERS: dict[str, Any] = {
    "NULL": lambda raw: None,
    "B": b64decode,
    "M": from_item,
    "L": lambda raw: [from_attribute(each) for each in raw],
    "SS": set,
    "NS": lambda raw: {_from_number(each) for each in raw},
    "BS": lambda raw: {b64decode(each) for each in raw},
}
