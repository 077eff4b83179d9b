"""All that SQLite holds, as it lies there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tickler.database.sqlite.connection import Connection
from tickler.errors import ManagedRow
from tickler.model.cursor import decode_walk, encode_walk
from tickler.model.fire import Entry, Fire, fire_columns, fire_of
from tickler.model.record import Record
from tickler.stores.contents import Contents, HistoryItem, RawSchedule, raw_schedule
from tickler.stores.sqlite import rows
from tickler.stores.sqlite.fire_rows import FIRE

T = TypeVar("T")

# Each walk has the columns first by which it goes, and begins after a place that comes before all others.
_RECORDS = """
    SELECT kind, name, value, version, expires_at FROM tickler_records
    WHERE (kind, name) > (?, ?) ORDER BY kind, name LIMIT ?
"""
_SCHEDULES = """
    SELECT s.owner, s.key, s.when_text, s.tz, s.version, s.created_at, s.updated_at, s.enabled, s.body,
           CASE WHEN i.id IS NOT NULL THEN 'indexed' ELSE coalesce(a.state, 'absent') END,
           coalesce(i.next_fire_at, a.next_fire_at), coalesce(i.ends_at, a.ends_at), coalesce(i.offset_ms, a.offset_ms),
           coalesce(i.format, a.format), a.reason
    FROM tickler_schedules s
    LEFT JOIN tickler_index i ON i.owner = s.owner AND i.key = s.key
    LEFT JOIN tickler_aside a ON a.owner = s.owner AND a.key = s.key
    WHERE (s.owner, s.key) > (?, ?) ORDER BY s.owner, s.key LIMIT ?
"""
_ROWS = """
    WITH walked (owner, key) AS (VALUES (?, ?))
    SELECT owner, key, when_text, tz, 0, 0, 0, 1, '{}', 'indexed', next_fire_at, ends_at, offset_ms, format, NULL
    FROM tickler_index WHERE managed = 0 AND (owner, key) > (SELECT * FROM walked)
    UNION ALL
    SELECT owner, key, when_text, tz, 0, 0, 0, 1, '{}', state, next_fire_at, ends_at, offset_ms, format, reason
    FROM tickler_aside WHERE managed = 0 AND state = 'unreadable' AND (owner, key) > (SELECT * FROM walked)
    ORDER BY owner, key LIMIT ?
"""
_FIRES = f"""
    SELECT f.owner, f.key, f.id, {FIRE} FROM tickler_fires f
    WHERE (f.owner, f.key, f.id) > (?, ?, ?) ORDER BY f.owner, f.key, f.id LIMIT ?
"""
_HISTORY = """
    SELECT owner, key, at, number, entry, expires_at FROM tickler_history
    WHERE (owner, key, at, number) > (?, ?, ?, ?) ORDER BY owner, key, at, number LIMIT ?
"""
_COUNT_ROWS = """
    SELECT (SELECT count(*) FROM tickler_index WHERE managed = 0)
        + (SELECT count(*) FROM tickler_aside WHERE managed = 0 AND state = 'unreadable')
"""

_PUT_RECORD = "INSERT OR REPLACE INTO tickler_records (kind, name, value, version, expires_at) VALUES (?, ?, ?, ?, ?)"
_PUT_SCHEDULE = """
    INSERT INTO tickler_schedules (owner, key, when_text, tz, enabled, version, created_at, updated_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, key) DO UPDATE SET
        when_text = excluded.when_text, tz = excluded.tz, enabled = excluded.enabled, version = excluded.version,
        created_at = excluded.created_at, updated_at = excluded.updated_at, body = excluded.body
"""
_MANAGED = f"SELECT s.owner, s.key FROM {rows.WANTED} CROSS JOIN tickler_schedules s ON {rows.WANTED_ID} LIMIT 1"
_INDEX = """
    INSERT INTO tickler_index (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, has_target)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SET_ASIDE = """
    INSERT INTO tickler_aside (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, state, reason)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_PUT_FIRE = """
    INSERT INTO tickler_fires (id, owner, key, nominal_at, opened_at, attempt, state, deliver_after, worker, reason)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_PUT_ENTRY = """
    INSERT INTO tickler_history (owner, key, at, happened, expires_at, entry)
    SELECT * FROM (SELECT ? AS owner, ? AS key, ? AS at, ?, ?, ? AS entry) AS new
    WHERE NOT EXISTS (
        SELECT 1 FROM tickler_history WHERE owner = new.owner AND key = new.key AND at = new.at AND entry = new.entry
    )
"""

_encode = msgspec.json.Encoder().encode
_decode_entry = msgspec.json.Decoder(Entry).decode


class _Kind(NamedTuple, Generic[T]):
    """How one kind of thing is read and written. `start` lies before the first, and is of the type `place`."""

    counted: str
    walk: str
    start: tuple[Any, ...]
    place: type[tuple[Any, ...]]
    read: Callable[[tuple[Any, ...]], T]
    put: Callable[[sqlite3.Connection, Sequence[T]], None]


class SqlitePart(Generic[T]):
    def __init__(self, connection: Connection, kind: _Kind[T]) -> None:
        self._connection = connection
        self._kind = kind

    async def count(self) -> int | None:
        found = await self._connection.read(lambda connection: connection.execute(self._kind.counted).fetchone())
        return int(found[0])

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[T], str | None]:
        kind = self._kind
        after = kind.start if cursor is None else decode_walk(cursor, kind.place)
        page = await self._connection.read(lambda connection: connection.execute(kind.walk, (*after, limit)).fetchall())
        following = encode_walk(page[-1][: len(kind.start)]) if len(page) == limit else None
        return [kind.read(row) for row in page], following

    async def restore(self, things: Sequence[T]) -> None:
        await self._connection.write(lambda connection: self._kind.put(connection, things))


def contents(connection: Connection) -> Contents:
    return Contents(
        records=SqlitePart(connection, _OF_RECORDS),
        schedules=SqlitePart(connection, _OF_SCHEDULES),
        rows=SqlitePart(connection, _OF_ROWS),
        fires=SqlitePart(connection, _OF_FIRES),
        history=SqlitePart(connection, _OF_HISTORY),
    )


def _record(row: tuple[Any, ...]) -> Record:
    kind, name, value, version, expires_at = row
    return Record(kind, name, msgspec.json.decode(value), version, expires_at)


def _put_records(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    written = [(each.kind, each.name, _encode(each.value).decode(), each.version, each.expires_at) for each in records]
    connection.executemany(_PUT_RECORD, written)


def _put_schedules(connection: sqlite3.Connection, schedules: Sequence[RawSchedule]) -> None:
    written = [
        (*raw.id, raw.when_text, raw.tz, raw.enabled, raw.version, raw.created_at, raw.updated_at, raw.body) for raw in schedules
    ]
    connection.executemany(_PUT_SCHEDULE, written)
    _put_places(connection, schedules)


def _put_rows(connection: sqlite3.Connection, index_rows: Sequence[RawSchedule]) -> None:
    managed = connection.execute(_MANAGED, (rows.as_json([raw.id for raw in index_rows]),)).fetchone()
    if managed:
        raise ManagedRow(*managed)
    _put_places(connection, index_rows)


def _put_places(connection: sqlite3.Connection, schedules: Sequence[RawSchedule]) -> None:
    rows.leave(connection, [raw.id for raw in schedules])
    indexed = [(*_place(raw), raw.has_target) for raw in schedules if raw.standing == "indexed"]
    connection.executemany(_INDEX, indexed)
    aside = [(*_place(raw), raw.standing, raw.reason) for raw in schedules if raw.standing in ("unreadable", "finished")]
    connection.executemany(_SET_ASIDE, aside)


def _place(raw: RawSchedule) -> tuple[object, ...]:
    next_fire_at = raw.updated_at if raw.next_fire_at is None else raw.next_fire_at
    return (*raw.id, raw.when_text, raw.tz, next_fire_at, raw.ends_at, raw.offset_ms, raw.managed, raw.format)


def _put_fires(connection: sqlite3.Connection, fires: Sequence[Fire]) -> None:
    connection.executemany(_PUT_FIRE, [fire_columns(fire) for fire in fires])


def _remembered(row: tuple[Any, ...]) -> HistoryItem:
    *_, entry, expires_at = row
    return HistoryItem(_decode_entry(entry), expires_at)


def _put_history(connection: sqlite3.Connection, history: Sequence[HistoryItem]) -> None:
    written = [
        (entry.owner, entry.key, entry.at, entry.happened, expires_at, _encode(entry).decode()) for entry, expires_at in history
    ]
    connection.executemany(_PUT_ENTRY, written)


def _counted(table: str) -> str:
    return f"SELECT count(*) FROM {table}"


_OF_RECORDS = _Kind(_counted("tickler_records"), _RECORDS, ("", ""), tuple[str, str], _record, _put_records)
_OF_SCHEDULES = _Kind(
    _counted("tickler_schedules"), _SCHEDULES, ("", ""), tuple[str, str], lambda row: raw_schedule(*row), _put_schedules
)
_OF_ROWS = _Kind(_COUNT_ROWS, _ROWS, ("", ""), tuple[str, str], lambda row: raw_schedule(*row), _put_rows)
_OF_FIRES = _Kind(_counted("tickler_fires"), _FIRES, ("", "", ""), tuple[str, str, str], lambda row: fire_of(row[3:]), _put_fires)
_OF_HISTORY = _Kind(_counted("tickler_history"), _HISTORY, ("", "", 0, 0), tuple[str, str, int, int], _remembered, _put_history)
