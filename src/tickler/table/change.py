"""Changes that `update` makes to one item, and how they apply to an entity that was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from tickler.errors import InvalidInput
from tickler.table.path_type import can_be_missing, set_type

if TYPE_CHECKING:
    from tickler.table.attribute import Path
    from tickler.table.declaration import Attribute

E = TypeVar("E")

# The precision of DynamoDB's numbers, on every engine.
_NUMBERS = Context(prec=38)


class Change(Generic[E]):
    """One change of an update. Made by `Order.status.set(…)`, `.add(…)`, `.remove()` and `.append(…)`."""

    path: Path[Any, Any]

    def applied(self, found: object) -> object:
        """Return what becomes of `found`, the value at the path or MISSING."""
        raise NotImplementedError  # each kind of change does

    def operands(self) -> Sequence[object]:
        """Return the values that must have the type of the path."""
        raise NotImplementedError  # each kind of change does


class Set(Change[Any]):
    def __init__(self, path: Path[Any, Any], value: object) -> None:
        if value is msgspec.UNSET:
            raise InvalidInput(f"{path!r}.set(MISSING) sets nothing: use .remove()")
        self.path = path
        self.value = value

    def applied(self, found: object) -> object:
        return self.value

    def operands(self) -> Sequence[object]:
        return (self.value,)

    def __repr__(self) -> str:
        return f"{self.path!r}.set({self.value!r})"


class Remove(Change[Any]):
    def __init__(self, path: Path[Any, Any]) -> None:
        self.path = path

    def applied(self, found: object) -> object:
        return msgspec.UNSET

    def operands(self) -> Sequence[object]:
        return ()

    def __repr__(self) -> str:
        return f"{self.path!r}.remove()"


class Add(Change[Any]):
    """Adds to a number, which starts at 0 where it is missing."""

    def __init__(self, path: Path[Any, Any], value: Any) -> None:
        self.path = path
        self.value = value

    def applied(self, found: Any) -> object:
        if found is msgspec.UNSET:
            return self.value
        _refuse_none(self, found)
        if isinstance(found, int) and isinstance(self.value, int):
            return found + self.value
        total = _NUMBERS.add(_decimal(found), _decimal(self.value))
        return float(total) if isinstance(found, float) or isinstance(self.value, float) else total

    def operands(self) -> Sequence[object]:
        return (self.value,)

    def __repr__(self) -> str:
        return f"{self.path!r}.add({self.value!r})"


class AddMembers(Change[Any]):
    def __init__(self, path: Path[Any, Any], members: frozenset[object]) -> None:
        self.path = path
        self.members = members

    def applied(self, found: Any) -> object:
        if found is msgspec.UNSET:
            return (set_type(self.path) or set)(self.members)
        _refuse_none(self, found)
        return type(found)({*found, *self.members})

    def operands(self) -> Sequence[object]:
        return (self.members,)

    def __repr__(self) -> str:
        return f"{self.path!r}.add({', '.join(map(repr, self.members))})"


class RemoveMembers(Change[Any]):
    def __init__(self, path: Path[Any, Any], members: frozenset[object]) -> None:
        self.path = path
        self.members = members

    def applied(self, found: Any) -> object:
        if found is msgspec.UNSET or found is None:
            return found
        left = type(found)(set(found) - self.members)
        return left if left or not can_be_missing(self.path) else msgspec.UNSET

    def operands(self) -> Sequence[object]:
        return (self.members,)

    def __repr__(self) -> str:
        return f"{self.path!r}.remove({', '.join(map(repr, self.members))})"


class Append(Change[Any]):
    def __init__(self, path: Path[Any, Any], values: Sequence[object]) -> None:
        if not values:
            raise InvalidInput(f"{path!r}.append() adds nothing: pass at least one value")
        self.path = path
        self.values = values

    def applied(self, found: Any) -> object:
        if found is msgspec.UNSET:
            return list(self.values)
        _refuse_none(self, found)
        return [*found, *self.values]

    def operands(self) -> Sequence[object]:
        return (list(self.values),)

    def __repr__(self) -> str:
        return f"{self.path!r}.append({', '.join(map(repr, self.values))})"


def _decimal(number: Any) -> Decimal:
    """Return a number as DynamoDB adds it: a float counts as the decimal number that its shortest text shows."""
    return Decimal(float.__repr__(number)) if isinstance(number, float) else Decimal(number)


def add(path: Path[Any, Any], values: Sequence[object]) -> Change[Any]:
    """Return the change of `.add(…)`: of one number, or of members of a set."""
    if not values:
        raise InvalidInput(f"{path!r}.add() adds nothing: pass a number, or members of the set")
    if set_type(path) is not None:
        return AddMembers(path, frozenset(values))
    if len(values) > 1 or isinstance(values[0], bool) or not isinstance(values[0], int | float | Decimal):
        raise InvalidInput(f"{path!r}.add({', '.join(map(repr, values))}): pass one number")
    return Add(path, values[0])


def _refuse_none(change: Change[Any], found: object) -> None:
    if found is None:
        raise InvalidInput(f"{change!r}: it is None in this item: set it as a whole")


def apply(changes: Iterable[Change[Any]], image: Any) -> Any:
    """Return the entity as the changes leave it. `image` itself stays as it is."""
    for change in changes:
        image = _changed(image, [change.path.attribute, *change.path.steps], change)
    return image


def change_within(value: Any, steps: Sequence[object], change: Change[Any]) -> Any:
    """Return what a change makes of a value that it lies in, `steps` below it."""
    return _changed(value, steps, change)


def _changed(image: Any, steps: Sequence[object], change: Change[Any]) -> Any:
    step, *rest = steps
    in_map = isinstance(image, dict)
    found = image.get(step, msgspec.UNSET) if in_map else getattr(image, _name(step))
    if rest and (found is msgspec.UNSET or found is None):
        raise InvalidInput(f"{change!r}: there is no {_shown(step)} in the item to change: set it as a whole")
    value = _changed(found, rest, change) if rest else change.applied(found)
    if not in_map:
        return msgspec.structs.replace(image, **{_name(step): value})
    entries = {key: entry for key, entry in image.items() if key != step}
    return entries if value is msgspec.UNSET else {**entries, step: value}


def _name(step: Any) -> str:
    attribute: Attribute = step
    return attribute.name


def _shown(step: Any) -> str:
    return getattr(step, "name", repr(step))
