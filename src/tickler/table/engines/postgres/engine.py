"""A table in PostgreSQL. Writes lock the rows that they decide on, in the order of their keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from operator import length_hint
from typing import Any

import asyncpg

from tickler.database.postgres.pool import Connection, LostRace, Pool, Read, pool_for
from tickler.database.progress import OnProgress, no_progress
from tickler.database.store_url import StoreUrl
from tickler.table.definition import TableDefinition
from tickler.table.engines.engine import Ask, Reader, Reindexed, Slice
from tickler.table.engines.postgres.change_log import GUARD, PostgresChangeLog
from tickler.table.engines.postgres.metadata import PostgresMetadata
from tickler.table.engines.rows import decode_at, duplicate, is_alive, other_entity
from tickler.table.engines.sql.layout import Dialect, Found, Layout
from tickler.table.engines.sql.measure import measure_statement, measurement_of
from tickler.table.engines.sql.metadata import MetadataStatements
from tickler.table.engines.sql.writes import (
    Cells,
    KeyOfRow,
    Source,
    Writes,
    chunks,
    decided,
    is_blind,
    last_of_each,
    rekeyed,
    slice_of,
)
from tickler.table.key import ItemId
from tickler.table.measurement import Measurement
from tickler.table.operation import Delete, Operation, Put
from tickler.table.selection import Span

Part = Callable[[Connection], Awaitable[None]]  # of a unit of work

WRITTEN_AT_A_TIME = 500
LOAD_TIMEOUT_S = 24 * 3600.0

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('tickler migrate'))"
_COLUMNS = """
    SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
"""
_INDEXES = """
    SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = to_regclass($1) AND indisvalid
"""

_LOGS = """
    SELECT log.relname
    FROM pg_class log JOIN pg_class metadata USING (relnamespace)
    WHERE relnamespace = to_regnamespace($1)
        AND log.relkind = 'r' AND log.relname LIKE '%.stream' AND has_table_privilege(log.oid, 'SELECT')
        AND metadata.relname = 'tickler_table_metadata' AND has_table_privilege(metadata.oid, 'SELECT')
    ORDER BY 1
"""


class PostgresReader:
    def __init__(self, table: TableDefinition, layout: Layout, read: Read) -> None:
        self._table = table
        self._layout = layout
        self._read = read

    async def get(self, ids: Sequence[ItemId[Any]], *, consistent: bool, now_ms: int) -> list[Any]:
        if len(ids) == 1:
            row = await self._read(lambda connection: connection.fetchrow(self._layout.get, ids[0].pk, ids[0].sk))
            return [None if row is None or not is_alive(row[1], now_ms) else decode_at(self._table, ids[0], row[0], row[2])]
        keys = [(id.pk, id.sk) for id in ids]
        stored = await self._read(lambda connection: _stored(connection, self._layout, keys))
        rows = [stored.get(key) for key in keys]
        return [
            None if cells is None or not is_alive(cells[3], now_ms) else decode_at(self._table, id, cells[2], cells[4])
            for id, cells in zip(ids, rows, strict=True)
        ]

    async def slice(self, ask: Ask, *, now_ms: int) -> Slice:
        text, parameters = self._layout.slice(ask, now_ms)
        rows = await self._read(lambda connection: connection.fetch(text, *parameters))
        return slice_of(self._table, rows, ask)

    async def count(self, span: Span, entities: frozenset[str], *, consistent: bool, now_ms: int) -> int:
        text, parameters = self._layout.count(span, entities, now_ms)
        found: int = await self._read(lambda connection: connection.fetchval(text, *parameters))
        return found


class PostgresEngine(PostgresReader):
    """`owned`: it opens and closes the pool, which otherwise belongs to someone else and is open already."""

    makes_tables = True

    def __init__(self, table: TableDefinition, pool: Pool, *, owned: bool = True) -> None:
        self._pool = self.database = pool
        self._owned = owned
        self._dialect = Dialect(
            id="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            text='text COLLATE "C"',
            integer="bigint",
            bytes="bytea",
            no_bytes="''::bytea",
            distinct="IS DISTINCT FROM",
            place="{schema}.",
            tie=", id",
            finished=pool.sql,
        )
        super().__init__(table, Layout(table, self._dialect), pool.read)
        self._metadata_statements = MetadataStatements(self._dialect)
        self.metadata = PostgresMetadata(pool, self._metadata_statements, table.name)
        self.changes = PostgresChangeLog(table, self._dialect, pool)
        self._use(self._layout)

    async def open(self, *, create: bool) -> list[str]:
        self._use(Layout(self._table, self._dialect))  # of all entities that have been defined by now
        try:
            if self._owned:
                await self._pool.open()
            lacking = self._layout.lacking(self._pool.name, await self._pool.read(self._found))
            if not create:
                self._layout.check(self._pool.name, lacking)
            elif lacking:
                await self._pool.write(self._create)
        except BaseException:
            await self.close()
            raise
        return lacking

    async def close(self) -> None:
        if self._owned:
            await self._pool.close()

    async def write(self, operations: Sequence[Operation], *, now_ms: int, parts: Sequence[Part] = ()) -> list[Any]:
        if parts:
            return await self._pool.write(lambda connection: self._with_parts(connection, operations, now_ms, parts))
        if all(map(is_blind, operations)):
            rows, _ = last_of_each(operations)
            await self._pool.once(lambda connection: self._put(connection, rows))
            return [operation.entity for operation in operations if isinstance(operation, Put)]
        if len(operations) == 1 and isinstance(operations[0], Delete) and operations[0].when is None:
            return [await self._pool.once(lambda connection: self._deleted(connection, operations[0].id, now_ms))]
        return await self._pool.write(lambda connection: self._decided(connection, operations, now_ms))

    async def _with_parts(
        self, connection: Connection, operations: Sequence[Operation], now_ms: int, parts: Sequence[Part]
    ) -> list[Any]:
        for part in parts:
            await part(connection)
        return await self._decided(connection, operations, now_ms)

    async def write_each(self, operations: Sequence[Operation], *, now_ms: int) -> None:
        rows, removed = last_of_each(operations)
        for n in range(0, len(rows), WRITTEN_AT_A_TIME):
            await self._pool.once(lambda connection: self._put(connection, rows[n : n + WRITTEN_AT_A_TIME]))  # noqa: B023  # awaited here
        for n in range(0, len(removed), WRITTEN_AT_A_TIME):
            await self._pool.once(lambda connection: self._remove(connection, removed[n : n + WRITTEN_AT_A_TIME]))  # noqa: B023  # likewise

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress, *, streamed: bool = True) -> int:
        """Load in one transaction. While it drops and makes indexes, others wait for the table."""
        source = Source(self._table, entities)
        expected = length_hint(entities)

        async def load(connection: Connection) -> int:
            if streamed or not self._table.stream:
                return await self._load(connection, source.rows(), expected, on_progress)
            await self.changes.keep_inserts(connection, False)
            done = await self._load(connection, source.rows(), expected, on_progress)
            await self.changes.keep_inserts(connection, True)
            return done

        return await self._pool.write(load)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Reader]:
        async with self._pool.snapshot() as read:
            yield PostgresReader(self._table, self._layout, read)

    async def has_more_than(self, items: int) -> bool:
        ((found,),) = await self._pool.fetch(self._layout.larger_than(items))
        return bool(found)

    async def measure(self, *, now_ms: int, sample: int | None) -> Measurement:
        text, parameters = measure_statement(self._layout, now_ms)
        rows = await self._pool.read(lambda connection: connection.fetch(text, *parameters, timeout=LOAD_TIMEOUT_S))
        return measurement_of(self._layout, rows)

    async def reindex_some(self, after: str | None) -> Reindexed:
        return await self._pool.write(lambda connection: self._reindex_some(connection, after))

    async def _reindex_some(self, connection: Connection, after: str | None) -> Reindexed:
        rows = await connection.fetch(self._layout.some_rows(WRITTEN_AT_A_TIME, "FOR UPDATE"), int(after or 0))
        changes = rekeyed(self._table, rows)
        if changes:
            await connection.executemany(self._layout.set_keys(), changes)
        return Reindexed(str(rows[-1][0]) if rows else None, len(rows), len(changes))

    async def sweep(self, *, now_ms: int, limit: int) -> int:
        return len(await self._pool.once(lambda connection: connection.fetch(self._sweep, now_ms, limit)))

    def _use(self, layout: Layout) -> None:
        self._layout = layout
        kinds = {"expires_at": "bigint", "body": "bytea"}
        arrays = ", ".join(f"${n}::{kinds.get(column, 'text')}[]" for n, column in enumerate(layout.columns, 1))
        columns = ", ".join(layout.columns)
        sql = self._pool.sql
        insert = f"INSERT INTO {layout.table} AS stored ({columns}) SELECT * FROM unnest({arrays})"
        self._upsert_many = sql(f"{insert}{layout.conflict}")
        self._insert_many = sql(f"{insert} ON CONFLICT (pk, sk) DO NOTHING RETURNING 1")
        self._delete_many = sql(f"DELETE FROM {layout.table} WHERE (pk, sk) IN (SELECT * FROM unnest($1::text[], $2::text[]))")
        self._delete_one = sql(f"DELETE FROM {layout.table} WHERE pk = $1 AND sk = $2 AND entity = $3 RETURNING expires_at, body")
        self._sweep = sql(
            f"""
            DELETE FROM {layout.table} WHERE id IN (
                SELECT id FROM {layout.table} WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
            )
            RETURNING 1
            """
        )

    async def _found(self, connection: Connection) -> Found:
        table = self._pool.sql(self._layout.table)
        columns = [row[0] for row in await connection.fetch(_COLUMNS, table)]
        indexes = [row[0] for row in await connection.fetch(_INDEXES, table)]
        return Found(columns, indexes, await self.changes.exists(connection))

    async def _create(self, connection: Connection) -> None:
        """Make what is missing. Processes that do so together wait for each other."""
        layout = self._layout
        await connection.execute(_LOCK)
        if not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", self._pool.schema):
            await connection.execute(f"CREATE SCHEMA {self._pool.schema}")
        await connection.execute(self._metadata_statements.create)
        await connection.execute(layout.create_table())
        for statement in layout.add_columns((await self._found(connection)).columns):
            await connection.execute(statement)
        for index in (layout.unique_index(), *layout.secondary_indexes()):
            await connection.execute(index.create, timeout=LOAD_TIMEOUT_S)
        if self._table.stream and not await self.changes.exists(connection):
            await self.changes.create(connection)

    async def _decided(self, connection: Connection, operations: Sequence[Operation], now_ms: int) -> list[Any]:
        keys = [(operation.id.pk, operation.id.sk) for operation in operations]
        stored = await _stored(connection, self._layout, keys, "ORDER BY pk, sk FOR UPDATE")
        writes = decided(self._table, operations, stored, now_ms)
        guards = self._guards(writes) if len(operations) > 1 else []
        await self._insert(connection, [*writes.inserted, *guards])
        await self._put(connection, writes.changed)
        await self._remove(connection, [*writes.removed, *((pk, sk) for pk, sk, *_ in guards)])
        return writes.results

    def _guards(self, writes: Writes) -> list[Cells]:
        """Return rows that are inserted and deleted at once, since nothing else locks a key that must stay absent.

        The change log leaves them out.
        """
        nulls = (None,) * len(self._layout.keys)
        return [(id.pk, id.sk, GUARD, None, b"{}", *nulls) for id in writes.absent]

    async def _put(self, connection: Connection, rows: Sequence[Cells]) -> None:
        if rows:
            await connection.execute(self._upsert_many, *_columns(rows))

    async def _insert(self, connection: Connection, rows: Sequence[Cells]) -> None:
        ordered = sorted(rows, key=_key)
        if rows and len(await connection.fetch(self._insert_many, *_columns(ordered))) < len(rows):
            raise LostRace

    async def _remove(self, connection: Connection, keys: Sequence[KeyOfRow]) -> None:
        if keys:
            await connection.execute(self._delete_many, *_columns(keys))

    async def _deleted(self, connection: Connection, id: ItemId[Any], now_ms: int) -> Any:
        row = await connection.fetchrow(self._delete_one, id.pk, id.sk, id.definition.name)
        if row is not None:
            return id.definition.decode(row[1]) if is_alive(row[0], now_ms) else None
        left = await connection.fetchrow(self._layout.get, id.pk, id.sk)
        if left is not None and left[0] != id.definition.name and is_alive(left[1], now_ms):
            raise other_entity(self._table, id, left[0])
        return None

    async def _load(self, connection: Connection, rows: Iterator[Cells], expected: int, on_progress: OnProgress) -> int:
        layout = self._layout
        present = await connection.fetchval(self._pool.sql(f"SELECT coalesce(max(id), 0) FROM {layout.table}"))
        rebuilt = layout.secondary_indexes() if expected >= present else []  # of an empty table always
        for index in rebuilt:
            await connection.execute(index.drop)
        done = 0

        def counted() -> Iterator[Cells]:
            nonlocal done
            for chunk in chunks(rows):
                yield from chunk
                done += len(chunk)
                on_progress("loading", done, None)

        try:
            await connection.copy_records_to_table(
                self._table.name,
                schema_name=self._pool.schema.strip('"'),
                columns=layout.columns,
                records=counted(),
                timeout=LOAD_TIMEOUT_S,
            )
        except asyncpg.UniqueViolationError as error:
            raise duplicate(error.detail) from None
        on_progress("loading", done, None)
        for number, index in enumerate(rebuilt, 1):
            await connection.execute(index.create, timeout=LOAD_TIMEOUT_S)
            on_progress("indexing", number, len(rebuilt))
        return done


async def _stored(connection: Connection, layout: Layout, keys: Sequence[KeyOfRow], ending: str = "") -> dict[KeyOfRow, Cells]:
    if len(keys) == 1:
        rows = await connection.fetch(f"{layout.select_row} {ending}", *keys[0])
    else:
        rows = await connection.fetch(f"{_rows_text(layout)} {ending}", *(_columns(keys) or ([], [])))
    return {(row[0], row[1]): tuple(row) for row in rows}


def _rows_text(layout: Layout) -> str:
    columns = ", ".join(layout.columns)
    return layout.finished(
        f"SELECT {columns} FROM {layout.table} WHERE (pk, sk) IN (SELECT * FROM unnest($1::text[], $2::text[]))"
    )


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _key(row: Cells) -> KeyOfRow:
    return row[0], row[1]


def open_engine(table: TableDefinition, url: StoreUrl) -> PostgresEngine:
    return PostgresEngine(table, pool_for(url))


def shared_engine(table: TableDefinition, pool: Pool, name: str) -> PostgresEngine:
    return PostgresEngine(table, pool, owned=False)


async def streamed_tables(pool: Pool) -> list[str]:
    """Return the names of tables with a log of changes that this role may read."""
    rows = await pool.fetch(_LOGS, pool.schema)
    return [row[0].removesuffix(".stream") for row in rows]
