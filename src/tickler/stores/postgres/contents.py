"""All that PostgreSQL holds, as it lies there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tickler.database.postgres.pool import Connection, Pool
from tickler.errors import ManagedRow
from tickler.model.cursor import decode_walk, encode_walk
from tickler.model.fire import Entry, Fire, fire_columns, fire_of
from tickler.model.record import Record
from tickler.stores.contents import Contents, HistoryItem, RawSchedule, raw_schedule
from tickler.stores.postgres import rows
from tickler.stores.postgres.fire_rows import FIRE
from tickler.stores.postgres.rows import transposed

T = TypeVar("T")

# Each walk has the columns first by which it goes, and begins after a place that comes before all others.
_RECORDS = """
    SELECT kind, name, value, version, expires_at FROM {schema}.tickler_records
    WHERE (kind, name) > ($1, $2) ORDER BY kind, name LIMIT $3
"""
_SCHEDULES = """
    SELECT s.owner, s.key, s.when_text, s.tz, s.version, s.created_at, s.updated_at, s.enabled, s.body,
           CASE WHEN i.owner IS NOT NULL THEN 'indexed' ELSE coalesce(a.state, 'absent') END,
           coalesce(i.next_fire_at, a.next_fire_at), coalesce(i.ends_at, a.ends_at), coalesce(i.offset_ms, a.offset_ms),
           coalesce(i.format, a.format), a.reason
    FROM {schema}.tickler_schedules s
    LEFT JOIN {schema}.tickler_index i ON i.owner = s.owner AND i.key = s.key
    LEFT JOIN {schema}.tickler_aside a ON a.owner = s.owner AND a.key = s.key
    WHERE (s.owner, s.key) > ($1, $2) ORDER BY s.owner, s.key LIMIT $3
"""
_ROWS = """
    SELECT owner, key, when_text, tz, 0, 0, 0, true, '{}', 'indexed', next_fire_at, ends_at, offset_ms, format, NULL
    FROM {schema}.tickler_index WHERE NOT managed AND (owner, key) > ($1, $2)
    UNION ALL
    SELECT owner, key, when_text, tz, 0, 0, 0, true, '{}', state, next_fire_at, ends_at, offset_ms, format, reason
    FROM {schema}.tickler_aside WHERE NOT managed AND state = 'unreadable' AND (owner, key) > ($1, $2)
    ORDER BY owner, key LIMIT $3
"""
_FIRES = f"""
    SELECT f.owner, f.key, f.id, {FIRE} FROM {{schema}}.tickler_fires f
    WHERE (f.owner, f.key, f.id) > ($1, $2, $3) ORDER BY f.owner, f.key, f.id LIMIT $4
"""
_HISTORY = """
    SELECT owner, key, at, number, entry, expires_at FROM {schema}.tickler_history
    WHERE (owner, key, at, number) > ($1, $2, $3, $4) ORDER BY owner, key, at, number LIMIT $5
"""
_COUNT_ROWS = """
    SELECT (SELECT count(*) FROM {schema}.tickler_index WHERE NOT managed)
        + (SELECT count(*) FROM {schema}.tickler_aside WHERE NOT managed AND state = 'unreadable')
"""

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
_MANAGED = """
    SELECT s.owner, s.key FROM {schema}.tickler_schedules s JOIN unnest($1::text[], $2::text[]) AS wanted (owner, key)
    ON s.owner = wanted.owner AND s.key = wanted.key LIMIT 1
"""
_INDEX = """
    INSERT INTO {schema}.tickler_index
        (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, has_target)
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::boolean[], $9::smallint[],
        $10::boolean[]
    )
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

_encode = msgspec.json.Encoder().encode
_decode_entry = msgspec.json.Decoder(Entry).decode


class _Kind(NamedTuple, Generic[T]):
    """How one kind of thing is read and written. `start` lies before the first, and is of the type `place`."""

    counted: str
    walk: str
    start: tuple[Any, ...]
    place: type[tuple[Any, ...]]
    read: Callable[[Sequence[Any]], T]
    put: Callable[[Connection, Pool, Sequence[T]], Awaitable[None]]


class PostgresPart(Generic[T]):
    def __init__(self, database: Pool, kind: _Kind[T]) -> None:
        self._database = database
        self._kind = kind

    async def count(self) -> int | None:
        sql = self._database.sql(self._kind.counted)
        return int(await self._database.read(lambda connection: connection.fetchval(sql)))

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[T], str | None]:
        kind, sql = self._kind, self._database.sql(self._kind.walk)
        after = kind.start if cursor is None else decode_walk(cursor, kind.place)
        page = await self._database.read(lambda connection: connection.fetch(sql, *after, limit))
        following = encode_walk(tuple(page[-1])[: len(kind.start)]) if len(page) == limit else None
        return [kind.read(tuple(row)) for row in page], following

    async def restore(self, things: Sequence[T]) -> None:
        if things:
            await self._database.write(lambda connection: self._kind.put(connection, self._database, things))


def contents(database: Pool) -> Contents:
    return Contents(
        records=PostgresPart(database, _OF_RECORDS),
        schedules=PostgresPart(database, _OF_SCHEDULES),
        rows=PostgresPart(database, _OF_ROWS),
        fires=PostgresPart(database, _OF_FIRES),
        history=PostgresPart(database, _OF_HISTORY),
    )


def _record(row: Sequence[Any]) -> Record:
    kind, name, value, version, expires_at = row
    return Record(kind, name, msgspec.json.decode(value), version, expires_at)


async def _put_records(connection: Connection, database: Pool, records: Sequence[Record]) -> None:
    written = [(each.kind, each.name, _encode(each.value).decode(), each.version, each.expires_at) for each in records]
    await connection.execute(database.sql(_PUT_RECORDS), *transposed(written))


async def _put_schedules(connection: Connection, database: Pool, schedules: Sequence[RawSchedule]) -> None:
    in_order = sorted(schedules, key=_id)
    written = [
        (*raw.id, raw.when_text, raw.tz, raw.enabled, raw.version, raw.created_at, raw.updated_at, raw.body) for raw in in_order
    ]
    await connection.execute(database.sql(_PUT_SCHEDULES), *transposed(written))
    await _put_places(connection, database, in_order)


async def _put_rows(connection: Connection, database: Pool, index_rows: Sequence[RawSchedule]) -> None:
    in_order = sorted(index_rows, key=_id)
    await _put_places(connection, database, in_order)
    managed = await connection.fetchrow(database.sql(_MANAGED), *transposed([raw.id for raw in in_order]))
    if managed is not None:
        raise ManagedRow(*managed)


async def _put_places(connection: Connection, database: Pool, schedules: Sequence[RawSchedule]) -> None:
    await rows.leave(connection, database, [raw.id for raw in schedules])
    indexed = [(*_place(raw), raw.has_target) for raw in schedules if raw.standing == "indexed"]
    if indexed:
        await connection.execute(database.sql(_INDEX), *transposed(indexed))
    aside = [
        (*_place(raw), raw.standing, _without_nul(raw.reason)) for raw in schedules if raw.standing in ("unreadable", "finished")
    ]
    if aside:
        await connection.execute(database.sql(_SET_ASIDE), *transposed(aside))


def _place(raw: RawSchedule) -> tuple[object, ...]:
    next_fire_at = raw.updated_at if raw.next_fire_at is None else raw.next_fire_at
    return (*raw.id, raw.when_text, raw.tz, next_fire_at, raw.ends_at, raw.offset_ms, raw.managed, raw.format)


async def _put_fires(connection: Connection, database: Pool, fires: Sequence[Fire]) -> None:
    written = [(*fire_columns(fire)[:-1], _without_nul(fire.reason)) for fire in fires]
    await connection.execute(database.sql(_PUT_FIRES), *transposed(written))


def _remembered(row: Sequence[Any]) -> HistoryItem:
    *_, entry, expires_at = row
    return HistoryItem(_decode_entry(entry), expires_at)


async def _put_history(connection: Connection, database: Pool, history: Sequence[HistoryItem]) -> None:
    once: dict[Entry, int] = {}
    for entry, expires_at in history:
        once.setdefault(entry, expires_at)
    written = [
        (entry.owner, entry.key, entry.at, entry.happened, expires_at, _encode(entry).decode())
        for entry, expires_at in once.items()
    ]
    await connection.execute(database.sql(_PUT_HISTORY), *transposed(written))


def _without_nul(text: str | None) -> str | None:
    """PostgreSQL has no text with NULs in it."""
    return None if text is None else text.replace("\0", "\ufffd")


def _id(raw: RawSchedule) -> tuple[str, str]:
    return raw.id


def _counted(table: str) -> str:
    return f"SELECT count(*) FROM {{schema}}.{table}"


_OF_RECORDS = _Kind(_counted("tickler_records"), _RECORDS, ("", ""), tuple[str, str], _record, _put_records)
_OF_SCHEDULES = _Kind(
    _counted("tickler_schedules"), _SCHEDULES, ("", ""), tuple[str, str], lambda row: raw_schedule(*row), _put_schedules
)
_OF_ROWS = _Kind(_COUNT_ROWS, _ROWS, ("", ""), tuple[str, str], lambda row: raw_schedule(*row), _put_rows)
_OF_FIRES = _Kind(_counted("tickler_fires"), _FIRES, ("", "", ""), tuple[str, str, str], lambda row: fire_of(row[3:]), _put_fires)
_OF_HISTORY = _Kind(_counted("tickler_history"), _HISTORY, ("", "", 0, 0), tuple[str, str, int, int], _remembered, _put_history)
