"""Units as DynamoDB Local counts them, for each way in which a write meets an index."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from table.goods import NOW, Item, goods, item

from tickler.dynamo.client import Client
from tickler.table.engines.dynamodb import schema
from tickler.table.engines.dynamodb.items import item_of
from tickler.table.engines.dynamodb.requests import Seen, Writing
from tickler.table.explain import explain
from tickler.table.operation import Delete, Put, Update

OPEN: dict[str, Any] = {"open": True, "count": 1, "due_at": NOW}
BEFORE = {
    "nothing": None,
    "small": item(),
    "in an index": item(**OPEN),
    "large and in an index": item(**OPEN, note="x" * 3000),
}
LATER = Item.due_at.set(NOW + timedelta(days=1))
OPERATIONS: dict[str, Any] = {
    "put the same": lambda found: Put(item().key, found or item()),
    "put a small one": lambda found: Put(item().key, item()),
    "put one that enters": lambda found: Put(item().key, item(**OPEN)),
    "put a large one": lambda found: Put(item().key, item(**OPEN, note="y" * 2000)),
    "enter": lambda found: Update(item().key, [Item.open.set(True), Item.due_at.set(NOW), Item.count.set(1)]),
    "leave": lambda found: Update(item().key, [Item.open.set(False)]),
    "stay": lambda found: Update(item().key, [Item.note.set("z")]),
    "move within": lambda found: Update(item().key, [LATER]),
    "delete": lambda found: Delete(item().key),
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("does", OPERATIONS)
async def test_units_are_those_that_dynamodb_counts(dynamodb_client: Client, dynamodb_table: str, before: str, does: str) -> None:
    found = BEFORE[before]
    operation = OPERATIONS[does](found)
    if found is None and isinstance(operation, Update):
        return
    await schema.make(dynamodb_client, dynamodb_table, "test", goods.gsis)
    definition = goods.entities["Item"]
    if found is not None:
        await dynamodb_client.call("PutItem", {"TableName": dynamodb_table, "Item": item_of(definition, found)})
    explanation = explain(operation, found)
    counted = await _write(dynamodb_client, dynamodb_table, operation, found)
    assert {name: units for name, units in explanation.write_units.items() if units} == counted, str(explanation)


async def _write(client: Client, name: str, operation: Any, found: Item | None) -> Mapping[str, float]:
    writing = Writing(operation, 0)
    if writing.must_read:
        assert found is not None
        writing.seen = Seen(item_of(goods.entities["Item"], found), found)
    request = writing.request()
    asked = {"TableName": name, "ReturnConsumedCapacity": "INDEXES"}
    consumed = (await client.call(f"{request.kind}Item", {**asked, **request.body}))["ConsumedCapacity"]
    indexes = {gsi: each["CapacityUnits"] for gsi, each in consumed.get("GlobalSecondaryIndexes", {}).items()}
    return {"table": consumed["Table"]["CapacityUnits"], **{gsi: units for gsi, units in indexes.items() if units}}


def test_an_explanation_says_what_is_set_removed_and_read() -> None:
    explanation = explain(Update(item().key, [Item.open.set(False), Item.note.set("x")]), item(**OPEN))
    assert (explanation.sets, explanation.removes, explanation.reads_first) == (("note", "open"), ("gsi2pk", "gsi2sk"), False)
    assert explain(Update(item().key, [Item.count.add(1)]), item()).reads_first
    assert str(explanation).splitlines() == [
        "update Item('SHOP#s', 'ITEM#A1')",
        "  sets     note, open",
        "  removes  gsi2pk, gsi2sk",
        "  reads    nothing first",
        "  writes   3 units: table 1, gsi1 1, gsi2 1",
    ]


def test_a_transaction_costs_twice() -> None:
    operation = Put(item().key, item())
    assert explain(operation, None, transaction=True).total == 2 * explain(operation, None).total


def test_a_transaction_reads_the_items_that_it_does_not_put() -> None:
    assert explain(Delete(item().key), item(), transaction=True).reads_first
    assert not explain(Put(item().key, item()), item(), transaction=True).reads_first
    assert not explain(Delete(item().key), item()).reads_first
