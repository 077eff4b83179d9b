"""Everything that PostgreSQL holds, for `tickler copy`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from tickler.database.postgres.pool import Connection, Pool
from tickler.model.fire import Entry, Fire
from tickler.model.record import Record
from tickler.stores.contents import Contents, HistoryItem, RawSchedule
from tickler.stores.postgres import rows
from tickler.stores.postgres.rows import transposed
from tickler.stores.sql import contents as sql
from tickler.stores.sql.fires import fire_columns

T = TypeVar("T")

_PUT_RECORDS = """
    INSERT INTO {schema}.tickler_records (kind, name, value, version, expires_at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
    ON CONFLICT (kind, name) DO UPDATE SET
        value = excluded.value, version = excluded.version, expires_at = excluded.expires_at
"""
_PUT_SCHEDULES = """
    INSERT INTO {schema}.tickler_schedules (owner, key, when_text, tz, enabled, version, created_at, updated_at, body)
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]
    )
    ON CONFLICT (owner, key) DO UPDATE SET
        when_text = excluded.when_text, tz = excluded.tz, enabled = excluded.enabled, version = excluded.version,
        created_at = excluded.created_at, updated_at = excluded.updated_at, body = excluded.body
"""
_SET_ASIDE = """
    INSERT INTO {schema}.tickler_aside
        (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, state, reason)
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::boolean[], $9::smallint[],
        $10::text[], $11::text[]
    )
"""
_PUT_FIRES = """
    INSERT INTO {schema}.tickler_fires (id, owner, key, nominal_at, opened_at, attempt, state, deliver_after, worker, reason)
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::integer[], $7::text[], $8::bigint[], $9::text[],
        $10::text[]
    )
    ON CONFLICT DO NOTHING
"""
_PUT_HISTORY = """
    INSERT INTO {schema}.tickler_history (owner, key, at, happened, expires_at, entry)
    SELECT new.owner, new.key, new.at, new.happened, new.expires_at, new.entry
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[])
        WITH ORDINALITY AS new (owner, key, at, happened, expires_at, entry, place)
    WHERE NOT EXISTS (
        SELECT FROM {schema}.tickler_history h
        WHERE h.owner = new.owner AND h.key = new.key AND h.at = new.at AND h.entry = new.entry
    )
    ORDER BY new.place
"""


def contents(database: Pool) -> Contents:
    def restoring(put: Callable[[Connection, Pool, Sequence[T]], Awaitable[None]]) -> sql.Restore[T]:
        return lambda things: database.write(lambda connection: put(connection, database, things))

    return sql.contents(
        database,
        records=restoring(_put_records),
        schedules=restoring(_put_schedules),
        rows=restoring(_put_rows),
        fires=restoring(_put_fires),
        history=restoring(_put_history),
    )


async def _put_records(connection: Connection, database: Pool, records: Sequence[Record]) -> None:
    await connection.execute(database.sql(_PUT_RECORDS), *transposed([sql.record_columns(record) for record in records]))


async def _put_schedules(connection: Connection, database: Pool, schedules: Sequence[RawSchedule]) -> None:
    in_order = sorted(schedules, key=lambda raw: raw.id)
    await connection.execute(database.sql(_PUT_SCHEDULES), *transposed([sql.schedule_columns(raw) for raw in in_order]))
    await _put_places(connection, database, in_order)


async def _put_rows(connection: Connection, database: Pool, index_rows: Sequence[RawSchedule]) -> None:
    in_order = sorted(index_rows, key=lambda raw: raw.id)
    await _put_places(connection, database, in_order)
    await rows.refuse_managed(connection, database, [raw.id for raw in in_order])


async def _put_places(connection: Connection, database: Pool, schedules: Sequence[RawSchedule]) -> None:
    await rows.leave(connection, database, [raw.id for raw in schedules])
    indexed = [(*sql.row_columns(raw), raw.has_target) for raw in schedules if raw.standing == "indexed"]
    if indexed:
        await connection.execute(database.sql(rows.INSERT), *transposed(indexed))
    aside = [
        (*sql.row_columns(raw), raw.standing, _without_nul(raw.reason))
        for raw in schedules
        if raw.standing in ("unreadable", "finished")
    ]
    if aside:
        await connection.execute(database.sql(_SET_ASIDE), *transposed(aside))


async def _put_fires(connection: Connection, database: Pool, fires: Sequence[Fire]) -> None:
    written = [fire_columns(replace(fire, reason=_without_nul(fire.reason))) for fire in fires]
    await connection.execute(database.sql(_PUT_FIRES), *transposed(written))


async def _put_history(connection: Connection, database: Pool, history: Sequence[HistoryItem]) -> None:
    once: dict[Entry, HistoryItem] = {}
    for item in history:
        once.setdefault(item.entry, item)
    await connection.execute(database.sql(_PUT_HISTORY), *transposed([sql.history_columns(item) for item in once.values()]))


def _without_nul(text: str | None) -> str | None:
    """PostgreSQL text cannot contain NUL."""
    return None if text is None else text.replace("\0", "\ufffd")
