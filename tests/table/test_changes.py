"""Changes: what they leave of an item, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tickler.errors import InvalidInput
from tickler.table import MISSING, Attr, Change, Entity, Key, Missing, Part, Table, attr
from tickler.table.change import apply

DAY = date(2024, 3, 15)


class Country(Part):
    code: Attr[str]
    visits: Attr[int | Missing] = attr(default=MISSING)


class Address(Part):
    city: Attr[str]
    country: Attr[Country | Missing] = attr(default=MISSING)


class Thing(Entity, table=Table("things")):
    id: Attr[str] = attr()
    count: Attr[int] = attr(default=0)
    total: Attr[Decimal | Missing] = attr(default=MISSING)
    weight: Attr[float] = attr(default=0.0)
    note: Attr[str | None] = attr(default=None)
    maybe: Attr[int | None] = attr(default=None)
    tags: Attr[set[str] | Missing] = attr(default=MISSING)
    labels: Attr[frozenset[str]] = attr(default=frozenset())
    lines: Attr[list[str] | Missing] = attr(default=MISSING)
    address: Attr[Address | Missing] = attr(default=MISSING)
    second: Attr[Address | None] = attr(default=None)
    prices: Attr[dict[date, Decimal]] = attr(default={})
    homes: Attr[dict[str, Address]] = attr(default={})
    version: Attr[int] = attr(default=0, version=True)
    key = Key("THING" / id, "X")


DEFINITION = Thing.key._pair.bound()
EMPTY = Thing(id="a")
FULL = Thing(
    id="a",
    count=3,
    total=Decimal("1.5"),
    tags={"x", "y"},
    labels=frozenset({"x"}),
    lines=["one"],
    address=Address(city="Bonn", country=Country(code="DE")),
    prices={DAY: Decimal(1)},
    homes={"first": Address(city="Bonn")},
)


def changed(thing: Thing, *changes: Change[Thing]) -> Any:
    for change in changes:
        DEFINITION.check_change(change)
    after = apply(changes, thing)
    DEFINITION.encode(after)
    return after


def test_attributes_are_set_and_removed() -> None:
    after = changed(FULL, Thing.count.set(5), Thing.note.set("n"), Thing.total.remove(), Thing.address.remove())
    assert (after.count, after.note, after.total, after.address) == (5, "n", MISSING, MISSING)
    assert FULL.count == 3


def test_numbers_are_added_to_what_is_there_or_to_nothing() -> None:
    assert changed(FULL, Thing.count.add(-4)).count == -1
    assert changed(FULL, Thing.weight.add(0.5)).weight == 0.5
    assert changed(FULL, Thing.total.add(Decimal("0.25"))).total == Decimal("1.75")
    assert changed(EMPTY, Thing.total.add(Decimal("0.25"))).total == Decimal("0.25")


@pytest.mark.parametrize("added", [1, Decimal(1)])
def test_decimals_are_added_with_38_digits(added: Any) -> None:
    thing = Thing(id="a", total=Decimal("1234567890123456789012345678901234567.5"))
    assert changed(thing, Thing.total.add(added)).total == Decimal("1234567890123456789012345678901234568.5")


def test_sets_keep_their_type() -> None:
    assert changed(FULL, Thing.tags.add("z", "x")).tags == {"x", "y", "z"}
    assert changed(FULL, Thing.tags.remove("x", "absent")).tags == {"y"}
    assert type(changed(EMPTY, Thing.tags.add("z")).tags) is set
    assert type(changed(EMPTY, Thing.labels.add("z")).labels) is frozenset
    assert changed(EMPTY, Thing.tags.remove("z")).tags is MISSING
    assert changed(FULL, Thing.tags.remove("x", "y")).tags is MISSING
    assert changed(FULL, Thing.labels.remove("x")).labels == frozenset()
    assert changed(FULL, Thing.tags.remove()).tags is MISSING


def test_lists_grow_at_the_end() -> None:
    assert changed(FULL, Thing.lines.append("two", "three")).lines == ["one", "two", "three"]
    assert changed(EMPTY, Thing.lines.append("two")).lines == ["two"]
    assert FULL.lines == ["one"]


def test_changes_reach_into_parts_and_maps() -> None:
    city, country = Thing.address[Address.city], Thing.address[Address.country]
    after = changed(FULL, city.set("Köln"), country[Country.visits].add(1), Thing.homes["first"][Address.city].set("Aachen"))
    assert after.address == Address(city="Köln", country=Country(code="DE", visits=1))
    assert after.homes == {"first": Address(city="Aachen")}
    assert changed(FULL, country.remove()).address == Address(city="Bonn")
    assert changed(FULL, Thing.prices[DAY].add(Decimal(1)), Thing.homes["first"].remove()).prices == {DAY: Decimal(2)}
    assert changed(FULL, Thing.homes["second"].set(Address(city="Ulm"))).homes.keys() == {"first", "second"}
    assert changed(FULL, Thing.prices[DAY].remove(), Thing.homes["absent"].remove()).prices == {}
    assert FULL.prices == {DAY: Decimal(1)}


untyped: Any = Thing


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Thing.address[Address.city].set("Köln"), "there is no address in the item to change: set it as a whole"),
        (lambda: Thing.second[Address.city].set("Köln"), "there is no second in the item to change: set it as a whole"),
        (lambda: Thing.homes["first"][Address.city].set("Köln"), "there is no 'first' in the item to change: set it as a whole"),
        (lambda: untyped.maybe.add(1), "Thing.maybe.add(1): it is None in this item: set it as a whole"),
        (lambda: untyped.count.remove(), "Thing.count.remove(): Thing.count is always present: declare it as `| Missing`"),
        (lambda: untyped.note.remove(), "Thing.note is always present"),
        (lambda: untyped.address[Address.city].remove(), "is always present"),
        (lambda: untyped.total.set(MISSING), "Thing.total.set(MISSING) sets nothing: use .remove()"),
        (lambda: untyped.count.set("3"), "Thing.count cannot be '3': expected `int`, got `str`"),
        (lambda: untyped.count.set(True), "Thing.count cannot be True: expected `int`, got `bool`"),
        (lambda: untyped.count.set(10**38), "Thing.count has more than 38 digits"),
        (lambda: untyped.weight.set(float("nan")), "Thing.weight is nan: pass a finite number"),
        (lambda: untyped.total.set("1.5"), "Thing.total cannot be '1.5': pass a value of the type that the class declares"),
        (lambda: untyped.count.add(0.5), "Thing.count cannot be 0.5: expected `int`, got `float`"),
        (lambda: untyped.count.add(True), "Thing.count.add(True): pass one number"),
        (lambda: untyped.count.add(1, 2), "Thing.count.add(1, 2): pass one number"),
        (lambda: untyped.note.add("x"), "Thing.note.add('x'): pass one number"),
        (lambda: untyped.note.add(1), "Thing.note cannot be 1: expected `str | null`, got `int`"),
        (lambda: untyped.count.add(), "Thing.count.add() adds nothing: pass a number, or members of the set"),
        (lambda: untyped.lines.append(), "Thing.lines.append() adds nothing: pass at least one value"),
        (lambda: untyped.lines.append(3), "expected `str`, got `int`"),
        (lambda: untyped.tags.add(3), "expected `str`, got `int`"),
        (lambda: untyped.tags.remove(3), "expected `str`, got `int`"),
        (lambda: untyped.count.append(3), "Thing.count cannot be [3]: expected `int`, got `array`"),
        (lambda: untyped.count.remove(3), "expected `int`, got `array`"),
        (lambda: untyped.count["x"].set(3), "'x' is a key of a map, and there is none at this place"),
        (lambda: untyped.prices["x"].set(Decimal(1)), "'x' cannot be a key of this map"),
        (lambda: untyped.address[Country.code].set("DE"), "Country.code is not a field of what is at Thing.address"),
        (lambda: untyped.id.set("b"), "id is part of the primary key: put a new item and delete this one"),
        (lambda: untyped.version.set(3), "each write raises version by itself"),
        (lambda: Address.city.set("Ulm"), "Address.city is not an attribute of Thing: use those of Thing"),
    ],
)
def test_changes_that_make_no_sense_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        changed(EMPTY, make())
    assert message in str(caught.value)
