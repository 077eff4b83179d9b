"""What stores and reads the same on every engine."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from enum import Enum

import pytest
from table.goods import NOW, Item, goods, item

from tickler.clock import ManualClock
from tickler.errors import InvalidInput, InvalidItem
from tickler.table import MISSING, Attr, Entity, Key, Missing, Table, attr
from tickler.table.change import apply


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


shirts = Table("shirts")


class Shirt(Entity, table=shirts):
    size: Attr[Size] = attr()
    id: Attr[str] = attr()
    stock: Attr[int] = attr(default=0)
    key = Key("SHIRT" / size, id)


async def test_an_enum_can_be_part_of_a_key() -> None:
    async with shirts.connect("memory://") as db:
        made = await db.upsert(Shirt.key.id(Size.SMALL, "a"), Shirt.stock.add(1))
        assert made.size is Size.SMALL
        assert await db.get(Shirt(size=Size.SMALL, id="a").key) == made
        assert (await db.update(made.key, Shirt.stock.add(1), when=Shirt.size == Size.SMALL)).stock == 2


async def test_a_map_may_have_instants_as_keys() -> None:
    async with goods.connect("memory://", clock=ManualClock(NOW)) as db:
        prices = {NOW + timedelta(days=n): Decimal(n) for n in (2, 1)}
        await db.put(item(prices=prices))
        assert (await db.update(item().key, Item.prices[NOW].set(Decimal(3)))).prices == {**prices, NOW: Decimal(3)}


async def test_floats_add_up_as_decimal_numbers_because_dynamodb_adds_them_so() -> None:
    async with goods.connect("memory://", clock=ManualClock(NOW)) as db:
        await db.put(item(weight=0.1))
        assert (await db.update(item().key, Item.weight.add(0.2))).weight == 0.3


def test_what_can_be_missing_has_no_other_default() -> None:
    with pytest.raises(InvalidInput, match="default=MISSING"):

        class Wrong(Entity, table=Table("t")):
            id: Attr[str] = attr()
            n: Attr[int | Missing] = attr(default=1)
            key = Key(id, "A")


def test_the_default_of_a_set_is_empty() -> None:
    with pytest.raises(InvalidInput, match="use default=set"):

        class Wrong(Entity, table=Table("t")):
            id: Attr[str] = attr()
            tags: Attr[set[str]] = attr(default={"a"})
            key = Key(id, "A")


def test_an_optional_set_that_loses_its_last_member_is_missing() -> None:
    class Thing(Entity, table=Table("t")):
        id: Attr[str] = attr()
        tags: Attr[set[str] | Missing] = attr(default=MISSING)
        key = Key(id, "A")

    assert apply([Thing.tags.remove("a")], Thing(id="1", tags={"a"})).tags is MISSING
    definition = Thing.key.id("1").definition
    with pytest.raises(InvalidItem, match="tags is an empty set"):
        definition.row(Thing(id="1", tags=set()))
    with pytest.raises(InvalidInput, match="remove"):
        definition.check_change(Thing.tags.set(set()))


def test_no_entity_uses_the_partition_of_the_tables_own_items() -> None:
    with pytest.raises(InvalidInput, match="!TABLE"):

        class Wrong(Entity, table=Table("t")):
            id: Attr[str] = attr()
            key = Key("!TABLE", id)
