"""What handlers subscribe to: the meaning of a change for its item. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from tickler.errors import InvalidInput
from tickler.table.attribute import Path
from tickler.table.condition import same
from tickler.table.key import BoundIndex, Index
from tickler.table.rendering import value_at

E = TypeVar("E")
Old_co = TypeVar("Old_co", covariant=True)
New_co = TypeVar("New_co", covariant=True)


class Event(Generic[Old_co, New_co]):
    """A kind of change of one entity's items. Its type parameters are what the item can be before and after it."""

    def __init__(self, entity: type, text: str, happened: Callable[[Any, Any], bool]) -> None:
        self.entity = entity
        self.happened = happened  # tells it from an item before and after a change, each None if there was no item
        self._text = text

    def __repr__(self) -> str:
        return self._text


def created(entity: type[E]) -> Event[None, E]:
    """An item appears."""
    return Event(_entity(entity), f"created({entity.__name__})", lambda old, new: old is None)


def removed(entity: type[E]) -> Event[E, None]:
    """An item disappears: it was deleted, or it had expired and was swept."""
    return Event(_entity(entity), f"removed({entity.__name__})", lambda old, new: new is None)


@overload
def changed(entity: type[E], /) -> Event[E, E]: ...
@overload
def changed(path: Path[E, Any], /, *paths: Path[E, Any]) -> Event[E, E]: ...
def changed(what: Any, /, *more: Any) -> Event[Any, Any]:
    """An item that stays changes: any attribute of an entity, or the value at one of some paths."""
    if isinstance(what, type) and not more:
        return Event(_entity(what), f"changed({what.__name__})", lambda old, new: old is not None and new is not None)
    paths: tuple[Path[Any, Any], ...] = (what, *more)
    for path in paths:
        if not isinstance(path, Path):
            raise InvalidInput(f"changed: pass one entity, or attributes such as Order.status, not {path!r}")
    entities = {path.attribute.entity for path in paths}
    if len(entities) != 1 or None in entities:
        raise InvalidInput("changed: all attributes must be of one entity")

    def happened(old: Any, new: Any) -> bool:
        both = old is not None and new is not None
        return both and any(not same(value_at(old, path), value_at(new, path)) for path in paths)

    return Event(_entity(paths[0].attribute.entity), f"changed({', '.join(map(repr, paths))})", happened)


def entered(index: BoundIndex[E, Any, Any]) -> Event[E | None, E]:
    """An item comes into an index, in which it was not before."""
    declared = _declared("entered", index)
    return Event(
        declared.bound().cls,
        f"entered({declared.name})",
        lambda old, new: _is_in(declared, new) and not _is_in(declared, old),
    )


def left(index: BoundIndex[E, Any, Any]) -> Event[E, E | None]:
    """An item goes out of an index: it changed, or it was removed."""
    declared = _declared("left", index)
    return Event(
        declared.bound().cls, f"left({declared.name})", lambda old, new: _is_in(declared, old) and not _is_in(declared, new)
    )


def _is_in(index: Index[Any, Any], item: Any) -> bool:
    return item is not None and isinstance(index.position(index.bound().lookup(item)), tuple)


def _entity(cls: Any) -> type:
    if not isinstance(cls, type) or not getattr(cls, "__entity__", False):
        raise InvalidInput(f"{cls!r} is not an entity: pass a class such as Order")
    return cls


def _declared(event: str, index: Any) -> Index[Any, Any]:
    if not isinstance(index, BoundIndex):
        raise InvalidInput(f"{event}: pass an index of an entity, such as Order.pending, not {index!r}")
    return index.declared
