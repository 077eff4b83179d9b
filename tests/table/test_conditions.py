"""Conditions: three outcomes, kinds of values told apart, and missing, None and falsy as three different things."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from itertools import product
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest

from tickler.errors import InvalidInput
from tickler.table import MISSING, Attr, Condition, Entity, Key, Missing, Part, Table, attr
from tickler.table.condition import UNKNOWN, Compare, Contains
from tickler.table.rendering import predicate

BERLIN = ZoneInfo("Europe/Berlin")
OUTCOMES: tuple[bool | None, ...] = (True, False, None)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(Part):
    city: Attr[str]
    zip: Attr[str | None] = attr(default=None)


class Thing(Entity, table=Table("things")):
    id: Attr[str] = attr()
    number: Attr[int | Missing | None] = attr(default=MISSING)
    flag: Attr[bool] = attr(default=False)
    text: Attr[str] = attr(default="")
    colour: Attr[Colour] = attr(default=Colour.RED)
    at: Attr[datetime | Missing] = attr(default=MISSING)
    raw: Attr[bytes] = attr(default=b"")
    tags: Attr[set[str]] = attr(default=set())
    lines: Attr[list[int]] = attr(default=[])
    address: Attr[Address | None] = attr(default=None)
    prices: Attr[dict[str, Decimal]] = attr(default={})
    size: Attr[Literal["s", "m"]] = attr(default="s")
    key = Key("THING" / id, "X")


DEFINITION = Thing.key._pair.bound()


def holds(condition: Condition[Thing], thing: Thing) -> bool | None:
    """Evaluate a condition, also as the function into which writes make it."""
    DEFINITION.check_condition(condition)
    found = condition.evaluate(DEFINITION.lookup(thing))
    assert predicate(condition)(thing) is found
    return found


def outcome(value: bool | None) -> Condition[Thing]:
    """Return a condition with this outcome."""
    found = UNKNOWN if value is None else 1 if value else 0

    class Fixed(Compare):
        def evaluate(self, lookup: Callable[[Any], object]) -> bool | None:
            return super().evaluate(lambda path: found)

    return Fixed(Thing.number, "=", 1)


@pytest.mark.parametrize(("one", "other"), list(product(OUTCOMES, OUTCOMES)))
def test_what_is_not_known_stays_unknown_unless_it_does_not_matter(one: bool | None, other: bool | None) -> None:
    def evaluate(condition: Condition[Thing]) -> bool | None:
        return condition.evaluate(lambda path: UNKNOWN)

    possible = [[True, False] if each is None else [each] for each in (one, other)]
    both = {left and right for left, right in product(*possible)}
    either = {left or right for left, right in product(*possible)}
    assert evaluate(outcome(one) & outcome(other)) is (both.pop() if len(both) == 1 else None)
    assert evaluate(outcome(one) | outcome(other)) is (either.pop() if len(either) == 1 else None)
    assert evaluate(~outcome(one)) is (None if one is None else not one)


@pytest.mark.parametrize("use", [bool, lambda condition: condition and condition, lambda condition: not condition])
def test_a_condition_is_not_true_or_false_by_itself(use: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"combine conditions with &, \| and ~"):
        use(Thing.flag == True)  # noqa: E712


@pytest.mark.parametrize(
    ("value", "other", "expected"),
    [
        (1, 1.0, True),
        (1, Decimal(1), True),
        (0.5, Decimal("0.5"), True),
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (None, None, True),
        (None, MISSING, False),
        ("", None, False),
        ("1", 1, False),
        (b"a", "a", False),
        (Colour.RED, Colour.RED, True),
        (Colour.RED, "red", True),
        ([1], [True], False),
        ({"a": 1}, {"a": Decimal(1)}, True),
        ({"a": 1}, {"b": 1}, False),
        ({1}, frozenset({1}), True),
        (Address(city="Bonn"), Address(city="Bonn"), True),
        (Address(city="Bonn"), Address(city="Köln"), False),
        (datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), datetime(2024, 10, 27, 0, 30, tzinfo=UTC), True),
    ],
)
def test_values_are_equal_if_their_kinds_are(value: object, other: object, expected: bool) -> None:
    assert Compare(Thing.number, "=", value).holds_for(other) is expected
    assert Compare(Thing.number, "<>", value).holds_for(other) is not expected


MISSING_NUMBER, NONE, ZERO, THREE = (
    Thing(id="a"), Thing(id="a", number=None), Thing(id="a", number=0), Thing(id="a", number=3),
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Thing.number.exists(), [False, True, True, True]),
        (Thing.number.missing(), [True, False, False, False]),
        (Thing.number == None, [False, True, False, False]),  # noqa: E711
        (Thing.number != None, [True, False, True, True]),  # noqa: E711
        (Thing.number == 0, [False, False, True, False]),
        (Thing.number != 0, [True, True, False, True]),
        (Thing.number < 3, [False, False, True, False]),
        (Thing.number <= 3, [False, False, True, True]),
        (~(Thing.number < 3), [True, True, False, True]),
        (Thing.number >= 0, [False, False, True, True]),
        (Thing.number.between(0, 2), [False, False, True, False]),
        (Thing.number.one_of([0, None]), [False, True, True, False]),
    ],
)
def test_missing_none_and_zero_are_three_things(condition: Condition[Thing], expected: list[bool]) -> None:
    assert [holds(condition, each) for each in (MISSING_NUMBER, NONE, ZERO, THREE)] == expected


def test_conditions_reach_into_parts_and_maps() -> None:
    thing = Thing(id="a", address=Address(city="Bonn"), prices={"x": Decimal(1)})
    assert holds(Thing.address[Address.city] == "Bonn", thing)
    assert holds(Thing.address[Address.zip] == None, thing)  # noqa: E711
    assert holds(Thing.prices["x"] > Decimal("0.5"), thing)
    assert holds(Thing.prices["y"].missing(), thing)
    assert holds(Thing.address[Address.city].missing(), Thing(id="a"))
    assert holds(Thing.address[Address.city] != "Bonn", Thing(id="a"))


def test_texts_lists_and_sets_contain() -> None:
    thing = Thing(id="a", text="hello", tags={"x"}, lines=[1, 2])
    assert holds(Thing.text.contains("ell"), thing)
    assert holds(Thing.text.starts_with("he"), thing)
    assert holds(Thing.tags.contains("x"), thing)
    assert not holds(Thing.tags.contains("y"), thing)
    assert holds(Thing.lines.contains(2), thing)
    assert not Contains(Thing.raw, 97).holds_for(b"a")


def test_members_of_enums_and_instants_have_the_order_of_their_values() -> None:
    thing = Thing(id="a", at=datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN))
    assert holds(Thing.colour > Colour.BLUE, thing)
    assert holds(Thing.at <= datetime(2024, 10, 27, 0, 30, tzinfo=UTC), thing)
    assert holds(Thing.at >= datetime(2024, 10, 27, 0, 30, tzinfo=UTC), thing)


untyped: Any = Thing


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: untyped.flag < True, "Thing.flag < True: only numbers, text, bytes, instants and dates have an order"),
        (lambda: untyped.number >= None, "Thing.number >= None: only numbers, text, bytes, instants and dates have an order"),
        (lambda: untyped.number == MISSING, "Thing.number = MISSING is never asked: use .missing() or .exists()"),
        (lambda: untyped.number.one_of([]), "Thing.number.one_of() without a value is never true: name at least one"),
        (lambda: untyped.number == "1", "Thing.number cannot be '1': expected `int | null`, got `str`"),
        (lambda: untyped.number == True, "Thing.number cannot be True: expected `int | null`, got `bool`"),  # noqa: E712
        (lambda: untyped.size == "l", "Thing.size cannot be 'l': invalid enum value 'l'"),
        (lambda: untyped.at > datetime(2024, 3, 15), "Thing.at is a naive datetime: give it a time zone such as tzinfo=UTC"),
        (lambda: untyped.text == "\ud800", "Thing.text has the lone surrogate '\\ud800', which UTF-8 cannot express: replace it"),
        (lambda: untyped.number > float("nan"), "Thing.number is nan: pass a finite number, or leave it out"),
        (lambda: untyped.number > 10**38, "Thing.number has more than 38 digits: store it as a text"),
        (lambda: untyped.raw.contains(b"a"), "Thing.raw.contains(b'a'): only texts, lists and sets contain something"),
        (lambda: untyped.lines.contains("a"), "Thing.lines cannot be 'a': expected `int`, got `str`"),
        (lambda: untyped.number["x"] == 1, "Thing.number['x']: 'x' is a key of a map, and there is none at this place"),
        (lambda: Address.city == "Bonn", "Address.city is not an attribute of Thing: use those of Thing"),
    ],
)
def test_conditions_that_make_no_sense_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        DEFINITION.check_condition(make())
    assert str(caught.value) == message
