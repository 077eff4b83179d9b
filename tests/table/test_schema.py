"""The schema of a table, derived from its definition."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from table.goods import goods
from table.guide_tables import guide_classes

from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr
from tickler.table.definition import TableDefinition
from tickler.table.schema.describe import describe, gsi_of, name_of
from tickler.table.schema.examples import example_values
from tickler.table.schema.schema import AttributeSchema, KeySchema, Schema, SharedPartition
from tickler.testing.table_fixtures import TABLE

GUIDE = guide_classes()
SHOP, SITE = GUIDE["shop"], GUIDE["site"]
TABLES: list[TableDefinition] = [SHOP, SITE, goods, TABLE]


def key_of(schema: Schema, name: str) -> KeySchema:
    return next(key for entity in schema.entities for key in entity.keys if key.full_name == name)


def test_each_cell_says_which_key_an_entity_writes_there() -> None:
    schema = SHOP.describe()
    assert schema.gsis == ("gsi1", "gsi2")
    cells = {
        (entity.name, gsi): [(key.name, key.partition_text, key.sort_text) for key in entity.keys_in(gsi)]
        for entity in schema.entities
        for gsi in (None, *schema.gsis)
    }
    assert cells == {
        ("Customer", None): [("key", "CUSTOMER#{id}", "PROFILE")],
        ("Customer", "gsi1"): [],
        ("Customer", "gsi2"): [],
        ("Order", None): [("key", "CUSTOMER#{customer}", "ORDER#{placed_at}#{id}")],
        ("Order", "gsi1"): [("pending", "PENDING_ORDER", "{placed_at}#{id}")],
        ("Order", "gsi2"): [("trash", "DELETED#{customer}", "{deleted_at}#{id}")],
    }
    assert [key.full_name for key in schema.keys_in("gsi1")] == ["Order.pending"]


def test_a_key_says_in_words_while_what_it_is_there() -> None:
    schema = SITE.describe()
    words = {key.full_name: key.when for entity in schema.entities for key in entity.keys}
    assert words == {
        "Comment.key": None,
        "Comment.flagged": "reports is more than 2 and resolved is False",
        "Article.key": None,
        "Article.front_page": "featured is True",
        "Article.published": "published_on is present",
        "Product.key": None,
        "Product.by_promo_code": "promo_code is present",
    }
    assert key_of(schema, "Comment.flagged").deciding == ("reports", "resolved")
    assert key_of(schema, "Comment.flagged").sort_text == "{reports desc}#{id}"
    assert key_of(describe(goods), "Item.in_city").deciding == ("address",)


def test_attributes_have_types_defaults_roles_and_fields() -> None:
    order = next(entity for entity in SHOP.describe().entities if entity.name == "Order")
    by_name = {attribute.name: attribute for attribute in order.attributes}
    assert by_name["status"].type == "'pending' | 'confirmed' | 'shipped'"
    assert by_name["items"] == AttributeSchema("items", "int", default="0")
    assert by_name["deleted_at"] == AttributeSchema("deleted_at", "datetime", optional=True, role="deleted")
    assert by_name["expires_at"].role == "expires"
    zip_code = AttributeSchema("zip", "str | None", default="None")
    assert by_name["address"] == AttributeSchema("address", "Address", fields=(AttributeSchema("city", "str"), zip_code))
    counter = next(entity for entity in describe(goods).entities if entity.name == "Counter")
    assert counter.attributes[-1] == AttributeSchema("version", "int", default="0", role="version")


def test_types_and_defaults_are_written_as_python() -> None:
    item = describe(goods).entities[0]
    shown = {attribute.name: (attribute.type, attribute.default) for attribute in item.attributes}
    assert shown["tags"] == ("set[str]", "set()")
    assert shown["prices"] == ("dict[datetime, Decimal]", "{}")
    assert shown["color"] == ("Color", "Color.RED")
    assert shown["note"] == ("str | None", "None")
    assert shown["status"] == ("str", '"new"')


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_an_example_key_is_one_that_the_codec_reads_back(table: TableDefinition) -> None:
    schema = describe(table)
    for definition in table.entities.values():
        pairs: list[Any] = [definition.key, *definition.indexes]
        for pair in pairs:
            shown = key_of(schema, f"{definition.cls.__name__}.{name_of(pair)}")
            parsed = pair.pk.parse(shown.example[0]) + pair.sk.parse(shown.example[1])
            values = [
                example_values(pair)[component.text] for component in (*shown.partition, *shown.sort) if component.attribute
            ]
            assert parsed == [getattr(value, "value", value) for value in values]
            assert shown.gsi == gsi_of(pair)


def test_examples_look_like_those_of_the_guide() -> None:
    schema = SHOP.describe()
    assert key_of(schema, "Customer.key").example == ("CUSTOMER#c1", "PROFILE")
    assert key_of(schema, "Order.key").example == ("CUSTOMER#c1", "ORDER#2026-03-02T12:00:00#o1")


def test_an_example_of_an_index_satisfies_its_condition() -> None:
    class Thing(Entity, table=Table("things")):
        id: Attr[str] = attr()
        size: Attr[int] = attr(default=0)
        price: Attr[Decimal] = attr()
        code: Attr[str] = attr(default="none")
        seen_at: Attr[datetime | Missing] = attr(default=MISSING)
        key = Key("THING" / id, "X")
        large = Index("gsi1", "LARGE" / size, id, when=size > 1_000)
        small = Index("gsi2", "SMALL" / size, id, when=(size < 3) & ~(size == 2))
        cheap = Index("gsi3", "CHEAP", price / id, when=price.one_of([Decimal(1), Decimal(2)]))
        coded = Index("gsi4", "CODE" / code, id, when=code.starts_with("X-"))
        late = Index("gsi5", "LATE", seen_at, when=seen_at >= datetime(2031, 1, 1, tzinfo=UTC))

    schema = Thing.key._pair.bound()
    for index in schema.indexes:
        values = example_values(index)
        chosen = {key: value for key, value in values.items() if key != "id"}
        attributes: dict[str, Any] = {"id": "t1", "price": Decimal(9), **chosen}
        item = Thing(**attributes)
        assert isinstance(index.position(schema.lookup(item)), tuple), index.name


def test_entities_share_a_partition_of_the_same_form() -> None:
    assert describe(TABLE).shared == (
        SharedPartition(None, "CUSTOMER#…", ("Customer.key", "Order.key", "Refund.key"), ("Customer", "Order", "Refund")),
        SharedPartition("gsi1", "PENDING", ("Order.pending", "Refund.pending"), ("Order", "Refund")),
    )
    assert SITE.describe().shared == ()


def test_a_partition_with_another_type_at_the_same_place_is_not_shared() -> None:
    table = Table("things")

    class Number(Entity, table=table):
        id: Attr[int] = attr()
        key = Key("THING" / id, "NUMBER")

    class Word(Entity, table=table):
        id: Attr[str] = attr()
        key = Key("THING" / id, "WORD")

    assert table.describe().shared == ()


def test_an_entity_is_shown_by_its_class_and_knows_how_it_is_stored() -> None:
    table = Table("things")

    class Renamed(Entity, table=table, stored_as="Before"):
        id: Attr[str] = attr()
        key = Key("THING" / id, "X")
        all = Index("gsi1", "ALL", id)

    (entity,) = table.describe().entities
    assert (entity.name, entity.stored_as) == ("Renamed", "Before")
    assert [key.full_name for key in entity.keys] == ["Renamed.key", "Renamed.all"]


def test_a_schema_is_a_value_that_travels_as_json() -> None:
    schema = SHOP.describe()
    assert schema == SHOP.describe()
    assert msgspec.json.decode(msgspec.json.encode(schema), type=Schema) == schema
