"""Faults that only a foreign hand can make: written into a store behind its back, in the store's own language."""

from __future__ import annotations

from typing import Any

from tickler.dynamo.codec import to_attribute
from tickler.model.schedule import Id
from tickler.stores.dynamodb import DynamodbStore
from tickler.stores.dynamodb.layout import head_key
from tickler.stores.memory import MemoryStore
from tickler.stores.postgres import PostgresStore
from tickler.stores.sqlite import SqliteStore
from tickler.stores.store import Store


async def execute(store: Store, sql: str, *parameters: object) -> None:
    """With `$1` for parameters, and `{schema}.` before tables."""
    if isinstance(store, SqliteStore):
        text = sql.replace("{schema}.", "").replace("$", ":p")
        named = {f"p{number}": value for number, value in enumerate(parameters, 1)}
        await store._connection.write(lambda connection: connection.execute(text, named))
    else:
        assert isinstance(store, PostgresStore)
        database = store._database
        await database.write(lambda connection: connection.execute(database.sql(sql), *parameters))


async def update_head(store: DynamodbStore, id: Id, *gone: str, **values: object) -> None:
    """Set and remove attributes of the item of a schedule, or of a row of the index alone."""
    sets = "SET " + ", ".join(f"#{name} = :{name}" for name in values) if values else ""
    removes = "REMOVE " + ", ".join(f"#{name}" for name in gone) if gone else ""
    request: dict[str, Any] = {"TableName": store.table_name, "Key": head_key(id), "UpdateExpression": f"{sets} {removes}"}
    request["ExpressionAttributeNames"] = {f"#{name}": name for name in (*values, *gone)}
    if values:
        request["ExpressionAttributeValues"] = {f":{name}": to_attribute(value) for name, value in values.items()}
    await store.client.call("UpdateItem", request)


async def lose_row(store: Store, owner: str, key: str) -> None:
    """A schedule stays, and its row of the index goes."""
    if isinstance(store, MemoryStore):
        del store._tables.index[Id(owner, key)]
    elif isinstance(store, DynamodbStore):
        await update_head(store, Id(owner, key), "next_fire_at", "due_shard")
    else:
        await execute(store, "DELETE FROM {schema}.tickler_index WHERE owner = $1 AND key = $2", owner, key)


async def lose_schedule(store: Store, owner: str, key: str) -> None:
    """A row of the index stays, and its schedule goes. On DynamoDB they are one item."""
    if isinstance(store, MemoryStore):
        del store._tables.schedules[Id(owner, key)]
    else:
        await execute(store, "DELETE FROM {schema}.tickler_schedules WHERE owner = $1 AND key = $2", owner, key)


async def move_row(store: Store, owner: str, key: str, next_fire_at: int) -> None:
    """A row waits for another instant, as if it had been computed by other rules."""
    if isinstance(store, MemoryStore):
        store._tables.index[Id(owner, key)].next_fire_at = next_fire_at
    elif isinstance(store, DynamodbStore):
        await update_head(store, Id(owner, key), next_fire_at=next_fire_at)
    else:
        sql = "UPDATE {schema}.tickler_index SET next_fire_at = $1 WHERE owner = $2 AND key = $3"
        await execute(store, sql, next_fire_at, owner, key)


async def set_format(store: Store, owner: str, key: str, format: int) -> None:
    """Of a row: 99 is one that this version does not know."""
    if isinstance(store, MemoryStore):
        store._tables.index[Id(owner, key)].format = format
    elif isinstance(store, DynamodbStore):
        await update_head(store, Id(owner, key), format=format)
    else:
        await execute(store, "UPDATE {schema}.tickler_index SET format = $1 WHERE owner = $2 AND key = $3", format, owner, key)


async def rewrite_when(store: Store, owner: str, key: str, when_text: str) -> None:
    """Of a schedule, and of its row, in the index or set aside."""
    if isinstance(store, MemoryStore):
        tables, id = store._tables, Id(owner, key)
        entry = tables.index[id] if id in tables.index else tables.aside[id].entry
        entry.when_text = tables.schedules[id].when_text = when_text
    elif isinstance(store, DynamodbStore):
        await update_head(store, Id(owner, key), when_text=when_text)
    else:
        for table in ("tickler_schedules", "tickler_index", "tickler_aside"):
            sql = f"UPDATE {{schema}}.{table} SET when_text = $1 WHERE owner = $2 AND key = $3"
            await execute(store, sql, when_text, owner, key)
