"""The DynamoDB engine does what the engine in memory does: the same results, errors and keys of indexes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from table.goods import NOW, Address, Color, Item, goods

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.dynamo.client import Client
from tickler.errors import TicklerError
from tickler.table.change import Change
from tickler.table.condition import Condition
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.open_table import OpenTable

STEPS = 200


def _address(choice: random.Random) -> Address:
    return Address(city=choice.choice(["Bonn", "Köln"]), zip=choice.choice([None, "1"]))


def _changes(choice: random.Random) -> list[Change[Item]]:
    at = NOW + timedelta(days=choice.randrange(2))
    possible: list[Change[Any]] = [
        Item.status.set(choice.choice(["new", "old"])),
        Item.count.add(choice.randrange(-1, 2)),
        Item.level.add(1),
        Item.price.set(Decimal("1.50")),
        Item.price.remove(),
        Item.weight.add(0.1),
        Item.open.set(choice.random() < 0.6),
        Item.note.set(choice.choice([None, "", "x"])),
        Item.address.set(_address(choice)),
        Item.address.remove(),
        Item.address[Address.city].set(choice.choice(["Bonn", "Köln"])),
        Item.tags.add("a", "b"),
        Item.tags.remove("a"),
        Item.tags.set(choice.choice([set(), {"c"}])),
        Item.sizes.add(choice.randrange(3)),
        Item.events.append("e"),
        Item.prices[at].set(Decimal(choice.randrange(5))),
        Item.prices[at].remove(),
        Item.color.set(choice.choice([Color.RED, Color.BLUE])),
        Item.due_at.set(at),
        Item.due_at.remove(),
        Item.expires_at.set(NOW + timedelta(seconds=choice.choice([-1, 0, 1]))),
        Item.expires_at.remove(),
    ]
    found: dict[Any, Change[Any]] = {change.path.attribute: change for change in choice.sample(possible, choice.randrange(1, 4))}
    return list(found.values())


def _leaf(choice: random.Random) -> Condition[Item]:
    return choice.choice(
        [
            Item.status == "new",
            Item.status != "new",
            Item.status.starts_with("ne"),
            Item.status.one_of(["old", "older"]),
            Item.count > 0,
            Item.count <= 1,
            Item.count == 1,
            Item.level == 5,
            Item.level.exists(),
            Item.price.missing(),
            Item.price > Decimal(1),
            Item.price != Decimal("1.5"),
            Item.open == True,  # noqa: E712  # a condition
            Item.note == None,  # noqa: E711  # a condition
            Item.note != None,  # noqa: E711  # a condition
            Item.note == "",
            Item.address.exists(),
            Item.address[Address.city] == "Bonn",
            Item.address[Address.zip] == None,  # noqa: E711  # a condition
            Item.address == Address(city="Bonn"),
            Item.tags == set(),
            Item.tags != {"b"},
            Item.tags.contains("a"),
            Item.events.contains("e"),
            Item.events == [],
            Item.prices[NOW].exists(),
            Item.prices[NOW] > Decimal(2),
            Item.color == Color.BLUE,
            Item.due_at >= NOW,
            Item.due_at < NOW + timedelta(days=1),
        ]
    )


def _condition(choice: random.Random) -> Condition[Item] | None:
    if choice.random() < 0.4:
        return None
    one, other = _leaf(choice), _leaf(choice)
    return choice.choice([one, ~one, one & other, one | other, ~(one | other), one & ~other])


async def _do(db: OpenTable, seed: int) -> Any:
    """Do one random operation and return its result, or its error."""
    choice = random.Random(seed)
    id = Item.key.id("s", choice.randrange(3))
    when = _condition(choice)
    verb = choice.choice(["put", "create", "replace", "update", "update", "update", "update", "upsert", "upsert", "delete"])
    whole = Item(
        shop="s",
        id=choice.randrange(3),
        status=choice.choice(["new", "old"]),
        count=choice.randrange(3),
        open=choice.random() < 0.5,
        tags=choice.choice([set(), {"a"}, {"a", "b"}]),
        address=_address(choice),
        due_at=NOW,
    )
    try:
        if verb == "put":
            return await db.put(whole, when=when)
        if verb == "create":
            return await db.create(whole)
        if verb == "replace":
            return await db.replace(whole, when=when)
        if verb == "update":
            return await db.update(id, *_changes(choice), when=when)
        if verb == "upsert":
            return await db.upsert(id, *_changes(choice), when=when)
        return await db.delete(id, when=when)
    except TicklerError as error:
        return f"{type(error).__name__}: {error}"


async def _keys(client: Client, name: str) -> dict[tuple[str, str], dict[str, str]]:
    answer = await client.call("Scan", {"TableName": name, "ConsistentRead": True})
    items = [item for item in answer["Items"] if item["pk"]["S"] != "!TABLE"]
    return {
        (item["pk"]["S"], item["sk"]["S"]): {key: value["S"] for key, value in item.items() if key.startswith("gsi")}
        for item in items
    }


def _expected(rows: Sequence[Any]) -> dict[tuple[str, str], dict[str, str]]:
    return {
        (row.pk, row.sk): {
            f"{gsi}{half}": text for gsi, key in row.keys.items() for half, text in zip(("pk", "sk"), key, strict=True)
        }
        for row in rows
    }


async def test_random_operations_have_the_same_results_errors_and_keys(
    dynamodb_client: Client, dynamodb_table: str, seed: int
) -> None:
    clock = ManualClock(NOW)
    memory = MemoryEngine(goods, MemoryDatabase())
    engine = DynamodbEngine(goods, dynamodb_client, dynamodb_table, owned=False)
    async with OpenTable(goods, memory, clock, create=True) as one, OpenTable(goods, engine, clock, create=True) as other:
        for step in range(seed * STEPS, (seed + 1) * STEPS):
            found, expected_result = await _do(other, step), await _do(one, step)
            assert found == expected_result, f"{step}\n{found}\n{expected_result}"
            assert await _keys(dynamodb_client, dynamodb_table) == _expected(list(memory.rows.values())), step
            ids = [Item.key.id("s", n) for n in range(3)]
            assert await other.get_many(ids) == await one.get_many(ids), step
            where = _leaf(random.Random(step))
            expected = await one.query(Item.key("s"), first=10, where=where)
            assert (await other.query(Item.key("s"), first=10, where=where)).items == expected.items, step
