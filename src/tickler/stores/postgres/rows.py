"""Statements that several parts of the store share: moves rows in and out of the index, records history, cancels fires."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import asyncpg
import msgspec

from tickler.database.postgres.pool import Connection, LostRace, Pool
from tickler.errors import ManagedRow
from tickler.fires.lease import SCHEDULE_GONE
from tickler.index.advance import ROW_FORMAT, AsideRow
from tickler.model.fire import Entry, cancelled
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Id
from tickler.schedules.write import ScheduleRemoval
from tickler.stores.sql.fires import FIRE, read_fire

COPY_FROM_ROWS = 500  # from this many on, COPY is worth a savepoint

COLUMNS = ("owner", "key", "when_text", "tz", "next_fire_at", "ends_at", "offset_ms", "managed", "format", "has_target")

INSERT = """
    INSERT INTO {schema}.tickler_index AS i
        (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, has_target)
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::boolean[], $9::smallint[],
        $10::boolean[]
    )
"""
_ENTER = f"""
    {INSERT}
    ON CONFLICT (owner, key) DO UPDATE SET
        when_text = excluded.when_text, tz = excluded.tz, next_fire_at = excluded.next_fire_at, ends_at = excluded.ends_at,
        offset_ms = excluded.offset_ms, managed = excluded.managed, format = excluded.format, has_target = excluded.has_target
    WHERE excluded.managed OR NOT i.managed
"""
_RECORD_ZONES = """
    INSERT INTO {schema}.tickler_records (kind, name, value, version) SELECT 'zone', zone, '{}', 1 FROM unnest($1::text[]) AS zone
    ON CONFLICT DO NOTHING
"""
_LEAVE = """
    DELETE FROM {schema}.tickler_index i USING unnest($1::text[], $2::text[]) AS gone (owner, key)
    WHERE i.owner = gone.owner AND i.key = gone.key
"""
_TAKE_BACK = _LEAVE.replace("tickler_index", "tickler_aside")
_MANAGED = """
    SELECT s.owner, s.key FROM {schema}.tickler_schedules s JOIN unnest($1::text[], $2::text[]) AS wanted (owner, key)
    ON s.owner = wanted.owner AND s.key = wanted.key LIMIT 1
"""
_PUT_ASIDE = """
    INSERT INTO {schema}.tickler_aside AS a
        (owner, key, state, reason, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format)
    SELECT *, $11::smallint FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::bigint[], $8::bigint[], $9::bigint[], $10::boolean[]
    )
    ON CONFLICT (owner, key) DO UPDATE SET
        state = excluded.state, reason = excluded.reason, when_text = excluded.when_text, tz = excluded.tz,
        next_fire_at = excluded.next_fire_at, ends_at = excluded.ends_at, offset_ms = excluded.offset_ms,
        managed = excluded.managed, format = excluded.format
"""
_RECORD = """
    INSERT INTO {schema}.tickler_history (owner, key, at, happened, expires_at, entry)
    SELECT owner, key, at, happened, $6::bigint, entry
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[]) AS new (owner, key, at, happened, entry)
"""
_CANCEL_ALL = f"""
    DELETE FROM {{schema}}.tickler_fires f USING unnest($1::text[], $2::text[]) AS gone (owner, key)
    WHERE f.owner = gone.owner AND f.key = gone.key
    RETURNING {FIRE}
"""

_encode = msgspec.json.Encoder().encode


Entering = Sequence[tuple[IndexRow, bool]]  # each with whether workers deliver it


async def enter(connection: Connection, database: Pool, rows: Entering, *, new: bool = False) -> None:
    """Put rows into the index, wherever they were before, and record their zones as readable.

    `new` rows are likely absent. `LostRace` if a schedule took an unmanaged row over meanwhile.
    """
    if not rows:
        return
    if not new or not await copied(connection, database, "tickler_index", COLUMNS, map(_columns, rows), len(rows)):
        status = await connection.execute(database.sql(_ENTER), *transposed([_columns(row) for row in rows]))
        if status != f"INSERT 0 {len(rows)}":
            raise LostRace
    await connection.execute(database.sql(_RECORD_ZONES), sorted({row.when.tz for row, _ in rows}))
    # A separate statement, once the rows are locked: it has to see rows that a claim it waited for has set aside.
    if len(rows) < COPY_FROM_ROWS or await connection.fetchval(
        database.sql("SELECT EXISTS (SELECT FROM {schema}.tickler_aside)")
    ):
        await take_back(connection, database, [Id(row.owner, row.key) for row, _ in rows])


async def leave(connection: Connection, database: Pool, ids: Sequence[Id]) -> None:
    """Remove rows from the index and from the set-aside rows.

    The latter twice: a restore that this waits for moves a row into the index, and a claim moves one out.
    """
    if ids:
        await take_back(connection, database, ids)
        await connection.execute(database.sql(_LEAVE), *transposed(ids))
        await take_back(connection, database, ids)


async def take_back(connection: Connection, database: Pool, ids: Sequence[Id]) -> None:
    """Remove rows from the set-aside rows."""
    if ids:
        await connection.execute(database.sql(_TAKE_BACK), *transposed(ids))


async def refuse_managed(connection: Connection, database: Pool, ids: Sequence[Id]) -> None:
    managed = await connection.fetchrow(database.sql(_MANAGED), *transposed(ids))
    if managed is not None:
        raise ManagedRow(*managed)


async def put_aside(connection: Connection, database: Pool, rows: Sequence[AsideRow]) -> None:
    """Keep rows outside the index."""
    if rows:
        await connection.execute(database.sql(_PUT_ASIDE), *transposed(rows), ROW_FORMAT)


async def record(connection: Connection, database: Pool, entries: Sequence[Entry], expires_at: int) -> None:
    if entries:
        columns = transposed([(each.owner, each.key, each.at, each.happened, _encode(each).decode()) for each in entries])
        await connection.execute(database.sql(_RECORD), *columns, expires_at)


async def cancel(connection: Connection, database: Pool, removals: Sequence[ScheduleRemoval]) -> None:
    """Cancel the fires of schedules that are deleted."""
    found = await connection.fetch(database.sql(_CANCEL_ALL), *transposed([removal.id for removal in removals]))
    if found:
        at, expires_at = removals[0].at, removals[0].expires_at
        await record(connection, database, [cancelled(read_fire(row), at, SCHEDULE_GONE) for row in found], expires_at)


async def copied(
    connection: Connection,
    database: Pool,
    table: str,
    columns: Sequence[str],
    records: Iterable[tuple[object, ...]],
    number: int,
) -> bool:
    """COPY new rows, the fastest way to insert many. Return False, with nothing written, if they are few or one exists."""
    if number < COPY_FROM_ROWS:
        return False
    try:
        async with connection.transaction():
            await connection.copy_records_to_table(
                table, schema_name=database.schema.strip('"'), columns=columns, records=records
            )
    except asyncpg.UniqueViolationError:
        return False
    return True


def transposed(records: Iterable[Sequence[object]]) -> list[list[object]]:
    """Turn rows into columns, as `unnest` takes them."""
    return [list(column) for column in zip(*records, strict=True)]


def _columns(entering: tuple[IndexRow, bool]) -> tuple[object, ...]:
    row, has_target = entering
    when = row.when
    place = (row.next_fire_at, row.ends_at, row.offset_ms, row.managed)
    return (row.owner, row.key, str(when), when.tz, *place, ROW_FORMAT, has_target)
