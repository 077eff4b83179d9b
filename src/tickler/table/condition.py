"""Conditions on one item: of writes, of filters, and of sparse indexes.

A condition is a value, not a function, so that what it depends on is known. It has three outcomes: true, false, or None where
the answer depends on an attribute that is not known. Missing, None and falsy are three different things: a comparison with a
missing attribute is false, except `!=`, which is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import msgspec

from tickler.errors import InvalidInput

if TYPE_CHECKING:
    from tickler.table.attribute import Path

E = TypeVar("E")

Lookup = Callable[[Any], object]  # the value at a path, MISSING, or UNKNOWN

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_ORDERED = ("number", "text", "bytes", "instant", "date")


class Unknown(Enum):
    """Stands for a value that is not known without reading the item."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


class Condition(Generic[E]):
    """Combine conditions with `&`, `|` and `~`. `and`, `or` and `not` cannot be overridden in Python, so they are refused."""

    def __and__(self, other: Condition[E]) -> Condition[E]:
        return And((self, other))

    def __or__(self, other: Condition[E]) -> Condition[E]:
        return Or((self, other))

    def __invert__(self) -> Condition[E]:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a condition is not true or false before it meets an item: combine conditions with &, | and ~")

    def evaluate(self, lookup: Lookup) -> bool | None:
        """Return whether the condition holds; None if that depends on what `lookup` does not know."""
        raise NotImplementedError  # each kind of condition does

    def leaves(self) -> Iterator[Leaf]:
        """Yield the conditions on one path each that this one consists of."""
        raise NotImplementedError  # each kind of condition does


class Leaf(Condition[Any]):
    """A condition on the value at one path."""

    path: Path[Any, Any]

    def leaves(self) -> Iterator[Leaf]:
        yield self

    def evaluate(self, lookup: Lookup) -> bool | None:
        found = lookup(self.path)
        return None if found is UNKNOWN else self.holds_for(found)

    def holds_for(self, found: Any) -> bool:
        """Tell whether the condition holds for a value, or for MISSING."""
        raise NotImplementedError  # each kind of condition does

    def operands(self) -> Sequence[object]:
        """Return the values that must have the type of the path."""
        return ()


class Compare(Leaf):
    def __init__(self, path: Path[Any, Any], operator: str, value: object) -> None:
        if value is msgspec.UNSET:
            raise InvalidInput(f"{path!r} {operator} MISSING is never asked: use .missing() or .exists()")
        if operator in _COMPARISONS and kind_of(value) not in _ORDERED:
            raise InvalidInput(f"{path!r} {operator} {value!r}: only numbers, text, bytes, instants and dates have an order")
        self.path = path
        self.operator = operator
        self.value = value

    def holds_for(self, found: Any) -> bool:
        if self.operator == "=":
            return same(found, self.value)
        if self.operator == "<>":
            return not same(found, self.value)
        return kind_of(found) == kind_of(self.value) and _COMPARISONS[self.operator](plain(found), plain(self.value))

    def operands(self) -> Sequence[object]:
        return (self.value,)

    def __repr__(self) -> str:
        shown = {"=": "==", "<>": "!="}.get(self.operator, self.operator)
        return f"{self.path!r} {shown} {text_of(self.value)}"


class OneOf(Leaf):
    def __init__(self, path: Path[Any, Any], values: Sequence[object]) -> None:
        if not values:
            raise InvalidInput(f"{path!r}.one_of() without a value is never true: name at least one")
        self.path = path
        self.values = values

    def holds_for(self, found: Any) -> bool:
        return any(same(found, value) for value in self.values)

    def operands(self) -> Sequence[object]:
        return self.values

    def __repr__(self) -> str:
        return f"{self.path!r}.one_of([{', '.join(map(text_of, self.values))}])"


class Exists(Leaf):
    def __init__(self, path: Path[Any, Any]) -> None:
        self.path = path

    def holds_for(self, found: Any) -> bool:
        return found is not msgspec.UNSET

    def __repr__(self) -> str:
        return f"{self.path!r}.exists()"


class StartsWith(Leaf):
    def __init__(self, path: Path[Any, Any], prefix: str) -> None:
        self.path = path
        self.value = prefix

    def holds_for(self, found: Any) -> bool:
        return isinstance(found, str) and found.startswith(self.value)

    def __repr__(self) -> str:
        return f"{self.path!r}.starts_with({self.value!r})"


class Contains(Leaf):
    def __init__(self, path: Path[Any, Any], member: object) -> None:
        self.path = path
        self.value = member

    def holds_for(self, found: Any) -> bool:
        if isinstance(found, str):
            return isinstance(self.value, str) and self.value in found
        return isinstance(found, Set | list) and any(same(member, self.value) for member in found)

    def __repr__(self) -> str:
        return f"{self.path!r}.contains({self.value!r})"


class And(Condition[Any]):
    def __init__(self, parts: Sequence[Condition[Any]]) -> None:
        self.parts = parts

    def evaluate(self, lookup: Lookup) -> bool | None:
        outcomes = [part.evaluate(lookup) for part in self.parts]
        return False if False in outcomes else None if None in outcomes else True

    def leaves(self) -> Iterator[Leaf]:
        for part in self.parts:
            yield from part.leaves()

    def __repr__(self) -> str:
        return f"({' & '.join(map(repr, self.parts))})"


class Or(Condition[Any]):
    def __init__(self, parts: Sequence[Condition[Any]]) -> None:
        self.parts = parts

    def evaluate(self, lookup: Lookup) -> bool | None:
        outcomes = [part.evaluate(lookup) for part in self.parts]
        return True if True in outcomes else None if None in outcomes else False

    def leaves(self) -> Iterator[Leaf]:
        for part in self.parts:
            yield from part.leaves()

    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self.parts))})"


class Not(Condition[Any]):
    def __init__(self, part: Condition[Any]) -> None:
        self.part = part

    def evaluate(self, lookup: Lookup) -> bool | None:
        outcome = self.part.evaluate(lookup)
        return None if outcome is None else not outcome

    def leaves(self) -> Iterator[Leaf]:
        return self.part.leaves()

    def __repr__(self) -> str:
        return f"~{self.part!r}"


# In this order, because a bool is an int and a datetime is a date.
_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "bool"),
    ((int, float, Decimal), "number"),
    (str, "text"),
    (bytes, "bytes"),
    (datetime, "instant"),
    (date, "date"),
    (Set, "set"),
    (Mapping, "map"),
    (Sequence, "list"),
    (type(None), "null"),
)


# The same for exact types, which is faster.
_KIND_OF_TYPE: dict[type, str] = {
    kind: next(name for types, name in _KINDS if issubclass(kind, types))
    for kind in (bool, int, float, Decimal, str, bytes, datetime, date, set, frozenset, dict, list, tuple, type(None))
}


def kind_of(value: object) -> str:
    """Return what DynamoDB would tell apart: True is not 1, and None is not missing."""
    known = _KIND_OF_TYPE.get(type(value))
    if known is not None:
        return known
    bare = plain(value)
    for types, kind in _KINDS:
        if isinstance(bare, types):
            return kind
    return type(bare).__name__


def plain(value: Any) -> Any:
    """Return the value of an enum member, and an instant in UTC: in Python, some wall times equal no instant of another zone."""
    if isinstance(value, Enum):
        return value.value
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value


def text_of(value: object) -> str:
    """Return the repr of a value, the same in every process: the order of sets depends on how texts are hashed."""
    if isinstance(value, Set):
        return f"{type(value).__name__}({{{', '.join(sorted(map(repr, value)))}}})"
    return repr(value)


def same(left: Any, right: Any) -> bool:
    """Compare by kind and value: `True` is not `1`, but `1` is `1.0`."""
    kind = kind_of(left)
    if kind != kind_of(right):
        return False
    left, right = (each.value if isinstance(each, Enum) else each for each in (left, right))
    if kind == "list":
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))
    if kind == "map":
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, msgspec.Struct):
        return all(same(getattr(left, name), getattr(right, name)) for name in left.__struct_fields__)
    return bool(plain(left) == plain(right))
