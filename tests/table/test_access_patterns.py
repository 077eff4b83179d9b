"""The calls that a schema lists are pasted into a program, with example values, and each of them finds something."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest
from table.goods import Address, goods
from table.guide_tables import guide_classes

from tickler.clock import ManualClock
from tickler.table import Attr, Entity, Key, Page, Table, attr
from tickler.table.definition import EntityDefinition
from tickler.table.schema.examples import example_values
from tickler.table.schema.schema import AccessPattern
from tickler.testing import table_fixtures as kit

GUIDE = guide_classes()
PLACE = GUIDE["Address"](city="Bonn")
# What example items need beside the attributes of their keys, and so that all conditions hold.
MORE: dict[str, dict[str, Any]] = {
    "Customer": {"name": "Ada"},
    "shop.Order": {"address": PLACE, "status": "pending"},
    "kit_shop.Order": {"status": "pending", "tags": frozenset({"urgent"})},
    "Article": {"featured": True},
    "Item": {"address": Address(city="Bonn"), "open": True, "count": 7},
}


def values_of(definition: EntityDefinition) -> dict[str, Any]:
    pairs: list[Any] = [definition.key, *definition.indexes]
    return {name: value for pair in pairs for name, value in example_values(pair).items()}


def example_item(table: str, definition: EntityDefinition) -> Any:
    name = definition.cls.__name__
    values = {key: value for key, value in values_of(definition).items() if "." not in key}
    return definition.cls(**{**values, **MORE.get(f"{table}.{name}", MORE.get(name, {}))})


async def pasted(call: str, names: dict[str, Any]) -> Any:
    return await eval(compile(call, "a call", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)


def found(result: Any) -> Iterable[Any]:
    return result.items if isinstance(result, Page) else [result] if result else []


@pytest.mark.parametrize("table", [GUIDE["shop"], GUIDE["site"], goods, kit.TABLE], ids=lambda table: table.name)
async def test_each_call_can_be_pasted_and_finds_an_item(table: Table) -> None:
    definitions = {definition.cls.__name__: definition for definition in table.entities.values()}
    async with table.connect("memory://", clock=ManualClock(kit.NOW)) as db:
        await db.put_many([example_item(table.name, each) for each in definitions.values() if each.version is None])
        for definition in definitions.values():
            if definition.version is not None:
                await db.put(example_item(table.name, definition))
        for pattern in table.describe().access_patterns:
            values = [values_of(definitions[name]) for name in reversed(pattern.entities)]
            names = {key.replace(".", "_"): value for each in values for key, value in each.items()}
            classes = {name: definition.cls for name, definition in definitions.items()}
            result = await pasted(pattern.call, {**names, **classes, "db": db})
            assert list(found(result)), pattern.call
            if isinstance(result, Page):
                assert {type(item).__name__ for item in result.items} == set(pattern.entities), pattern.call


def calls(patterns: Iterable[AccessPattern]) -> dict[str, str]:
    return {pattern.call: pattern.answer for pattern in patterns}


def test_a_call_says_what_it_answers() -> None:
    said = calls(GUIDE["shop"].describe().access_patterns)
    assert said["await db.get(Customer.key.id(id))"] == "the Customer with this id"
    assert said["await db.query(Order.pending(), first=100)"] == "Order items while status is 'pending', by placed_at, then id"
    assert said["await db.query(Order.trash(customer).since(deleted_at), first=100)"] == (
        "Order items of one customer while deleted_at is present, from a given deleted_at on"
    )
    assert said["await db.query(Customer.key(customer), Order.key(customer), first=100)"] == (
        "Customer and Order items of one customer, in one read"
    )


def test_a_hierarchical_sort_key_is_asked_from_its_left() -> None:
    table = Table("prices")

    class Price(Entity, table=table):
        store: Attr[str] = attr()
        channel: Attr[str] = attr()
        day: Attr[date] = attr()
        product: Attr[str] = attr()
        key = Key("STORE" / store, "PRICE" / channel / day / product)

    assert calls(table.describe().access_patterns) == {
        "await db.get(Price.key.id(store, channel, day, product))": "the Price with this store, channel, day and product",
        "await db.query(Price.key(store), first=100)": "Price items of one store, by channel, then day, then product",
        "await db.query(Price.key(store).under(channel), first=100)": (
            "Price items of one store, with one channel, by day, then product"
        ),
        "await db.query(Price.key(store).under(channel).since(day), first=100)": (
            "Price items of one store, with one channel, from a given day on"
        ),
        "await db.query(Price.key(store).under(channel).under(day), first=100)": (
            "Price items of one store, with one channel, with one day, by product"
        ),
    }
