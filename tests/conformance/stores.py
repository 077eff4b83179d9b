"""The stores that every kit runs over: how to open each, and how to write into it behind its back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import msgspec
import pytest

from conformance import faults
from postgres_server import PostgresServer
from tickler.client import Settings, Tickler
from tickler.clock import ManualClock
from tickler.connect import store_for_url
from tickler.database.unit_of_work import UnitOfWork
from tickler.dynamo.batches import write_many
from tickler.dynamo.codec import Item, to_attribute
from tickler.model.schedule import Id
from tickler.stores.dynamodb import DynamodbStore
from tickler.stores.dynamodb.layout import SETTINGS_KEY, head_key, split_body, text
from tickler.stores.memory import MemoryStore
from tickler.stores.memory.tables import IndexEntry, ScheduleEntry, Tables
from tickler.stores.store import Store
from tickler.table import Attr, Entity, Key, Table, attr
from tickler.testing.store_contract import NOW_MS, StoreContract

kits = Table("kits_joined")


class Anything(Entity, table=kits):
    id: Attr[str] = attr()
    key = Key("ANYTHING" / id, "ANYTHING")


class WithTables(StoreContract):
    """A unit of work is a transaction of a table in the same database."""

    @asynccontextmanager
    async def transaction(self, store: Store) -> AsyncIterator[UnitOfWork]:
        t = Tickler(store, ManualClock(NOW_MS), Settings(create=False, environ={}))
        async with kits.connect(t, name=f"kits_joined_{os.getpid()}", create=True) as db, db.transaction() as transaction:
            yield transaction


class OnMemory(WithTables):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        store = MemoryStore()
        await store.open(create=True)
        yield store
        await store.close()

    async def corrupt(
        self,
        store: Store,
        owner: str,
        key: str,
        *,
        when_text: str | None = None,
        tz: str | None = None,
        format: int | None = None,
        body: str | None = None,
    ) -> None:
        assert isinstance(store, MemoryStore)
        tables: Tables = store.index._tables
        id = Id(owner, key)
        entry = tables.index[id] if id in tables.index else tables.aside[id].entry
        targets: list[IndexEntry | ScheduleEntry] = [entry, *filter(None, [tables.schedules.get(id)])]
        for target in targets:
            target.when_text = when_text or target.when_text
            target.tz = tz or target.tz
        entry.format = format or entry.format
        if body is not None:
            tables.schedules[id].body = body

    async def lose_schedule(self, store: Store, owner: str, key: str) -> None:
        await faults.lose_schedule(store, owner, key)


class OnSqlite(WithTables):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return f"{sqlite_url}?timeout=30"  # SQLite is not fair: of four processes, one may wait for very long on a busy disk

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        store = store_for_url(url)
        await store.open(create=True)
        self._path = url.removeprefix("sqlite:///").partition("?")[0]
        yield store
        await store.close()

    @asynccontextmanager
    async def own_transaction(self, store: Store) -> AsyncIterator[object]:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute("BEGIN")
            yield connection

    async def corrupt(
        self,
        store: Store,
        owner: str,
        key: str,
        *,
        when_text: str | None = None,
        tz: str | None = None,
        format: int | None = None,
        body: str | None = None,
    ) -> None:
        with sqlite3.connect(self._path) as connection:
            for table, columns in _corruption(when_text, tz, format, body):
                assignments = ", ".join(f"{name} = ?" for name in columns)
                connection.execute(
                    f"UPDATE {table} SET {assignments} WHERE owner = ? AND key = ?", (*columns.values(), owner, key)
                )
        connection.close()

    async def lose_schedule(self, store: Store, owner: str, key: str) -> None:
        await faults.lose_schedule(store, owner, key)


class OnPostgres(WithTables):
    @pytest.fixture
    def url(self, postgres_server: PostgresServer) -> str:
        """Of one schema for all tests: to empty it takes the server a tenth of what it takes to make another."""
        return postgres_server.url(f"kits_{os.getpid()}")

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        store = store_for_url(url)
        await store.open(create=True)
        self._url = url
        yield store
        await empty_schema(store)
        await store.close()

    @asynccontextmanager
    async def own_transaction(self, store: Store) -> AsyncIterator[object]:
        connection = await asyncpg.connect(self._url.partition("&schema=")[0])
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    async def corrupt(
        self,
        store: Store,
        owner: str,
        key: str,
        *,
        when_text: str | None = None,
        tz: str | None = None,
        format: int | None = None,
        body: str | None = None,
    ) -> None:
        schema = parse_qs(urlsplit(self._url).query)["schema"][0]
        connection = await asyncpg.connect(self._url.partition("&schema=")[0])
        for table, columns in _corruption(when_text, tz, format, body):
            assignments = ", ".join(f"{name} = ${n}" for n, name in enumerate(columns, 3))
            await connection.execute(
                f"UPDATE {schema}.{table} SET {assignments} WHERE owner = $1 AND key = $2", owner, key, *columns.values()
            )
        await connection.close()

    async def lose_schedule(self, store: Store, owner: str, key: str) -> None:
        await faults.lose_schedule(store, owner, key)


class OnDynamodb(WithTables):
    many = 300

    @pytest.fixture
    def url(self, dynamodb_endpoint: str) -> str:
        """Of one table for all tests: to empty it takes the engine a tenth of what it takes to make another."""
        return f"dynamodb://kits_{os.getpid()}?region=eu-west-1&endpoint={dynamodb_endpoint}&shards=4"

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        store = store_for_url(url)
        await store.open(create=True)
        yield store
        assert isinstance(store, DynamodbStore)
        await empty_table(store)
        await store.close()

    async def corrupt(
        self,
        store: Store,
        owner: str,
        key: str,
        *,
        when_text: str | None = None,
        tz: str | None = None,
        format: int | None = None,
        body: str | None = None,
    ) -> None:
        assert isinstance(store, DynamodbStore)
        values = {"when_text": when_text, "tz": tz, "format": format}
        given = {name: to_attribute(value) for name, value in values.items() if value is not None}
        if body is not None:
            given |= _on_head(body)
        await store.client.call(
            "UpdateItem",
            {
                "TableName": store.table_name,
                "Key": head_key(Id(owner, key)),
                "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in given),
                "ExpressionAttributeNames": {f"#{name}": name for name in given},
                "ExpressionAttributeValues": {f":{name}": value for name, value in given.items()},
            },
        )


async def empty_schema(store: Store) -> None:
    """Of all but what its making has written."""
    tables = ("fires", "history", "index", "aside", "schedules")
    statements = [f"DELETE FROM {{schema}}.tickler_{table}" for table in tables]
    await faults.execute(store, "; ".join([*statements, "DELETE FROM {schema}.tickler_records WHERE kind <> 'store'"]))


async def empty_table(store: DynamodbStore) -> None:
    """Of all but the settings, which are those of a new table."""
    scan = {"TableName": store.table_name, "ConsistentRead": True, "ProjectionExpression": "pk, sk"}
    page: dict[str, Any] = {"LastEvaluatedKey": None}
    while "LastEvaluatedKey" in page:
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]} if page["LastEvaluatedKey"] else {}
        page = await store.client.call("Scan", {**scan, **start})
        keys = [key for key in page["Items"] if key != SETTINGS_KEY]
        await write_many(store.client, store.table_name, [{"DeleteRequest": {"Key": key}} for key in keys])


def _on_head(body: str) -> Item:
    """A body as it lies on a head: its policy apart from the rest, if it reads so far."""
    try:
        on_head, rest = split_body(body.encode())
    except msgspec.DecodeError:
        return {"body": text(body)}
    return {**on_head, "body": text(rest.decode())}


def _corruption(
    when_text: str | None, tz: str | None, format: int | None, body: str | None
) -> list[tuple[str, dict[str, object]]]:
    given = {"when_text": when_text, "tz": tz, "format": format}
    columns: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    declared: dict[str, object] = {name: value for name, value in columns.items() if name != "format"}
    if body is not None:
        declared["body"] = body
    tables = {"tickler_index": columns, "tickler_aside": columns, "tickler_schedules": declared}
    return [(table, changed) for table, changed in tables.items() if changed]
