"""The types of what paths lead to."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NewType, Union, get_args, get_origin

import msgspec

from tickler.errors import InvalidInput
from tickler.table.declaration import Attribute, Missing

if TYPE_CHECKING:
    from tickler.table.attribute import Path

_encode = msgspec.json.Encoder(order="deterministic").encode


def encode(value: object) -> bytes:
    """Return a value as JSON: equal values as equal texts, whatever the order of their sets and maps."""
    try:
        return _encode(value)
    except TypeError:  # a map whose keys are not text: msgspec sorts only those that are
        return _encode(msgspec.to_builtins(value, str_keys=True))


def check_value(path: Path[Any, Any], value: object) -> None:
    """Raise `InvalidInput` unless `value` can stand at a path."""
    kind = type_at(path)
    try:
        _decoder(kind)(encode(value))
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{path!r} cannot be {value!r}: {str(error)[:1].lower()}{str(error)[1:]}") from None


def typed(path: Path[Any, Any], value: object) -> Any:
    """Return a value that can stand at a path in the type that is declared there: the member of an enum, not its value."""
    return _decoder(type_at(path))(encode(value))


def type_at(path: Path[Any, Any]) -> Any:
    kind: Any = path.attribute.type
    for step in path.steps:
        if isinstance(step, Attribute):
            kind = step.type
            continue
        maps = [each for each in _alternatives(kind) if get_origin(each) is dict]
        if not maps:
            raise InvalidInput(f"{path!r}: {step!r} is a key of a map, and there is none at this place")
        kind = get_args(maps[0])[1]
    return kind


def can_be_missing(path: Path[Any, Any]) -> bool:
    """Tell whether an attribute or an entry of a map can be removed."""
    in_map = bool(path.steps) and not isinstance(path.steps[-1], Attribute)
    return in_map or Missing in _alternatives(type_at(path))


def is_set(path: Path[Any, Any]) -> bool:
    return any(get_origin(kind) in (set, frozenset) for kind in _alternatives(type_at(path)))


def only_kind(attribute: Attribute) -> object:
    kinds = [each for each in _alternatives(attribute.type) if each is not Missing]
    return kinds[0] if len(kinds) == 1 else None


@lru_cache(maxsize=1024)
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind).decode


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def key_kind(path: Path[Any, Any]) -> tuple[type, bool]:
    """Return the type of a part of a key, and whether it can be missing."""
    alternatives = _alternatives(type_at(path))
    kinds = [each for each in alternatives if each is not Missing]
    if type(None) in kinds:
        raise InvalidInput(f"{path!r} can be None, and a key has no place for None: declare it as `| Missing` and leave it out")
    plain = {_plain(path, kind) for kind in kinds}
    if len(plain) != 1:
        raise InvalidInput(f"{path!r} can be of several types, which have no common order in a key: choose one")
    return plain.pop(), len(kinds) < len(alternatives)


def _plain(path: Path[Any, Any], kind: Any) -> type:
    if isinstance(kind, NewType):
        return _plain(path, kind.__supertype__)
    if hasattr(kind, "__metadata__"):
        return _plain(path, kind.__origin__)
    values = list(get_args(kind)) if get_origin(kind) is Literal else []
    if isinstance(kind, type) and issubclass(kind, Enum):
        values = [each.value for each in kind]
    if "" in values:
        raise InvalidInput(f"{path!r} can be '', and a key has no place for it: leave it out instead")
    kinds = {type(value) for value in values} or {kind}
    if bool in kinds:
        raise InvalidInput(
            f"{path!r} is a bool, and a flag that is False would be in the index, too: use `when={path!r} == True`, or leave the "
            "attribute out"
        )
    return kinds.pop() if len(kinds) == 1 else object
