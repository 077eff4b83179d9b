"""The types of what paths lead to."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec

from tickler.errors import InvalidInput
from tickler.table.attribute_type import alternatives_of, decoded_type, plain_type
from tickler.table.declaration import Attribute, Missing
from tickler.table.stored_value import find_problem, is_read_back

if TYPE_CHECKING:
    from tickler.table.attribute import Path

encode_in_order = msgspec.json.Encoder().encode  # of what has no more than one order
_encode = msgspec.json.Encoder(order="deterministic").encode


def encode(value: object) -> bytes:
    """Return a value as JSON: equal values as equal texts, whatever the order of their sets and maps."""
    try:
        return _encode(value)
    except TypeError:  # a map whose keys are not text: msgspec sorts only those that are
        return _encode(msgspec.to_builtins(value, str_keys=True))


def check_value(path: Path[Any, Any], value: object) -> None:
    """Raise `InvalidInput` unless `value` can stand at a path."""
    _check(path, type_at(path), value)


def check_member(path: Path[Any, Any], value: object) -> None:
    """Raise `InvalidInput` unless a text, list or set at a path can contain `value`."""
    for kind in map(plain_type, alternatives_of(type_at(path))):
        if get_origin(kind) in (list, set, frozenset):
            return _check(path, get_args(kind)[0], value)
        if _is_text(kind):
            return _check(path, str, value)
    raise InvalidInput(f"{path!r}.contains({value!r}): only texts, lists and sets contain something")


def check_text(path: Path[Any, Any], value: object) -> None:
    """Raise `InvalidInput` unless there can be a text at a path, and `value` is one."""
    if not any(map(_is_text, alternatives_of(type_at(path)))):
        raise InvalidInput(f"{path!r}.starts_with({value!r}): only texts start with something")
    _check(path, str, value)


def _is_text(kind: Any) -> bool:
    kind = plain_type(kind)
    return kind is str or (get_origin(kind) is Literal and all(isinstance(value, str) for value in get_args(kind)))


def _check(path: Path[Any, Any], kind: Any, value: object) -> None:
    problem = find_problem(value, repr(path))
    if problem is not None:
        raise InvalidInput(problem)
    try:
        decoded = _decoder(kind)(encode(value))
    except (msgspec.MsgspecError, TypeError) as error:
        raise InvalidInput(f"{path!r} cannot be {value!r}: {str(error)[:1].lower()}{str(error)[1:]}") from None
    if not is_read_back(value, decoded):
        raise InvalidInput(f"{path!r} cannot be {value!r}: pass a value of the type that the class declares")


def check_steps(path: Path[Any, Any]) -> None:
    """Raise `InvalidInput` unless each step leads on: to a field of the part that is there, or by a key that its map can have."""
    for number, step in enumerate(path.steps):
        before = type(path)(path.attribute, path.steps[:number])
        kinds = [plain_type(each) for each in alternatives_of(type_at(before))]
        if isinstance(step, Attribute):
            if step.entity not in kinds:
                raise InvalidInput(f"{step!r} is not a field of what is at {before!r}: use those of its type")
            continue
        type_at(type(path)(path.attribute, path.steps[: number + 1]))
        entries = next(kind for kind in kinds if get_origin(kind) is dict)
        try:
            _check(before, dict[get_args(entries)[0], bool], {step: True})  # type: ignore[misc]  # made at run time
        except InvalidInput as error:
            raise InvalidInput(f"{path!r}: {step!r} cannot be a key of this map: {error}") from None


def typed(path: Path[Any, Any], value: object) -> Any:
    """Return a value that can stand at a path in the type that is declared there: the member of an enum, not its value."""
    return _decoder(type_at(path))(encode(value))


def type_at(path: Path[Any, Any]) -> Any:
    kind: Any = path.attribute.type
    for step in path.steps:
        if isinstance(step, Attribute):
            kind = step.type
            continue
        maps = [each for each in alternatives_of(kind) if get_origin(plain_type(each)) is dict]
        if not maps:
            raise InvalidInput(f"{path!r}: {step!r} is a key of a map, and there is none at this place")
        kind = get_args(plain_type(maps[0]))[1]
    return kind


def can_be_missing(path: Path[Any, Any]) -> bool:
    """Tell whether an attribute or an entry of a map can be removed."""
    in_map = bool(path.steps) and not isinstance(path.steps[-1], Attribute)
    return in_map or Missing in alternatives_of(type_at(path))


def set_type(path: Path[Any, Any]) -> type | None:
    """Return `set` or `frozenset` if there can be one at a path."""
    origins = [get_origin(plain_type(kind)) for kind in alternatives_of(type_at(path))]
    return next((origin for origin in origins if origin in (set, frozenset)), None)


def only_kind(attribute: Attribute) -> object:
    kinds = [plain_type(each) for each in alternatives_of(attribute.type) if each is not Missing]
    return kinds[0] if len(kinds) == 1 else None


@lru_cache(maxsize=1024)
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(decoded_type("", kind)).decode


def key_kind(path: Path[Any, Any]) -> tuple[type, bool]:
    """Return the type of a part of a key, and whether it can be missing."""
    alternatives = alternatives_of(type_at(path))
    kinds = [each for each in alternatives if each is not Missing]
    plain = {_plain(path, kind) for kind in kinds}
    if len(plain) != 1 or object in plain:
        raise InvalidInput(f"{path!r} can be of several types, which have no common order in a key: choose one")
    return plain.pop(), len(kinds) < len(alternatives)


def _plain(path: Path[Any, Any], kind: Any) -> type:
    kind = plain_type(kind)
    values = list(get_args(kind)) if get_origin(kind) is Literal else []
    if isinstance(kind, type) and issubclass(kind, Enum):
        values = [each.value for each in kind]
    values = [value.value if isinstance(value, Enum) else value for value in values]
    if "" in values:
        raise InvalidInput(f"{path!r} can be '', and a key has no place for it: leave it out instead")
    kinds = {type(value) for value in values} or {kind}
    if type(None) in kinds:
        raise InvalidInput(f"{path!r} can be None, and a key has no place for None: declare it as `| Missing` and leave it out")
    if bool in kinds:
        raise InvalidInput(
            f"{path!r} is a bool, and a flag that is False would be in the index, too: use `when={path!r} == True`, or leave the "
            "attribute out"
        )
    return kinds.pop() if len(kinds) == 1 else object
