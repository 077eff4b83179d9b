"""Items on DynamoDB's wire: every type goes there and comes back, and old items are read with defaults."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, NewType
from uuid import UUID

import msgspec
import pytest
from table.goods import NOW, Address, Color, goods, item

from tickler.errors import InvalidItem
from tickler.table import Attr, Entity, Key, Table, attr
from tickler.table.engines.dynamodb.items import attribute_of, item_of
from tickler.table.engines.dynamodb.wire import EntityWire

DEFINITION = goods.entities["Item"]
WIRE = EntityWire(DEFINITION)

Sizes = NewType("Sizes", frozenset[int])


def decoded(raw: dict[str, Any]) -> Any:
    (found,) = WIRE.decode_page(msgspec.json.encode({"Items": [raw]})).Items
    assert WIRE.entity(raw) == WIRE.build(found)
    return WIRE.build(found)


def test_every_type_comes_back_as_it_went() -> None:
    made = item(
        count=10**30,
        price=Decimal("19.990"),
        weight=0.1,
        open=True,
        note="",
        address=Address(city="Köln", zip="1"),
        tags={"a", "b"},
        sizes={1, 2},
        events=["x", ""],
        prices={NOW: Decimal(1)},
        color=Color.BLUE,
        day=date(2024, 3, 15),
        uuid=UUID(int=7),
        blob=b"\x00\xff",
        due_at=NOW,
        expires_at=NOW,
    )
    assert decoded(item_of(DEFINITION, made)) == made


def test_items_are_stored_with_native_types_under_their_own_names() -> None:
    raw = item_of(DEFINITION, item(tags={"b", "a"}, sizes={2}, prices={NOW: Decimal(1)}, expires_at=NOW, due_at=NOW))
    assert raw["pk"] == {"S": "SHOP#s"}
    assert (raw["entity"], raw["ttl"]) == ({"S": "Item"}, {"N": str(int(NOW.timestamp()))})
    assert (raw["tags"], raw["sizes"], raw["note"]) == ({"SS": ["a", "b"]}, {"NS": ["2"]}, {"NULL": True})
    assert raw["prices"] == {"M": {"2099-03-15T00:00:00Z": {"N": "1"}}}
    assert raw["due_at"] == {"S": "2099-03-15T00:00:00.000000Z"}
    assert raw.keys().isdisjoint({"price", "address", "day", "gsi2pk", "gsi2sk", "gsi3pk", "gsi3sk"})


def test_an_empty_set_is_absent_and_read_as_the_default() -> None:
    raw = item_of(DEFINITION, item())
    assert "tags" not in raw
    assert decoded(raw).tags == set()


def test_missing_null_and_falsy_are_three_different_things() -> None:
    raw = item_of(DEFINITION, item(note=None, count=0, open=False, events=[]))
    assert (raw["note"], raw["count"], raw["open"], raw["events"]) == ({"NULL": True}, {"N": "0"}, {"BOOL": False}, {"L": []})
    assert "price" not in raw


def test_an_item_from_before_an_attribute_was_added_has_its_default() -> None:
    raw = {name: value for name, value in item_of(DEFINITION, item()).items() if name in ("pk", "sk", "entity", "shop", "id")}
    assert decoded(raw) == item()


def test_instants_of_other_zones_are_stored_in_utc_so_that_texts_sort_as_they_do() -> None:
    east = datetime(2024, 3, 15, 1, tzinfo=timezone(timedelta(hours=2)))
    assert attribute_of(east) == {"S": "2024-03-14T23:00:00.000000Z"}
    assert attribute_of(datetime(2024, 3, 14, 23, 0, 0, 5, tzinfo=UTC)) == {"S": "2024-03-14T23:00:00.000005Z"}


def test_nested_parts_sets_and_unions_come_back() -> None:
    table = Table("t")

    class Deep(Entity, table=table):
        id: Attr[str] = attr()
        places: Attr[list[Address]]
        by_name: Attr[dict[str, Address]]
        groups: Attr[list[list[int]]]
        either: Attr[int | str | None]
        numbers: Attr[float]
        colors: Attr[set[str]]
        key = Key("DEEP" / id, "DEEP")

    wire = EntityWire(table.entities["Deep"])
    for either in (1, "1", None):
        made = Deep(
            id="a",
            places=[Address(city="Bonn")],
            by_name={"x": Address(city="Köln", zip="1")},
            groups=[[1, 2], []],
            either=either,
            numbers=1.5,
            colors={"red"},
        )
        raw = msgspec.json.encode(item_of(table.entities["Deep"], made))
        assert wire.build(wire.decode_item(raw)) == made


def test_an_empty_set_is_known_by_its_annotated_type_too() -> None:
    table = Table("t")

    class Palette(Entity, table=table):
        id: Attr[str] = attr()
        colors: Attr[Annotated[set[str], "by name"]]
        sizes: Attr[Sizes]
        key = Key("PALETTE" / id, "PALETTE")

    wire = EntityWire(table.entities["Palette"])
    for made in (
        Palette(id="a", colors=set(), sizes=Sizes(frozenset())),
        Palette(id="a", colors={"red"}, sizes=Sizes(frozenset({1}))),
    ):
        raw = msgspec.json.encode(item_of(table.entities["Palette"], made))
        assert wire.build(wire.decode_item(raw)) == made


def test_a_number_that_dynamodb_cannot_store_is_refused() -> None:
    with pytest.raises(InvalidItem, match="digits"):
        item_of(DEFINITION, item(level=int("1" * 39)))
