"""What `db.explain` says, in memory and on DynamoDB, and what DynamoDB Local then counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from table.goods import NOW, Counter, Item, Note, goods, item

from tickler.clock import ManualClock
from tickler.dynamo.client import Client
from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.open_table import OpenTable
from tickler.table.transaction import Transaction

OPEN: dict[str, Any] = {"open": True, "count": 1, "due_at": NOW}
STORED = [item(1, **OPEN), item(2, **OPEN, note="x" * 3000), item(3), item(4, note="y" * 5000), Note(shop="s", text="z")]


@pytest.fixture(params=["in_memory", "on_dynamodb"])
def db(request: pytest.FixtureRequest) -> OpenTable:
    found: OpenTable = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def in_memory() -> AsyncIterator[OpenTable]:
    async with goods.connect("memory://", clock=ManualClock(NOW)) as db:
        await db.put_many(STORED)
        yield db


@pytest.fixture
async def on_dynamodb(dynamodb_client: Client, dynamodb_table: str) -> AsyncIterator[OpenTable]:
    engine = DynamodbEngine(goods, dynamodb_client, dynamodb_table, owned=False)
    async with OpenTable(goods, engine, ManualClock(NOW), create=True) as db:
        await db.put_many(STORED)
        yield db


async def test_one_operation_is_explained_and_not_done(db: OpenTable) -> None:
    (one,) = await db.explain(lambda tx: tx.update(item(1).key, Item.open.set(False)))
    assert (one.sets, one.removes, one.reads_first) == (("open",), ("gsi2pk", "gsi2sk"), False)
    assert one.write_units == {"table": 1, "gsi1": 1, "gsi2": 1, "gsi3": 0}
    assert await db.get(item(1).key) == item(1, **OPEN)


async def test_several_operations_are_one_transaction_and_cost_twice(db: OpenTable) -> None:
    def work(tx: Transaction) -> None:
        tx.update(item(1).key, Item.open.set(False))
        tx.put(item(9))
        tx.delete(item(2).key)

    explained = await db.explain(work)
    assert [each.operation.split()[0] for each in explained] == ["update", "put", "delete"]
    assert [each.reads_first for each in explained] == [True, False, True]
    assert [each.total for each in explained] == [6, 4, 24]
    assert await db.get(item(9).key) is None


async def test_an_explanation_is_text_that_one_can_read(db: OpenTable) -> None:
    def work(tx: Transaction) -> None:
        tx.update(item(1).key, Item.due_at.set(NOW + timedelta(days=1)))
        tx.delete(Note.key.id("s"))

    assert "\n".join(map(str, await db.explain(work))).splitlines() == [
        "update Item('SHOP#s', 'ITEM#A1')",
        "  sets     due_at, gsi2sk",
        "  removes  nothing",
        "  reads    the item first, 1 unit",
        "  writes   8 units: table 2, gsi1 2, gsi2 4",
        "delete Note('SHOP#s', 'NOTE')",
        "  sets     nothing",
        "  removes  entity, pk, shop, sk, text",
        "  reads    the item first, 1 unit",
        "  writes   2 units: table 2",
    ]


async def test_what_cannot_happen_is_not_explained_but_raised(db: OpenTable) -> None:
    with pytest.raises(ItemNotFound):
        await db.explain(lambda tx: tx.update(item(9).key, Item.open.set(True)))
    with pytest.raises(ConditionFailed):
        await db.explain(lambda tx: tx.create(item(1)))


async def test_nothing_is_explained_by_nothing(db: OpenTable) -> None:
    assert await db.explain(lambda tx: None) == []


async def test_work_for_transact_is_explained_with_its_reads(db: OpenTable) -> None:
    async def work(tx: Transaction) -> None:
        found = await tx.get(item(3).key)
        await tx.get(Note.key.id("s"))
        assert found is not None
        tx.update(found.key, Item.count.add(1))

    explained = await db.explain(work)
    assert [each.operation.split()[0] for each in explained] == ["update", "check"]
    assert (explained[1].total, explained[1].check_units) == (0, 2)
    assert str(explained[1]).splitlines() == [
        "check Note('SHOP#s', 'NOTE')",
        "  sets     nothing",
        "  removes  nothing",
        "  reads    the item first, 1 unit, and again at commit, 2 units",
        "  writes   nothing",
    ]
    assert await db.get(item(3).key) == item(3)


async def only_reading(tx: Transaction) -> None:
    await tx.get(item(3).key)


async def test_work_that_only_reads_writes_nothing(db: OpenTable) -> None:
    assert await db.explain(only_reading) == []


def updates(tx: Transaction) -> None:
    tx.update(item(1).key, Item.open.set(False))
    tx.update(item(2).key, Item.due_at.set(NOW + timedelta(days=1)))
    tx.update(item(3).key, Item.note.set("q"))


def puts_and_deletes(tx: Transaction) -> None:
    tx.put(item(1))
    tx.create(item(7, **OPEN, note="n" * 2000))
    tx.delete(item(2).key)
    tx.delete(item(8).key)


def checks(tx: Transaction) -> None:
    tx.check(item(4).key, Item.count == 0)
    tx.check(Note.key.id("t"), Note.text.missing())
    tx.upsert(Counter.key.id("a"), Counter.n.add(1))


def one_check(tx: Transaction) -> None:
    tx.check(item(4).key, Item.count == 0)


def what_is_there(tx: Transaction) -> None:
    tx.put(item(1, **OPEN))
    tx.update(item(2).key, Item.count.set(1))
    tx.replace(item(3, count=2))


WORK: dict[str, Callable[[Transaction], None]] = {
    each.__name__: each for each in (updates, puts_and_deletes, checks, one_check, what_is_there)
}


@pytest.mark.parametrize("work", WORK)
async def test_units_of_a_transaction_are_those_that_dynamodb_counts(
    on_dynamodb: OpenTable, dynamodb_client: Client, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    call = Client.call
    answers: list[Mapping[str, Any]] = []

    async def counting(self: Client, operation: str, request: dict[str, Any]) -> Any:
        if operation != "TransactWriteItems":
            return await call(self, operation, request)
        answers.append(await call(self, operation, {**request, "ReturnConsumedCapacity": "INDEXES"}))
        return answers[-1]

    monkeypatch.setattr(Client, "call", counting)
    explained = await on_dynamodb.explain(WORK[work])
    async with on_dynamodb.transaction() as tx:
        WORK[work](tx)
    (answer,) = answers
    expected = {"table": sum(each.check_units for each in explained)}
    for each in explained:
        for name, units in each.write_units.items():
            expected[name] = expected.get(name, 0) + units
    (consumed,) = answer["ConsumedCapacity"]
    counted = {gsi: each["CapacityUnits"] for gsi, each in consumed.get("GlobalSecondaryIndexes", {}).items()}
    assert {**dict.fromkeys(goods.gsis, 0), "table": consumed["Table"]["CapacityUnits"], **counted} == {
        **dict.fromkeys(goods.gsis, 0),
        **expected,
    }
