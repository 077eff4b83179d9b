"""Proves that two conditions never hold for the same item, or that one implies another.

Sound, not complete: what it cannot prove is refused at definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from tickler.table.condition import (
    And,
    Compare,
    Condition,
    Contains,
    Exists,
    Leaf,
    Not,
    OneOf,
    Or,
    StartsWith,
    kind_of,
    plain,
    same,
)

MAX_CASES = 256  # of a condition in disjunctive form

_UPPER = ("<", "<=")
_LOWER = (">", ">=")
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Atom(NamedTuple):
    """A condition on one path, or its negation."""

    condition: Leaf
    negated: bool

    @property
    def path(self) -> tuple[object, ...]:
        found = self.condition.path
        return (found.attribute, *found.steps)

    def may_hold_for(self, value: object) -> bool:
        return self.condition.holds_for(value) is not self.negated

    def needs_presence(self) -> bool:
        """A comparison is false for a missing attribute, except `!=`."""
        if isinstance(self.condition, Compare) and self.condition.operator == "<>":
            return self.negated
        return not self.negated

    def values(self) -> list[object] | None:
        """Return the only values for which this holds, if they can be listed."""
        condition = self.condition
        if isinstance(condition, OneOf) and not self.negated:
            return list(condition.values)
        if isinstance(condition, Compare) and condition.operator == ("<>" if self.negated else "="):
            return [condition.value]
        return None


def never_both(one: Condition[Any], other: Condition[Any]) -> bool:
    """Tell whether it is certain that no item satisfies both conditions."""
    found = cases(one & other)
    return found is not None and all(any(_contradict(a, b) for a, b in product(case, case)) for case in found)


def implies(one: Condition[Any], other: Condition[Any]) -> bool:
    """Tell whether it is certain that each item that satisfies `one` satisfies `other`, too."""
    return never_both(one, ~other)


def cases(condition: Condition[Any]) -> list[tuple[Atom, ...]] | None:
    """Return the alternatives of a condition, each a conjunction; None if there are too many."""
    try:
        return list(_cases(condition, negated=False))
    except OverflowError:
        return None


def _cases(condition: Condition[Any], *, negated: bool) -> Iterator[tuple[Atom, ...]]:
    """Yield the alternatives of a condition, each a conjunction."""
    if isinstance(condition, Not):
        yield from _cases(condition.part, negated=not negated)
    elif isinstance(condition, And | Or):
        parts = [list(_cases(part, negated=negated)) for part in condition.parts]
        if isinstance(condition, And) is negated:
            for part in parts:
                yield from part
            return
        for number, combination in enumerate(product(*parts)):
            if number >= MAX_CASES:
                raise OverflowError
            yield tuple(literal for part in combination for literal in part)
    else:
        assert isinstance(condition, Leaf)
        yield (Atom(condition, negated),)


def _contradict(one: Atom, other: Atom) -> bool:
    if one.path != other.path:
        return False
    is_missing = isinstance(one.condition, Exists) and one.negated
    if is_missing and other.needs_presence():
        return True
    if one.negated is not other.negated and _alike(one.condition, other.condition):
        return True
    values = one.values()
    if values is not None:
        return not any(other.may_hold_for(value) for value in values)
    return _ranges_apart(one, other)


def _alike(one: Leaf, other: Leaf) -> bool:
    """Tell whether two conditions on the same path are the same one."""
    if isinstance(one, StartsWith | Contains):
        return type(one) is type(other) and isinstance(other, StartsWith | Contains) and same(one.value, other.value)
    return isinstance(one, Exists) and isinstance(other, Exists)  # comparisons are decided by their values


def _ranges_apart(one: Atom, other: Atom) -> bool:
    """Tell whether one is an upper bound that lies below the other, a lower bound."""
    if not (isinstance(one.condition, Compare) and isinstance(other.condition, Compare)):
        return False
    upper, lower = one.condition.operator, other.condition.operator
    high, low = plain(one.condition.value), plain(other.condition.value)
    if one.negated or other.negated:  # the negation of a comparison holds for missing attributes and other types, too,
        if one.negated is other.negated or kind_of(high) != kind_of(low):  # unless the other comparison excludes them
            return False
        upper, lower = (_OPPOSITE.get(upper, "") if one.negated else upper, _OPPOSITE.get(lower, "") if other.negated else lower)
    if upper not in _UPPER or lower not in _LOWER:
        return False
    if kind_of(high) != kind_of(low):
        return True  # no value satisfies both
    return bool(high < low) if upper == "<=" and lower == ">=" else bool(high <= low)
