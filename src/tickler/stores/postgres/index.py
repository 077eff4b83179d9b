"""The schedule index in PostgreSQL. FOR UPDATE SKIP LOCKED keeps claimers from waiting for each other."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.database.postgres.pool import Connection, Pool
from tickler.errors import WorkerUnfit
from tickler.index.advance import ROW_FORMAT, AdvancePlan, DueRow, advance, lacking_zones, readable, reads
from tickler.index.row_reports import OutdatedReport, log_set_aside
from tickler.model.cursor import decode_walk_id, encode_walk
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Id
from tickler.model.schedule_json import body_reads
from tickler.records.kinds import OUTDATED
from tickler.stores.postgres import records, rows
from tickler.stores.sql.index import SqlIndexReads

# The handle is the row's ctid, which cannot change while this transaction has the row locked.
SELECT_DUE = """
    WITH due AS MATERIALIZED (
        SELECT ctid, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed
        FROM {schema}.tickler_index
        WHERE next_fire_at <= $1 AND format <= $2
        ORDER BY next_fire_at
        LIMIT $3
        FOR UPDATE SKIP LOCKED
    )
    SELECT * FROM due
"""
ADVANCE = """
    UPDATE {schema}.tickler_index i SET next_fire_at = moved.next_fire_at
    FROM unnest($1::tid[], $2::bigint[]) AS moved (place, next_fire_at)
    WHERE i.ctid = moved.place
"""
_TAKE_OUT = "DELETE FROM {schema}.tickler_index WHERE ctid = ANY($1::tid[])"
_NEWER_IS_DUE = "SELECT EXISTS (SELECT FROM {schema}.tickler_index WHERE next_fire_at <= $1 AND format > $2)"
# Locks schedules first, as writers do; those that are being changed are left to the next restore.
_LOCK_SCHEDULES = """
    SELECT s.owner, s.key FROM {schema}.tickler_aside a
    JOIN {schema}.tickler_schedules s ON s.owner = a.owner AND s.key = a.key
    WHERE a.state = 'unreadable' ORDER BY s.owner, s.key FOR UPDATE OF s SKIP LOCKED
"""
_UNREADABLE = """
    SELECT a.owner, a.key, a.when_text, a.tz, a.managed, s.body
    FROM {schema}.tickler_aside a LEFT JOIN {schema}.tickler_schedules s ON s.owner = a.owner AND s.key = a.key
    WHERE a.state = 'unreadable' ORDER BY a.owner, a.key FOR UPDATE OF a SKIP LOCKED
"""
_ORPHANED = "managed AND NOT EXISTS (SELECT FROM {schema}.tickler_schedules s WHERE s.owner = i.owner AND s.key = i.key)"
_ORPHANS = f"""
    SELECT owner, key FROM {{schema}}.tickler_index i WHERE {_ORPHANED}
    UNION SELECT owner, key FROM {{schema}}.tickler_aside i WHERE {_ORPHANED}
    ORDER BY owner, key LIMIT $1
"""
# Locks in a separate statement, so that the next one sees schedules that were put before the lock was taken.
_LOCK_ORPHANS = f"""
    SELECT owner, key FROM {{schema}}.{{table}} i WHERE {_ORPHANED}
    ORDER BY owner, key LIMIT $1 FOR UPDATE SKIP LOCKED
"""
_DROP_ORPHANS = f"""
    DELETE FROM {{schema}}.{{table}} i USING unnest($1::text[], $2::text[]) AS gone (owner, key)
    WHERE i.owner = gone.owner AND i.key = gone.key AND {_ORPHANED}
"""
_RESTORE = """
    INSERT INTO {schema}.tickler_index
        (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, has_target)
    SELECT a.owner, a.key, a.when_text, a.tz, a.next_fire_at, a.ends_at, a.offset_ms, a.managed, a.format, EXISTS (
        SELECT FROM {schema}.tickler_schedules s WHERE s.owner = a.owner AND s.key = a.key AND s.body::jsonb ? 'target'
    )
    FROM {schema}.tickler_aside a JOIN unnest($1::text[], $2::text[]) AS wanted (owner, key)
    ON a.owner = wanted.owner AND a.key = wanted.key
    ON CONFLICT DO NOTHING
"""
WALK = """
    SELECT format, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed
    FROM {schema}.tickler_index WHERE (owner, key) > ($1::text, $2::text) ORDER BY owner, key LIMIT $3
"""


class PostgresIndex(SqlIndexReads):
    def __init__(self, database: Pool) -> None:
        super().__init__(database)
        self._database = database
        self._outdated = OutdatedReport()

    async def upsert_many(self, index_rows: Sequence[IndexRow], *, using: object = None) -> None:
        in_order = sorted(index_rows, key=lambda row: (row.owner, row.key))

        async def work(connection: Connection) -> None:
            ids = [Id(row.owner, row.key) for row in in_order]
            await rows.refuse_managed(connection, self._database, ids)
            await rows.enter(connection, self._database, [(row, False) for row in in_order])
            await rows.refuse_managed(connection, self._database, ids)  # one may have been put while this waited

        await self._database.write(work, using)

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        async def work(connection: Connection) -> None:
            await rows.refuse_managed(connection, self._database, [Id(owner, key)])
            await rows.leave(connection, self._database, [Id(owner, key)])

        await self._database.write(work, using)

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[IndexRow]:
        return await self._database.claim(lambda connection: self._claim(connection, now_ms, limit))

    async def restore(self) -> int:
        if not await self.set_aside(limit=1):
            return 0

        async def work(connection: Connection) -> int:
            locked = {Id(*row) for row in await connection.fetch(self._database.sql(_LOCK_SCHEDULES))}
            kept = await connection.fetch(self._database.sql(_UNREADABLE))
            ids = [
                Id(owner, key)
                for owner, key, when_text, tz, managed, body in kept
                if reads(when_text, tz) and (not managed or ((owner, key) in locked and body_reads(body)))
            ]
            if ids:
                await connection.execute(self._database.sql(_RESTORE), *rows.transposed(ids))
                await rows.take_back(connection, self._database, ids)
            return len(ids)

        return await self._database.write(work)

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        after = ("", "") if cursor is None else decode_walk_id(cursor)
        page = await self._database.fetch(WALK, *after, limit)
        rows = readable(DueRow(None, *row) for format, *row in page if format <= ROW_FORMAT)
        return rows, encode_walk((page[-1]["owner"], page[-1]["key"])) if len(page) == limit else None

    async def orphans(self, limit: int) -> list[Id]:
        return [Id(*row) for row in await self._fetch(_ORPHANS, limit)]

    async def drop_orphans(self, limit: int) -> int:
        async def work(connection: Connection) -> int:
            return sum([await self._drop_orphans(connection, table, limit) for table in ("tickler_index", "tickler_aside")])

        return await self._database.write(work)

    async def _drop_orphans(self, connection: Connection, table: str, limit: int) -> int:
        lock, drop = (self._database.sql(text.replace("{table}", table)) for text in (_LOCK_ORPHANS, _DROP_ORPHANS))
        locked = await connection.fetch(lock, limit)
        if not locked:
            return 0
        status = await connection.execute(drop, *rows.transposed([tuple(row) for row in locked]))
        return int(status.removeprefix("DELETE "))

    async def _claim(self, connection: Connection, now_ms: int, limit: int) -> list[IndexRow]:
        claimed: list[IndexRow] = []
        while True:
            wanted = limit - len(claimed)
            due = await connection.fetch(self._database.sql(SELECT_DUE), now_ms, ROW_FORMAT, wanted)
            result = advance([DueRow(*row) for row in due], now_ms)
            await self.apply(connection, result)
            claimed += result.claimed
            if not result.problems or len(claimed) == limit:
                break
        if len(claimed) < limit and await connection.fetchval(self._database.sql(_NEWER_IS_DUE), now_ms, ROW_FORMAT):
            await self.report_outdated(connection, now_ms)
        return claimed

    async def apply(self, connection: Connection, result: AdvancePlan) -> None:
        if result.moved:
            await connection.execute(self._database.sql(ADVANCE), result.moved, result.moved_to)
        await self.take_out(connection, result)

    async def take_out(self, connection: Connection, result: AdvancePlan) -> None:
        """Take rows out of the index that are finished or do not read, and put them aside."""
        if not result.finished and not result.problems:
            return
        lacking = await records.known_zones(connection, self._database, lacking_zones(result.problems))
        if lacking:
            raise WorkerUnfit(lacking)
        log_set_aside(result.problems)
        await connection.execute(self._database.sql(_TAKE_OUT), result.left())
        await rows.put_aside(connection, self._database, result.aside())

    async def report_outdated(self, connection: Connection, now_ms: int) -> None:
        report = self._outdated.make(now_ms)
        if report is not None:
            value, expires_at = report
            await records.write(connection, self._database, OUTDATED, self._outdated.name, value, expires_at, now_ms)
