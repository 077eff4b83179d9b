"""The schedule index in SQLite. BEGIN IMMEDIATE admits one claimer at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from tickler.database.sqlite.connection import Connection
from tickler.errors import WorkerUnfit
from tickler.index.advance import ROW_FORMAT, AdvancePlan, DueRow, advance, lacking_zones, readable, reads
from tickler.index.row_reports import OutdatedReport, log_set_aside
from tickler.model.cursor import decode_walk, encode_walk, invalid_walk_cursor
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Id
from tickler.model.schedule_json import body_reads
from tickler.records.kinds import OUTDATED
from tickler.stores.sql.index import SqlIndexReads
from tickler.stores.sqlite import records, rows

SELECT_DUE = """
    SELECT id, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed
    FROM tickler_index
    WHERE next_fire_at <= ? AND format <= ?
    ORDER BY next_fire_at
    LIMIT ?
"""
# Every row conflicts with itself, and is updated. CROSS JOIN fixes the order of the look-ups. UPDATE FROM does not: after an
# ANALYZE of a small index, it would scan the whole index.
ADVANCE = """
    INSERT INTO tickler_index (id, owner, key, when_text, tz, next_fire_at, managed, format)
    SELECT i.id, i.owner, i.key, i.when_text, i.tz, json_extract(moved.value, '$[0]'), i.managed, i.format
    FROM json_each(?) AS moved CROSS JOIN tickler_index i ON i.id = json_extract(moved.value, '$[1]')
    WHERE true ON CONFLICT DO UPDATE SET next_fire_at = excluded.next_fire_at
"""

_NEWER_IS_DUE = "SELECT 1 FROM tickler_index WHERE next_fire_at <= ? AND format > ? LIMIT 1"
_ORPHANS = """
    SELECT owner, key FROM (
        SELECT owner, key FROM tickler_index WHERE managed = 1 UNION SELECT owner, key FROM tickler_aside WHERE managed = 1
    ) AS i
    WHERE NOT EXISTS (SELECT 1 FROM tickler_schedules s WHERE s.owner = i.owner AND s.key = i.key)
    ORDER BY owner, key LIMIT ?
"""
_UNREADABLE = """
    SELECT a.owner, a.key, a.when_text, a.tz, s.body
    FROM tickler_aside a LEFT JOIN tickler_schedules s ON s.owner = a.owner AND s.key = a.key
    WHERE a.state = 'unreadable'
"""
_RESTORE = """
    INSERT INTO tickler_index (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, has_target)
    SELECT owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, EXISTS (
        SELECT 1 FROM tickler_schedules s
        WHERE s.owner = a.owner AND s.key = a.key AND json_type(s.body, '$.target') IS NOT NULL
    )
    FROM tickler_aside a WHERE owner = ? AND key = ?
    ON CONFLICT DO NOTHING
"""
WALK = """
    SELECT id, format, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed
    FROM tickler_index WHERE id > ? ORDER BY id LIMIT ?
"""


class SqliteIndex(SqlIndexReads):
    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._connection = connection
        self._outdated = OutdatedReport()

    async def upsert_many(self, index_rows: Sequence[IndexRow], *, using: object = None) -> None:
        def work(connection: sqlite3.Connection) -> None:
            rows.refuse_managed(connection, [Id(row.owner, row.key) for row in index_rows])
            rows.enter(connection, [(row, False) for row in index_rows])

        await self._connection.write(work, using)

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        def work(connection: sqlite3.Connection) -> None:
            rows.refuse_managed(connection, [Id(owner, key)])
            rows.leave(connection, [Id(owner, key)])

        await self._connection.write(work, using)

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[IndexRow]:
        return await self._connection.write(lambda connection: self._claim(connection, now_ms, limit))

    async def restore(self) -> int:
        if not await self.set_aside(limit=1):  # so that an ordinary start does not take the write lock
            return 0

        def work(connection: sqlite3.Connection) -> int:
            ids = [
                Id(owner, key)
                for owner, key, when_text, tz, body in connection.execute(_UNREADABLE).fetchall()
                if reads(when_text, tz) and (body is None or body_reads(body))
            ]
            connection.executemany(_RESTORE, ids)
            rows.take_back(connection, ids)
            return len(ids)

        return await self._connection.write(work)

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        after = 0 if cursor is None else decode_walk(cursor, int)
        if not 0 <= after < 1 << 63:
            raise invalid_walk_cursor(cursor)
        page = await self._connection.read(lambda connection: connection.execute(WALK, (after, limit)).fetchall())
        rows = readable(DueRow(id, *row) for id, format, *row in page if format <= ROW_FORMAT)
        return rows, encode_walk(page[-1][0]) if len(page) == limit else None

    async def orphans(self, limit: int) -> list[Id]:
        return await self._connection.read(lambda connection: _orphans(connection, limit))

    async def drop_orphans(self, limit: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            ids = _orphans(connection, limit)
            rows.leave(connection, ids)
            return len(ids)

        return await self._connection.write(work)

    def _claim(self, connection: sqlite3.Connection, now_ms: int, limit: int) -> list[IndexRow]:
        claimed: list[IndexRow] = []
        while True:
            wanted = limit - len(claimed)
            due = connection.execute(SELECT_DUE, (now_ms, ROW_FORMAT, wanted)).fetchall()
            result = advance([DueRow(*row) for row in due], now_ms)
            apply(connection, result)
            claimed += result.claimed
            if not result.problems or len(claimed) == limit:
                break
        if len(claimed) < limit and connection.execute(_NEWER_IS_DUE, (now_ms, ROW_FORMAT)).fetchone():
            self.report_outdated(connection, now_ms)
        return claimed

    def report_outdated(self, connection: sqlite3.Connection, now_ms: int) -> None:
        report = self._outdated.make(now_ms)
        if report is not None:
            value, expires_at = report
            records.write(connection, OUTDATED, self._outdated.name, value, expires_at)


def apply(connection: sqlite3.Connection, result: AdvancePlan) -> None:
    # In the order of the new instants, so that neighbouring index entries are written together.
    connection.execute(ADVANCE, (rows.as_json(sorted(zip(result.moved_to, result.moved, strict=True))),))
    if result.finished or result.problems:
        _take_out(connection, result)


def _take_out(connection: sqlite3.Connection, result: AdvancePlan) -> None:
    lacking = records.known_zones(connection, lacking_zones(result.problems))
    if lacking:
        raise WorkerUnfit(lacking)
    log_set_aside(result.problems)
    connection.executemany("DELETE FROM tickler_index WHERE id = ?", [(id,) for id in result.left()])
    rows.put_aside(connection, result.aside())


def _orphans(connection: sqlite3.Connection, limit: int) -> list[Id]:
    return [Id(*row) for row in connection.execute(_ORPHANS, (limit,)).fetchall()]
