"""Random entities, indexes and operations: after each step each index holds exactly the keys recomputed from the items.

The same operations run on the reference engine in memory, and have the same results and errors there.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from table.dropping import drop
from table.random_entities import changes_of, condition_of, conditions, definitions, entity_of, values

from dynamodb_server import DynamodbServer
from postgres_server import PostgresServer
from tickler.clock import ManualClock
from tickler.errors import ConditionFailed, ItemNotFound, TicklerError
from tickler.table import Table
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.open_table import OpenTable

SOAK = "TICKLER_SOAK" in os.environ
NOW = 1_773_000_000_000
IDS = st.sampled_from(["1", "2", "3"])

Dump = dict[tuple[str, str], tuple[str, Any, tuple[str | None, ...]]]  # entity, item and index keys by primary key


class Machine(RuleBasedStateMachine):
    """Subclasses say which engine it drives."""

    url: str
    dump: Callable[[OpenTable], Coroutine[Any, Any, Dump]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.tables: list[OpenTable] = []

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    @initialize(described=definitions)
    def define(self, described: Any) -> None:
        table = Table(f"t{secrets.token_hex(6)}")
        self.classes = [entity_of(table, f"Thing{number}", indexes) for number, indexes in enumerate(described)]
        self.db = table.connect(self.url.replace("TABLE", table.name), create=True, clock=ManualClock(NOW))
        self.model = table.connect("memory://", clock=ManualClock(NOW))
        for each in (self.db, self.model):
            self.run(each.open())
            self.tables.append(each)

    def teardown(self) -> None:
        for each in self.tables:
            self.run(drop(each))
            self.run(each.close())
        self.runner.close()

    def both(self, operation: Callable[[OpenTable], Coroutine[Any, Any, Any]]) -> None:
        """Do the same on both tables, and expect the same result, or the same kind of error."""
        outcomes = [self.run(_outcome(operation(each))) for each in (self.db, self.model)]
        assert outcomes[0] == outcomes[1]

    def thing(self, data: Any) -> Any:
        return data.draw(st.sampled_from(self.classes))

    def condition(self, data: Any, cls: Any) -> Any:
        described = data.draw(st.none() | conditions)
        return None if described is None else condition_of(described, cls.__paths__)

    def entity(self, data: Any) -> Any:
        return self.thing(data)(id=data.draw(IDS), **data.draw(values))

    def write(self, data: Any) -> Callable[[Any], Any]:
        """Draw an operation that a table and a transaction both have."""
        kind = data.draw(st.sampled_from(["put", "update", "upsert", "delete"]))
        if kind == "put":
            entity = self.entity(data)
            return lambda target: target.put(entity)
        cls = self.thing(data)
        id = cls.key.id(data.draw(IDS))
        if kind == "delete":
            return lambda target: target.delete(id)
        changes = data.draw(changes_of(cls))
        if kind == "upsert":
            fresh = data.draw(values)
            changes = (
                *(each for each in changes if each.path.attribute.name not in ("kind", "part")),
                cls.kind.set(fresh["kind"]),
            )
            changes = (*changes, cls.part.set(fresh["part"]))
            return lambda target: target.upsert(id, *changes)
        when = self.condition(data, cls)
        return lambda target: target.update(id, *changes, when=when)

    @rule(data=st.data())
    def write_one(self, data: Any) -> None:
        self.both(self.write(data))

    @rule(data=st.data())
    def create(self, data: Any) -> None:
        entity = self.entity(data)
        self.both(lambda db: db.create(entity))

    @rule(data=st.data())
    def put_if(self, data: Any) -> None:
        entity = self.entity(data)
        when = self.condition(data, type(entity))
        self.both(lambda db: db.put(entity, when=when))

    @rule(data=st.data())
    def put_many(self, data: Any) -> None:
        entities = [self.entity(data) for _ in range(3)]
        self.both(lambda db: db.put_many(entities))

    @rule(data=st.data())
    def transaction(self, data: Any) -> None:
        operations = [self.write(data) for _ in range(data.draw(st.integers(1, 3)))]
        checked = self.thing(data)
        when = self.condition(data, checked)
        id = checked.key.id(data.draw(IDS))

        async def transact(db: OpenTable) -> None:
            async with db.transaction() as tx:
                if when is not None:
                    tx.check(id, when)
                for operation in operations:
                    operation(tx)

        self.both(transact)

    @precondition(lambda self: hasattr(self, "db"))
    @rule(data=st.data())
    def concurrent_writes(self, data: Any) -> None:
        """Several writers at once. Their order is open, so the reference follows what is stored afterwards."""
        operations = [self.write(data) for _ in range(3)]

        async def all_at_once() -> None:
            await asyncio.gather(*(_outcome(operation(self.db)) for operation in operations))

        self.run(all_at_once())
        self.run(self.follow())

    async def follow(self) -> None:
        assert isinstance(self.model.engine, MemoryEngine)
        self.model.engine.rows.clear()
        for _, entity, _ in (await type(self).dump(self.db)).values():
            await self.model.put(entity)

    @invariant()
    def every_index_holds_exactly_the_keys_of_the_items(self) -> None:
        if not hasattr(self, "db"):
            return
        stored = self.run(type(self).dump(self.db))
        table = self.classes[0].key.id("1").definition
        for (pk, sk), (name, entity, keys) in stored.items():
            definition = next(cls.key.id("1").definition for cls in self.classes if cls.__name__ == name)
            lookup = definition.lookup(entity)
            expected = [definition.slot_key(gsi, lookup) or (None, None) for gsi in table.gsis]
            assert keys == tuple(half for pair in expected for half in pair), (pk, sk, entity)
        assert {key: each[1] for key, each in stored.items()} == {
            key: each[1] for key, each in self.run(dump_memory(self.model)).items()
        }


async def _outcome(coroutine: Any) -> Any:
    try:
        return await coroutine
    except (ConditionFailed, ItemNotFound) as error:
        return type(error)
    except TicklerError as error:
        return type(error), str(error)


async def dump_memory(db: OpenTable) -> Dump:
    assert isinstance(db.engine, MemoryEngine)
    gsis = db.engine._table.gsis
    return {
        key: (
            row.entity,
            _decoded(db, row.entity, row.body),
            tuple(half for gsi in gsis for half in row.keys.get(gsi, (None, None))),
        )
        for key, row in db.engine.rows.items()
    }


async def dump_sqlite(db: OpenTable) -> Dump:
    engine: Any = db.engine
    rows = await engine.database.read(lambda raw: raw.execute(_select(db)).fetchall())
    return {(row[0], row[1]): (row[2], _decoded(db, row[2], row[3]), tuple(row[4:])) for row in rows}


async def dump_postgres(db: OpenTable) -> Dump:
    engine: Any = db.engine
    rows = await engine.database.fetch(_select(db, "{schema}."))
    return {(row[0], row[1]): (row[2], _decoded(db, row[2], row[3]), tuple(row)[4:]) for row in rows}


async def dump_dynamodb(db: OpenTable) -> Dump:
    """Read the items, and assert that each index of DynamoDB has just those that have both halves of its key."""
    engine: Any = db.engine
    connection = engine._connection
    items = (await connection.client.call("Scan", {"TableName": connection.name, "ConsistentRead": True}))["Items"]
    things = [item for item in items if item["pk"]["S"] != "!TABLE"]
    gsis = list(connection.table.gsis)
    for gsi in gsis:
        indexed = (await connection.client.call("Scan", {"TableName": connection.name, "IndexName": gsi}))["Items"]
        halves = [[f"{gsi}{half}" in item for half in ("pk", "sk")] for item in things]
        assert all(one == other for one, other in halves), "one half of a key"
        assert {item["pk"]["S"] for item in indexed} == {item["pk"]["S"] for item in things if f"{gsi}pk" in item}
    return {
        (item["pk"]["S"], item["sk"]["S"]): (
            item["entity"]["S"],
            connection.entity(item),
            tuple(item.get(f"{gsi}{half}", {}).get("S") for gsi in gsis for half in ("pk", "sk")),
        )
        for item in things
    }


def _select(db: OpenTable, place: str = "") -> str:
    engine: Any = db.engine
    keys = [f"{gsi}{half}" for gsi in engine._table.gsis for half in ("pk", "sk")]
    return f'SELECT {", ".join(["pk", "sk", "entity", "body", *keys])} FROM {place}"{engine._table.name}"'


def _decoded(db: OpenTable, name: str, body: bytes) -> Any:
    engine: Any = db.engine
    return msgspec.json.decode(body, type=engine._table.entities[name].cls)


def drive(url: str, dump: Any, examples: int, steps: int) -> None:
    machine = type("DrivenMachine", (Machine,), {"url": url, "dump": staticmethod(dump)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples * 20 if SOAK else examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_every_index_of_random_entities_is_right_in_memory() -> None:
    drive("memory://", dump_memory, 40, 15)


def test_every_index_of_random_entities_is_right_on_sqlite(tmp_path: Path) -> None:
    drive(f"sqlite:///{tmp_path}/state.db", dump_sqlite, 15, 15)


def test_every_index_of_random_entities_is_right_on_postgresql(postgres_server: PostgresServer) -> None:
    drive(postgres_server.url(f"state_{os.getpid()}"), dump_postgres, 10, 15)


def test_every_index_of_random_entities_is_right_on_dynamodb(dynamodb_server: DynamodbServer) -> None:
    drive(f"dynamodb://TABLE?region=eu-west-1&endpoint={dynamodb_server.endpoint}", dump_dynamodb, 8, 15)
