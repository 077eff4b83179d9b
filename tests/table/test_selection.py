"""Selections span exactly the keys whose values they name: compared with a filter over the rendered keys of all items."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tickler.errors import InvalidInput
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.selection import Selection

SOAK = os.environ.get("TICKLER_SOAK") == "1"
# A loaded machine may take long to draw the first examples, which says nothing about the code.
examples = settings(
    max_examples=3_000 if SOAK else 60,
    derandomize=not SOAK,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
NOW = datetime(2024, 3, 15, tzinfo=UTC)


class Thing(Entity, table=Table("things")):
    text: Attr[str] = attr()
    number: Attr[int] = attr()
    at: Attr[datetime] = attr()
    amount: Attr[Decimal] = attr()
    key = Key("THING", "T" / text / number)
    by_number = Index("gsi1", "THING", number.descending() / "N" / text)
    by_time = Index("gsi2", "THING", at.descending() / text)
    by_amount = Index("gsi3", "THING", "A" / amount / at)
    by_text = Index("gsi4", "THING", text)


texts = st.text("ab#$%&~!\0é\ud7ff\ue000\U0010ffff", min_size=1, max_size=3)
numbers = st.integers(-12, 12)
instants = st.integers(-3, 3).map(lambda step: NOW + timedelta(milliseconds=500 * step))
amounts = st.sampled_from([Decimal(each) for each in ("-10", "-1.5", "-1", "0", "0.5", "1", "1.5", "9", "10")])
things = st.lists(st.builds(Thing, text=texts, number=numbers, at=instants, amount=amounts), max_size=12)
VALUES: dict[str, st.SearchStrategy[Any]] = {"text": texts, "number": numbers, "at": instants, "amount": amounts}
BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "since": lambda value, bound: value >= bound,
    "after": lambda value, bound: value > bound,
    "until": lambda value, bound: value <= bound,
    "before": lambda value, bound: value < bound,
}
WAYS: list[tuple[str, list[str]]] = [
    ("key", ["text", "number"]),
    ("by_number", ["number", "text"]),
    ("by_time", ["at", "text"]),
    ("by_amount", ["amount", "at"]),
    ("by_text", ["text"]),
]


def selected(way: str, selection: Selection[Any, Any], found: list[Thing]) -> list[Thing]:
    """Return the things whose key in this index lies in the span of a selection."""
    pair = vars(Thing)[way]
    return [each for each in found if selection.span.contains(pair.render(pair.bound().lookup(each))[1])]


def every(way: str) -> Any:
    return getattr(Thing, way)()


@pytest.mark.parametrize(("way", "names"), WAYS)
@examples
@given(data=st.data(), found=things)
def test_bounds_keep_what_lies_within_them(way: str, names: list[str], data: st.DataObject, found: list[Thing]) -> None:
    depth = data.draw(st.integers(0, len(names) - 1))
    selection = every(way)
    expected = list(found)
    for name in names[:depth]:
        value = data.draw(st.sampled_from([getattr(each, name) for each in found]) if found else VALUES[name])
        selection = selection.under(value)
        expected = [each for each in expected if getattr(each, name) == value]
    for bound in data.draw(st.lists(st.sampled_from(list(BOUNDS)), max_size=3)):
        value = data.draw(VALUES[names[depth]])
        selection = getattr(selection, bound)(value)
        expected = [each for each in expected if BOUNDS[bound](getattr(each, names[depth]), value)]
    if data.draw(st.booleans()):
        value = data.draw(VALUES[names[depth]])
        selection = selection.under(value)
        expected = [each for each in expected if getattr(each, names[depth]) == value]
    assert selected(way, selection, found) == expected
    assert selected(way, selection.newest_first(), found) == expected


@examples
@given(found=things, low=amounts, high=amounts)
def test_between_includes_both_ends(found: list[Thing], low: Decimal, high: Decimal) -> None:
    expected = [each for each in found if low <= each.amount <= high]
    assert selected("by_amount", Thing.by_amount().between(low, high), found) == expected


@pytest.mark.parametrize("way", ["key", "by_text"])
@examples
@given(found=things, prefix=texts, bound=texts)
def test_starting_with_keeps_the_texts_with_a_prefix(way: str, found: list[Thing], prefix: str, bound: str) -> None:
    started = every(way).starting_with(prefix)
    expected = [each for each in found if each.text.startswith(prefix)]
    assert selected(way, started, found) == expected
    assert selected(way, started.before(bound), found) == [each for each in expected if each.text < bound]
    assert selected(way, every(way).after(bound).starting_with(prefix), found) == [each for each in expected if each.text > bound]


def test_newest_first_turns_the_direction_and_keeps_the_span() -> None:
    selection = Thing.key().under("a").since(3)
    assert not selection.backwards
    assert selection.newest_first().backwards
    assert selection.newest_first().under(4).backwards
    assert not selection.newest_first().newest_first().backwards
    assert selection.newest_first().span == selection.span


def test_spans_name_their_index_and_partition() -> None:
    assert Thing.key().span == (None, "THING", "T#", "T$", True)
    assert Thing.by_text().span == ("gsi4", "THING", None, None, True)
    assert Thing.key().under("a").under(3).span == (None, "THING", "T#a#A3", "T#a#A3", True)
    assert Thing.by_number().under(3).span == ("gsi1", "THING", "-Z6~#N#", "-Z6~#N$", True)


untyped: Any = Thing


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: untyped.key("x"), "the key 'THING' takes 0 values (), not 1"),
        (lambda: untyped.key.id("x"), "the key 'T' / Thing.text / Thing.number takes 2 values (text, number), not 1"),
        (lambda: untyped.key().under("a").under(3).under(4), "has no further attribute to select by"),
        (lambda: untyped.key().since(3), "Thing.text is part of a key: a key part cannot be of type int"),
        (lambda: untyped.key().since(None), "Thing.text is part of a key: a key part cannot be None: leave it out"),
        (lambda: untyped.key().starting_with(""), "Thing.text is part of a key: a key part cannot be empty"),
        (lambda: untyped.by_time().since(datetime(2024, 3, 15)), "a key part cannot be a naive datetime"),
        (lambda: untyped.by_number().starting_with("1"), "a key part cannot be of type str"),
    ],
)
def test_selections_that_make_no_sense_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert message in str(caught.value)
