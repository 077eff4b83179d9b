"""Attributes of entities: how a class declares them, and the paths by which expressions name them.

For type checkers `Attr[T]` is a descriptor: `order.status` is a T, and `Order.status` is a `Path[Order, T]`. At run time it is
the annotation T, so that msgspec sees plain fields, and the metaclass of entities answers `Order.status`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, TypeVarTuple, overload

import msgspec

from tickler.errors import InvalidInput
from tickler.table import change, condition
from tickler.table.change import Change
from tickler.table.condition import Condition
from tickler.table.declaration import MISSING, Attribute, Missing, Role
from tickler.table.template import KeyPart, Template

E = TypeVar("E")
E2 = TypeVar("E2")
K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")
Us = TypeVarTuple("Us")


class Path(Generic[E, T]):
    """Names an attribute, a field of a part in it, or an entry of a map in it: `Order.address[Address.city]`, `Price.values[at]`.

    Comparisons give conditions; `set`, `add` and `remove` give changes for `update`. There is one overload for each
    type, because mypy solves a union of paths, or a type variable with constraints, too generously.
    """

    def __init__(self, attribute: Attribute, steps: tuple[object, ...] = ()) -> None:
        self.attribute = attribute
        self.steps = steps  # of fields of parts (Attribute) and keys of maps (any other value)

    if TYPE_CHECKING:

        def __eq__(self, other: T) -> Condition[E]: ...  # type: ignore[override]  # a condition, not a bool
        def __ne__(self, other: T) -> Condition[E]: ...  # type: ignore[override]  # likewise
    else:

        def __eq__(self, other):
            return condition.Compare(self, "=", other)

        def __ne__(self, other):
            return condition.Compare(self, "<>", other)

    __hash__ = object.__hash__

    def __lt__(self, other: T) -> Condition[E]:
        return condition.Compare(self, "<", other)

    def __le__(self, other: T) -> Condition[E]:
        return condition.Compare(self, "<=", other)

    def __gt__(self, other: T) -> Condition[E]:
        return condition.Compare(self, ">", other)

    def __ge__(self, other: T) -> Condition[E]:
        return condition.Compare(self, ">=", other)

    def between(self, low: T, high: T) -> Condition[E]:
        """True from `low` to `high`, both included."""
        return (self >= low) & (self <= high)

    def one_of(self, values: Iterable[T]) -> Condition[E]:
        return condition.OneOf(self, tuple(values))

    def exists(self) -> Condition[E]:
        """True if the attribute is present, even as None, False or 0."""
        return condition.Exists(self)

    def missing(self) -> Condition[E]:
        return ~self.exists()

    def starts_with(self: Path[E, str] | Path[E, str | Missing], prefix: str) -> Condition[E]:
        return condition.StartsWith(self, prefix)

    @overload
    def contains(self: Path[E, str], member: str, /) -> Condition[E]: ...
    @overload
    def contains(self: Path[E, str | Missing], member: str, /) -> Condition[E]: ...
    @overload
    def contains(self: Path[E, builtins.set[V]], member: V, /) -> Condition[E]: ...
    @overload
    def contains(self: Path[E, builtins.set[V] | Missing], member: V, /) -> Condition[E]: ...
    @overload
    def contains(self: Path[E, frozenset[V]], member: V, /) -> Condition[E]: ...
    @overload
    def contains(self: Path[E, frozenset[V] | Missing], member: V, /) -> Condition[E]: ...
    @overload
    def contains(self: Path[E, list[V]], member: V, /) -> Condition[E]: ...
    @overload
    def contains(self: Path[E, list[V] | Missing], member: V, /) -> Condition[E]: ...
    def contains(self, member: Any, /) -> Condition[E]:
        """True if a text has this part, or a set or list this member."""
        return condition.Contains(self, member)

    def set(self, value: T) -> Change[E]:
        """Set the attribute, whatever it is now."""
        return change.Set(self, value)

    @overload
    def remove(self: Path[E, builtins.set[V]], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def remove(self: Path[E, builtins.set[V] | Missing], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def remove(self: Path[E, frozenset[V]], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def remove(self: Path[E, frozenset[V] | Missing], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def remove(self: Path[E, V | Missing]) -> Change[E]: ...
    def remove(self, *members: Any) -> Change[E]:
        """Remove the attribute, which has to allow `Missing`; or remove members from a set."""
        return change.RemoveMembers(self, frozenset(members)) if members else change.Remove(self)

    @overload
    def add(self: Path[E, builtins.set[V]], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def add(self: Path[E, builtins.set[V] | Missing], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def add(self: Path[E, frozenset[V]], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def add(self: Path[E, frozenset[V] | Missing], member: V, /, *members: V) -> Change[E]: ...
    @overload
    def add(self: Path[E, int], value: int, /) -> Change[E]: ...
    @overload
    def add(self: Path[E, int | Missing], value: int, /) -> Change[E]: ...
    @overload
    def add(self: Path[E, float], value: float, /) -> Change[E]: ...
    @overload
    def add(self: Path[E, float | Missing], value: float, /) -> Change[E]: ...
    @overload
    def add(self: Path[E, Decimal], value: Decimal, /) -> Change[E]: ...
    @overload
    def add(self: Path[E, Decimal | Missing], value: Decimal, /) -> Change[E]: ...
    def add(self, *values: Any) -> Change[E]:
        """Add to a number, which starts at its default, or at 0; or add members to a set."""
        return change.add(self, values)

    @overload
    def append(self: Path[E, list[V]], value: V, /, *values: V) -> Change[E]: ...
    @overload
    def append(self: Path[E, list[V] | Missing], value: V, /, *values: V) -> Change[E]: ...
    def append(self, *values: Any) -> Change[E]:
        """Add values at the end of a list."""
        return change.Append(self, values)

    @overload
    def __getitem__(self: Path[E, dict[K, V]], key: K) -> Path[E, V | Missing]: ...
    @overload
    def __getitem__(self: Path[E, dict[K, V] | Missing], key: K) -> Path[E, V | Missing]: ...
    @overload
    def __getitem__(self: Path[E, E2 | Missing], key: Path[E2, V]) -> Path[E, V]: ...
    @overload
    def __getitem__(self: Path[E, E2 | None], key: Path[E2, V]) -> Path[E, V]: ...
    @overload
    def __getitem__(self: Path[E, E2], key: Path[E2, V]) -> Path[E, V]: ...
    def __getitem__(self, key: Any) -> Any:
        steps = (key.attribute, *key.steps) if isinstance(key, Path) else (key,)
        return Path(self.attribute, (*self.steps, *steps))

    if not TYPE_CHECKING:  # checkers see these on `Attr`, in the body of a class

        def __rtruediv__(self, constant):
            return Template.of(constant) / self

        def __truediv__(self, other):
            return Template.of(self) / other

        def descending(self):
            return KeyPart(self, descending=True)

    def __repr__(self) -> str:
        return f"{self.attribute!r}{''.join(f'[{step!r}]' for step in self.steps)}"


if TYPE_CHECKING:

    class Attr(Generic[T]):
        """The annotation of an attribute: `status: Attr[str]`."""

        @overload
        def __get__(self, obj: None, owner: type[E]) -> Path[E, T]: ...
        @overload
        def __get__(self, obj: object, owner: Any) -> T: ...
        def __get__(self, obj: object, owner: Any) -> Any: ...
        def __set__(self, obj: Any, value: T) -> None: ...

        # In the body of a class an attribute builds keys and conditions of indexes.
        @overload
        def __rtruediv__(self: Attr[V | Missing], constant: str) -> Template[V]: ...
        @overload
        def __rtruediv__(self, constant: str) -> Template[T]: ...
        def __rtruediv__(self, constant: str) -> Any: ...
        @overload
        def __truediv__(self: Attr[V | Missing], other: str) -> Template[V]: ...
        @overload
        def __truediv__(self, other: str) -> Template[T]: ...
        @overload
        def __truediv__(self: Attr[V | Missing], other: Attr[K | Missing]) -> Template[V, K]: ...
        @overload
        def __truediv__(self: Attr[V | Missing], other: Attr[K]) -> Template[V, K]: ...
        @overload
        def __truediv__(self, other: Attr[V | Missing]) -> Template[T, V]: ...
        @overload
        def __truediv__(self, other: Attr[V]) -> Template[T, V]: ...
        def __truediv__(self, other: Any) -> Any: ...
        def descending(self) -> Attr[T]:
            """Sort this part of a key from the highest to the lowest. For numbers, instants and dates."""
            ...

        def __eq__(self, other: T) -> Condition[Any]: ...  # type: ignore[override]  # a condition, not a bool
        def __ne__(self, other: T) -> Condition[Any]: ...  # type: ignore[override]  # likewise
        def __lt__(self, other: T) -> Condition[Any]: ...
        def __le__(self, other: T) -> Condition[Any]: ...
        def __gt__(self, other: T) -> Condition[Any]: ...
        def __ge__(self, other: T) -> Condition[Any]: ...
        def between(self, low: T, high: T) -> Condition[Any]: ...
        def one_of(self, values: Iterable[T]) -> Condition[Any]: ...
        def exists(self) -> Condition[Any]: ...
        def missing(self) -> Condition[Any]: ...
        def starts_with(self: Attr[str] | Attr[str | Missing], prefix: str) -> Condition[Any]: ...
        def contains(self, member: Any, /) -> Condition[Any]: ...
        @overload
        def __getitem__(self: Attr[dict[K, V]], key: K) -> Attr[V | Missing]: ...
        @overload
        def __getitem__(self: Attr[dict[K, V] | Missing], key: K) -> Attr[V | Missing]: ...
        @overload
        def __getitem__(self: Attr[E2 | Missing], key: Path[E2, V]) -> Attr[V]: ...
        @overload
        def __getitem__(self: Attr[E2], key: Path[E2, V]) -> Attr[V]: ...
        def __getitem__(self, key: Any) -> Any: ...

else:

    class Attr:
        """The annotation of an attribute: `status: Attr[str]`."""

        def __class_getitem__(cls, kind):
            return Annotated[kind, cls]


def attr(*, default: Any = msgspec.NODEFAULT, version: bool = False, expires: bool = False, deleted: bool = False) -> Any:
    """Declare more about an attribute than its type. An attribute that the class body names in a key needs `= attr()`.

    `version`: an integer that each write raises, and that `put` compares, so that no write is lost. `expires`: an instant from
    which on the item is absent. `deleted`: the instant that `soft_delete` sets and `restore` removes. Their defaults are 0 and
    MISSING, but a checker knows only a `default=` that it sees.
    """
    if sum((version, expires, deleted)) > 1:
        raise InvalidInput("attr(): version, expires and deleted are three attributes: choose one for this one")
    if version and default is msgspec.NODEFAULT:
        default = 0
    if (expires or deleted) and default is msgspec.NODEFAULT:
        default = MISSING
    return Path(Attribute(default=default, role=Role(version, expires, deleted)))
