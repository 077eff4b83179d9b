"""A table in an SQLite file: writes in turns of its connection's thread, reads on the thread of the event loop."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from operator import length_hint
from typing import Any, TypeVar

from tickler.database.progress import OnProgress, no_progress
from tickler.database.sqlite.connection import Connection, connection_for
from tickler.database.sqlite.direct_reader import DirectReader
from tickler.database.store_url import StoreUrl
from tickler.errors import InvalidInput, SchemaMissing
from tickler.table.definition import TableDefinition
from tickler.table.engines.engine import Ask, Reader, Reindexed, Slice
from tickler.table.engines.rows import decode_at, duplicate, is_alive
from tickler.table.engines.sql.layout import Dialect, Found, Layout
from tickler.table.engines.sql.measure import measure_statement, measurement_of
from tickler.table.engines.sql.metadata import MetadataStatements
from tickler.table.engines.sql.writes import Cells, Source, chunks, decided, is_blind, last_of_each, rekeyed, slice_of
from tickler.table.engines.sqlite.change_log import SqliteChangeLog
from tickler.table.engines.sqlite.metadata import SqliteMetadata
from tickler.table.engines.sqlite.reading import Read
from tickler.table.key import ItemId
from tickler.table.measurement import Measurement
from tickler.table.operation import Operation, Put
from tickler.table.selection import Span

T = TypeVar("T")

Part = Callable[[sqlite3.Connection], None]  # of a unit of work

WRITTEN_AT_A_TIME = 1_000
ROWS_AT_A_TIME = 25  # in one statement
READ_AT_A_TIME = 500
MAX_IDLE = 8  # connections that are kept for snapshots


def _finished(text: str) -> str:
    return re.sub(r"\$\d+", "?", text)


DIALECT = Dialect(
    id="INTEGER PRIMARY KEY",
    text="TEXT",
    integer="INTEGER",
    bytes="BLOB",
    no_bytes="x''",
    distinct="IS NOT",
    place="",
    tie="",  # an index of SQLite ends in the id anyway
    finished=_finished,
)
METADATA = MetadataStatements(DIALECT)
_LOGS = """
    SELECT name FROM sqlite_master
    WHERE type = 'table' AND name LIKE '%.stream'
        AND EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tickler_table_metadata')
    ORDER BY name
"""


class SqliteReader:
    def __init__(self, table: TableDefinition, layout: Layout, read: Read) -> None:
        self._table = table
        self._layout = layout
        self._read = read

    async def get(self, ids: Sequence[ItemId[Any]], *, consistent: bool, now_ms: int) -> list[Any]:
        if len(ids) > READ_AT_A_TIME:
            some = await self.get(ids[:READ_AT_A_TIME], consistent=consistent, now_ms=now_ms)
            await asyncio.sleep(0)  # a direct reader does not wait, and others have to run
            return some + await self.get(ids[READ_AT_A_TIME:], consistent=consistent, now_ms=now_ms)
        get, table = self._layout.get, self._table
        rows = await self._read(lambda database: [database.execute(get, (id.pk, id.sk)).fetchone() for id in ids])
        return [
            None if row is None or not is_alive(row[1], now_ms) else decode_at(table, id, row[0], row[2])
            for id, row in zip(ids, rows, strict=True)
        ]

    async def slice(self, ask: Ask, *, now_ms: int) -> Slice:
        text, parameters = self._layout.slice(ask, now_ms)
        rows = await self._read(lambda database: database.execute(text, parameters).fetchall())
        return slice_of(self._table, rows, ask)

    async def count(self, span: Span, entities: frozenset[str], *, consistent: bool, now_ms: int) -> int:
        text, parameters = self._layout.count(span, entities, now_ms)
        found: int = await self._read(lambda database: database.execute(text, parameters).fetchone()[0])
        return found


class SqliteEngine(SqliteReader):
    """`owned`: it opens and closes the connection, which otherwise belongs to someone else and is open already."""

    makes_tables = True

    def __init__(self, table: TableDefinition, connection: Connection, *, owned: bool = True) -> None:
        self._connection = self.database = connection
        self._owned = owned
        self._direct = DirectReader(connection)
        self._idle: list[DirectReader] = []  # of snapshots that have ended: to open one takes as long as thirty reads
        self._is_open = False
        self.metadata = SqliteMetadata(connection, METADATA, table.name)
        read: Read = connection.read if connection.path == ":memory:" else self._direct.read
        super().__init__(table, Layout(table, DIALECT), read)
        self._use(self._layout)
        self.changes = SqliteChangeLog(table, DIALECT, connection, read)

    async def open(self, *, create: bool) -> list[str]:
        self._use(Layout(self._table, DIALECT))  # of all entities that have been defined by now
        try:
            if self._owned:
                await self._connection.open(may_create=create)
            lacking = self._layout.lacking(self._connection.name, await self._connection.read(self._found))
            if not create:
                self._layout.check(self._connection.name, lacking)
            elif lacking:
                await self._connection.write(self._create)
        except SchemaMissing as error:
            await self.close()
            raise self._layout.missing(self._connection.name) from error
        except BaseException:
            await self.close()
            raise
        self._is_open = True
        return lacking

    async def close(self) -> None:
        self._is_open = False
        for direct in (self._direct, *self._idle):
            direct.close()
        self._idle.clear()
        if self._owned:
            await self._connection.close()

    async def write(self, operations: Sequence[Operation], *, now_ms: int, parts: Sequence[Part] = ()) -> list[Any]:
        if not parts and all(map(is_blind, operations)):
            rows, _ = last_of_each(operations)
            await self._connection.write(lambda database: self._put(database, rows))
            return [operation.entity for operation in operations if isinstance(operation, Put)]
        return await self._connection.write(lambda database: self._decided(database, operations, now_ms, parts))

    async def write_each(self, operations: Sequence[Operation], *, now_ms: int) -> None:
        for start in range(0, len(operations), WRITTEN_AT_A_TIME):
            rows, removed = last_of_each(operations[start : start + WRITTEN_AT_A_TIME])
            await self._connection.write(lambda database: self._put(database, rows, removed))  # noqa: B023  # awaited here

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress, *, streamed: bool = True) -> int:
        """Load in one transaction. Entities are read on the connection's thread, and progress is told on the event loop's."""
        loop = asyncio.get_running_loop()
        source = Source(self._table, entities)
        expected = length_hint(entities)

        def tell(activity: str, done: int, total: int | None) -> None:
            loop.call_soon_threadsafe(on_progress, activity, done, total)

        def load(database: sqlite3.Connection) -> int:
            if streamed or not self._table.stream:
                return self._load(database, source.rows(), expected, tell)
            self.changes.keep_no_inserts(database)
            done = self._load(database, source.rows(), expected, tell)
            self.changes.create(database)
            return done

        return await self._connection.write(load)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Reader]:
        if self._connection.path == ":memory:":
            raise InvalidInput("a database in memory has no snapshots: use a file, as in sqlite:///app.db")
        direct = self._idle.pop() if self._idle else DirectReader(self._connection)
        try:
            await direct.begin()
            yield SqliteReader(self._table, self._layout, direct.read)
        finally:
            if direct.end() and self._is_open and len(self._idle) < MAX_IDLE:
                self._idle.append(direct)
            else:
                direct.close()

    async def has_more_than(self, items: int) -> bool:
        statement = self._layout.larger_than(items)
        return bool(await self._connection.read(lambda database: database.execute(statement).fetchone()[0]))

    async def measure(self, *, now_ms: int, sample: int | None) -> Measurement:
        text, parameters = measure_statement(self._layout, now_ms)
        rows = await self._connection.read(lambda database: database.execute(text, parameters).fetchall())
        return measurement_of(self._layout, rows)

    async def reindex_some(self, after: str | None) -> Reindexed:
        return await self._connection.write(lambda database: self._reindex_some(database, after))

    def _reindex_some(self, database: sqlite3.Connection, after: str | None) -> Reindexed:
        rows = database.execute(self._layout.some_rows(WRITTEN_AT_A_TIME), (int(after or 0),)).fetchall()
        changes = rekeyed(self._table, rows)
        if changes:
            database.executemany(self._layout.set_keys(), changes)
        return Reindexed(str(rows[-1][0]) if rows else None, len(rows), len(changes))

    async def count(self, span: Span, entities: frozenset[str], *, consistent: bool, now_ms: int) -> int:
        """Count on the connection's own thread: that may take long, and the event loop's has other work."""
        text, parameters = self._layout.count(span, entities, now_ms)
        found: int = await self._connection.read(lambda database: database.execute(text, parameters).fetchone()[0])
        return found

    async def sweep(self, *, now_ms: int, limit: int) -> int:
        statement = f"""
            DELETE FROM {self._layout.table} WHERE id IN (
                SELECT id FROM {self._layout.table} WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
            )
        """
        return await self._connection.write(lambda database: database.execute(statement, (now_ms, limit)).rowcount)

    def _use(self, layout: Layout) -> None:
        self._layout = layout
        more = f", ({', '.join('?' * len(layout.columns))})" * (ROWS_AT_A_TIME - 1)
        self._upsert_rows = f"{layout.insert}{more}{layout.conflict}"

    def _found(self, database: sqlite3.Connection) -> Found:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({self._layout.table})")]
        indexes = [row[1] for row in database.execute(f"PRAGMA index_list({self._layout.table})")]
        return Found(columns, indexes, self.changes.exists(database))

    def _create(self, database: sqlite3.Connection) -> None:
        layout = self._layout
        database.execute(METADATA.create)
        database.execute(layout.create_table())
        for statement in layout.add_columns(self._found(database).columns):
            database.execute(statement)
        for index in (layout.unique_index(), *layout.secondary_indexes()):
            database.execute(index.create)
        if self._table.stream:
            self.changes.create(database)

    def _decided(
        self, database: sqlite3.Connection, operations: Sequence[Operation], now_ms: int, parts: Sequence[Part]
    ) -> list[Any]:
        for part in parts:
            part(database)
        keys = [(operation.id.pk, operation.id.sk) for operation in operations]
        stored: dict[tuple[str, str], Cells] = {}
        for key in keys:
            cells = database.execute(self._layout.select_row, key).fetchone()
            if cells is not None:
                stored[key] = cells
        writes = decided(self._table, operations, stored, now_ms)
        self._put(database, [*writes.inserted, *writes.changed], writes.removed)
        return writes.results

    def _put(self, database: sqlite3.Connection, rows: Sequence[Cells], removed: Sequence[tuple[str, str]] = ()) -> None:
        """Put several rows with a statement. A statement that fires triggers saves the pages that it changes, each time."""
        alone = len(rows) % ROWS_AT_A_TIME
        for row in rows[:alone]:
            database.execute(self._layout.upsert, row)
        for n in range(alone, len(rows), ROWS_AT_A_TIME):
            database.execute(self._upsert_rows, [*chain.from_iterable(rows[n : n + ROWS_AT_A_TIME])])
        for key in removed:
            database.execute(self._layout.delete, key)

    def _load(self, database: sqlite3.Connection, rows: Iterator[Cells], expected: int, tell: OnProgress) -> int:
        layout = self._layout
        (present,) = database.execute(f"SELECT coalesce(max(id), 0) FROM {layout.table}").fetchone()
        rebuilt = layout.secondary_indexes() if expected >= present else []
        if not present:
            rebuilt.insert(0, layout.unique_index())
        for index in rebuilt:
            database.execute(index.drop)
        done = 0
        row: Cells = ()

        def counted() -> Iterator[Cells]:
            nonlocal done, row
            for chunk in chunks(rows):
                for row in chunk:  # noqa: UP028  # the row is named if it is a duplicate
                    yield row
                done += len(chunk)
                tell("loading", done, None)

        try:
            database.executemany(layout.insert, counted())
        except sqlite3.IntegrityError:
            raise duplicate(repr(row[:2])) from None
        tell("loading", done, None)
        for number, index in enumerate(rebuilt, 1):
            try:
                database.execute(index.create)
            except sqlite3.IntegrityError:
                twice = f"SELECT pk, sk FROM {layout.table} GROUP BY pk, sk HAVING count(*) > 1 LIMIT 1"
                raise duplicate(repr(database.execute(twice).fetchone())) from None
            tell("indexing", number, len(rebuilt))
        return done


def open_engine(table: TableDefinition, url: StoreUrl) -> SqliteEngine:
    return SqliteEngine(table, connection_for(url))


def shared_engine(table: TableDefinition, connection: Connection, name: str) -> SqliteEngine:
    return SqliteEngine(table, connection, owned=False)


async def streamed_tables(connection: Connection) -> list[str]:
    """Return the names of tables with a log of changes."""
    rows = await connection.read(lambda database: database.execute(_LOGS).fetchall())
    return [name.removesuffix(".stream") for (name,) in rows]
