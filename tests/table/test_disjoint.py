"""Two indexes of an entity share one of the table only where it is certain that no item is in both."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tickler.errors import InvalidInput
from tickler.table import MISSING, Attr, Condition, Entity, Index, Key, Missing, Table, attr
from tickler.table.disjoint import implies, never_both

SOAK = os.environ.get("TICKLER_SOAK") == "1"
examples = settings(
    max_examples=5_000 if SOAK else 150,
    derandomize=not SOAK,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

Make = Callable[[Any, Any, Any], Any]


def share(one: Make, other: Make) -> None:
    class Thing(Entity, table=Table("things")):
        id: Attr[str] = attr()
        status: Attr[Literal["new", "done", "lost"]] = attr()
        size: Attr[int] = attr(default=0)
        gone: Attr[int | Missing] = attr(default=MISSING)
        key = Key("THING" / id, "X")
        first = Index("gsi1", "FIRST", id, when=one(status, size, gone))
        second = Index("gsi1", "SECOND", id, when=other(status, size, gone))


APART: list[tuple[Make, Make]] = [
    (lambda status, size, gone: status == "new", lambda status, size, gone: status == "done"),
    (lambda status, size, gone: status == "new", lambda status, size, gone: status != "new"),
    (lambda status, size, gone: status == "new", lambda status, size, gone: ~(status == "new")),
    (lambda status, size, gone: status.one_of(["new", "done"]), lambda status, size, gone: status == "lost"),
    (lambda status, size, gone: status.one_of(["new", "done"]), lambda status, size, gone: ~status.one_of(["done", "new"])),
    (lambda status, size, gone: gone.exists(), lambda status, size, gone: gone.missing()),
    (lambda status, size, gone: gone > 3, lambda status, size, gone: gone.missing()),
    (lambda status, size, gone: gone == 3, lambda status, size, gone: gone.missing()),
    (lambda status, size, gone: size < 3, lambda status, size, gone: size >= 3),
    (lambda status, size, gone: status.starts_with("n"), lambda status, size, gone: ~status.starts_with("n")),
    (lambda status, size, gone: status.contains("e"), lambda status, size, gone: ~status.contains("e")),
    (lambda status, size, gone: size <= 3, lambda status, size, gone: size > 3),
    (lambda status, size, gone: size.between(1, 3), lambda status, size, gone: size == 4),
    (lambda status, size, gone: (status == "new") & (size > 3), lambda status, size, gone: (status == "done") | (size < 2)),
    (lambda status, size, gone: ~((status == "new") | (size > 3)), lambda status, size, gone: status == "new"),
]
TOGETHER: list[tuple[Make, Make]] = [
    (lambda status, size, gone: None, lambda status, size, gone: None),
    (lambda status, size, gone: status == "new", lambda status, size, gone: None),
    (lambda status, size, gone: status == "new", lambda status, size, gone: size == 3),
    (lambda status, size, gone: status == "new", lambda status, size, gone: status != "done"),
    (lambda status, size, gone: gone != 3, lambda status, size, gone: gone.missing()),
    (lambda status, size, gone: ~(gone > 3), lambda status, size, gone: gone.missing()),
    (lambda status, size, gone: size <= 3, lambda status, size, gone: size >= 3),
    (lambda status, size, gone: status.starts_with("n"), lambda status, size, gone: ~status.starts_with("d")),
    (lambda status, size, gone: status.starts_with("n"), lambda status, size, gone: ~status.contains("n")),
    (lambda status, size, gone: ~(gone < 3), lambda status, size, gone: gone >= 3),
    (lambda status, size, gone: gone <= 3, lambda status, size, gone: ~(gone > 3)),
    (lambda status, size, gone: (status == "new") | (size > 3), lambda status, size, gone: status == "done"),
]


@pytest.mark.parametrize(("one", "other"), APART)
def test_conditions_that_exclude_each_other_may_share_an_index(one: Make, other: Make) -> None:
    share(one, other)
    share(other, one)


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_conditions_that_may_hold_together_may_not(one: Make, other: Make) -> None:
    for pair in ((one, other), (other, one)):
        with pytest.raises(InvalidInput) as caught:
            share(*pair)
        assert str(caught.value) == (
            "Thing.first and Thing.second share gsi1, where an item has one key, and both may hold for the same item: give them "
            "`when=` conditions that exclude each other, or another index"
        )


def test_an_attribute_in_the_key_of_an_index_is_present() -> None:
    class Thing(Entity, table=Table("things")):
        id: Attr[str] = attr()
        gone: Attr[int | Missing] = attr(default=MISSING)
        key = Key("THING" / id, "X")
        there = Index("gsi1", "THERE", id, when=gone.missing())
        trash = Index("gsi1", "GONE", gone / id)

    assert Thing(id="a").there
    assert Thing(id="a", gone=3).trash


class Item(Entity, table=Table("items")):
    id: Attr[str] = attr()
    one: Attr[int | Missing | None] = attr(default=MISSING)
    two: Attr[int | Missing | None] = attr(default=MISSING)
    key = Key("ITEM" / id, "X")


ITEMS = [Item(id="a", one=one, two=two) for one, two in product([MISSING, None, 0, 1, 2, 3], repeat=2)]


def leaves(path: Any) -> st.SearchStrategy[Condition[Item]]:
    numbers = st.integers(0, 3)
    return st.one_of(
        st.just(path.exists()),
        st.just(path == None),  # noqa: E711
        st.builds(lambda value: path == value, numbers),
        st.builds(lambda value: path != value, numbers),
        st.builds(lambda value: path < value, numbers),
        st.builds(lambda value: path <= value, numbers),
        st.builds(lambda value: path > value, numbers),
        st.builds(lambda value: path >= value, numbers),
        st.builds(lambda values: path.one_of(values), st.lists(numbers, min_size=1, max_size=2)),
    )


conditions = st.recursive(
    leaves(Item.one) | leaves(Item.two),
    lambda inner: st.one_of(
        st.builds(lambda one, other: one & other, inner, inner),
        st.builds(lambda one, other: one | other, inner, inner),
        st.builds(lambda one: ~one, inner),
    ),
    max_leaves=5,
)


@examples
@given(conditions, conditions)
def test_a_proof_is_never_wrong(one: Condition[Item], other: Condition[Item]) -> None:
    if never_both(one, other):
        lookup = Item.key._pair.bound().lookup
        assert not [each for each in ITEMS if one.evaluate(lookup(each)) and other.evaluate(lookup(each))]


def test_a_condition_of_too_many_cases_is_not_proved() -> None:
    many: Any = Item.one == 1
    for number in range(12):
        many &= (Item.one == number) | (Item.two == number)
    assert not never_both(many, Item.one == 99)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Item.one > 5, Item.one > 2),
        (Item.one >= 5, Item.one > 4),
        (Item.one == 5, Item.one > 4),
        (Item.one < 2, Item.one <= 2),
        (Item.one == 1, Item.one.exists()),
        (Item.one == 1, Item.one.one_of([1, 2])),
        ((Item.one == 1) & (Item.two == 2), Item.two.exists()),
        (Item.one == 1, (Item.one == 1) | (Item.two == 2)),
    ],
)
def test_a_narrower_condition_implies_a_wider_one(one: Condition[Item], other: Condition[Item]) -> None:
    assert implies(one, other)
    assert not implies(other, one)


@examples
@given(conditions, conditions)
def test_an_implication_is_never_wrong(one: Condition[Item], other: Condition[Item]) -> None:
    if implies(one, other):
        lookup = Item.key._pair.bound().lookup
        assert not [each for each in ITEMS if one.evaluate(lookup(each)) and not other.evaluate(lookup(each))]
