"""Which types an attribute can have, and the stricter ones by which msgspec decodes them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin
from uuid import UUID

import msgspec

from tickler.errors import InvalidInput
from tickler.table.declaration import Missing

_NUMBERS = (int, float, Decimal)
_SCALARS = (str, *_NUMBERS, bool, bytes, datetime, date, UUID, NoneType)
_MAP_KEYS = (str, int, datetime, date, UUID)
_MEMBERS = (str, int, Decimal, bytes)
_SUPPORTED = "str, int, float, Decimal, bool, bytes, datetime, date, UUID, Literal, an Enum, a Part, list[…], dict[…] or set[…]"


def decoded_type(where: str, kind: Any) -> Any:
    """Return a type as msgspec is to decode it, in which a datetime needs a zone. `InvalidInput` if it cannot be stored."""
    alternatives = [each for each in alternatives_of(kind) if each is not Missing]
    if not alternatives:
        raise InvalidInput(f"{where} is always missing: name the type that it has when it is present")
    decoded: Any = Union[tuple(_decoded(where, each) for each in alternatives)]  # noqa: UP007  # of a tuple
    _refuse_alike(where, alternatives)
    try:
        msgspec.json.Decoder(decoded)
    except TypeError as error:
        raise InvalidInput(f"{where}: {str(error)[:1].lower()}{str(error)[1:]}: choose one of them") from None
    return Union[decoded, Missing] if len(alternatives) < len(alternatives_of(kind)) else decoded  # noqa: UP007  # as above


def alternatives_of(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the one type that it is."""
    kind = _unaliased(kind)
    if get_origin(kind) not in (Union, UnionType):
        return (kind,)
    return tuple(inner for each in get_args(kind) for inner in alternatives_of(each))


def contains(kind: Any, wanted: Collection[type]) -> bool:
    """Tell whether a type is one of those that are wanted, or has one of them in it. Literals and enums have none."""
    kinds = [plain_type(each) for each in alternatives_of(kind)]
    if any(each in wanted for each in kinds):
        return True
    inner = [argument for each in kinds if get_origin(each) is not Literal for argument in get_args(each)]
    inner += [path.attribute.type for each in kinds for path in getattr(each, "__paths__", {}).values()]
    return any(contains(each, wanted) for each in inner)


def has_no_order(kind: Any) -> bool:
    """Tell whether there may be sets or maps in values of a type, which are equal in whatever order they have their entries."""
    kinds = [plain_type(each) for each in alternatives_of(kind)]
    if any((get_origin(each) or each) in (set, frozenset, dict, object, Any) for each in kinds):
        return True
    inner = [argument for each in kinds if get_origin(each) is not Literal for argument in get_args(each)]
    inner += [path.attribute.type for each in kinds for path in getattr(each, "__paths__", {}).values()]
    return any(map(has_no_order, inner))


def plain_type(kind: Any) -> Any:
    """Return the type behind a NewType, an Annotated, or an alias."""
    kind = _unaliased(kind)
    if isinstance(kind, NewType):
        return plain_type(kind.__supertype__)
    return plain_type(kind.__origin__) if hasattr(kind, "__metadata__") else kind


def _unaliased(kind: Any) -> Any:
    return _unaliased(kind.__value__) if type(kind).__name__ == "TypeAliasType" else kind


def _decoded(where: str, kind: Any) -> Any:
    kind = _unaliased(kind)
    if isinstance(kind, NewType):
        return decoded_type(where, kind.__supertype__)
    if hasattr(kind, "__metadata__"):
        if any(isinstance(each, msgspec.Meta) for each in kind.__metadata__):
            raise InvalidInput(f"{where}: a database that adds to a number knows no constraints: leave Meta out")
        return Annotated[(_decoded(where, kind.__origin__), *kind.__metadata__)]
    if get_origin(kind) is not None:
        return _decoded_generic(where, kind)
    if kind is datetime:
        return Annotated[datetime, msgspec.Meta(tz=True)]
    if kind in _SCALARS or _is_part(where, kind) or _is_enum(where, kind):
        return kind
    raise _unsupported(where, kind)


def _decoded_generic(where: str, kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        _check_values(where, kind, arguments)
        return kind
    if origin is list:
        return list[_inner(f"{where}: a member of {_shown(kind)}", arguments[0])]  # type: ignore[misc]  # made at run time
    if origin is dict:
        key = plain_type(arguments[0])
        if key not in _MAP_KEYS and not (isinstance(key, type) and _is_enum(where, key)) and get_origin(key) is not Literal:
            raise InvalidInput(
                f"{where}: the keys of {_shown(kind)} cannot be {_shown(key)}: use str, int, datetime, date, UUID or an Enum"
            )
        value = _inner(f"{where}: a value of {_shown(kind)}", arguments[1])
        return dict[_decoded(where, arguments[0]), value]  # type: ignore[misc]  # as above
    if origin in (set, frozenset):
        if plain_type(arguments[0]) not in _MEMBERS and get_origin(plain_type(arguments[0])) is not Literal:
            member = _shown(arguments[0])
            raise InvalidInput(
                f"{where}: the members of {_shown(kind)} cannot be {member}: use str, int, Decimal or bytes, or a list"
            )
        return origin[_decoded(where, arguments[0])]
    raise _unsupported(where, kind)


def _inner(where: str, kind: Any) -> Any:
    if Missing in alternatives_of(kind):
        raise InvalidInput(f"{where} cannot be Missing: leave it out of the list or map instead")
    if any(get_origin(plain_type(each)) in (set, frozenset) for each in alternatives_of(kind)):
        raise InvalidInput(f"{where} cannot be a set, because an empty set cannot be stored there: use a list")
    return decoded_type(where, kind)


def _refuse_alike(where: str, alternatives: list[Any]) -> None:
    numbers = [each for each in map(plain_type, alternatives) if each in _NUMBERS]
    if len(numbers) > 1:
        raise InvalidInput(f"{where} can be {' or '.join(map(_shown, numbers))}, which are stored alike: choose one of them")


def _is_part(where: str, kind: Any) -> bool:
    if not hasattr(kind, "__paths__"):
        return False
    if hasattr(kind, "__entity__"):
        raise InvalidInput(f"{where}: {_shown(kind)} is an entity, with a key of its own: store the key, or make it a Part")
    return True


def _is_enum(where: str, kind: Any) -> bool:
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        return False
    _check_values(where, kind, [each.value for each in kind])
    return True


def _check_values(where: str, kind: Any, values: Any) -> None:
    for value in values:
        if type(value.value if isinstance(value, Enum) else value) not in (str, int, NoneType):
            raise InvalidInput(f"{where}: {_shown(kind)} has the value {value!r}: use texts or integers")


def _unsupported(where: str, kind: Any) -> InvalidInput:
    if kind in (list, dict, set, frozenset):
        return InvalidInput(f"{where}: {kind.__name__} does not say of what: write {kind.__name__}[…]")
    if kind is tuple or get_origin(kind) is tuple:
        return InvalidInput(f"{where}: {_shown(kind)} is stored as a list: use list[…], or a Part")
    return InvalidInput(f"{where}: {_shown(kind)} cannot be stored: use {_SUPPORTED}")


def _shown(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind).replace("typing.", "")
