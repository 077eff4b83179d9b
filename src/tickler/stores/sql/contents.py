"""Everything that an SQL store holds: the walks through it, and the columns to restore. Each store has its own INSERTs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tickler.model.cursor import decode_walk, encode_walk
from tickler.model.fire import Fire
from tickler.model.record import Record
from tickler.stores.contents import Contents, HistoryItem, RawSchedule, without_place
from tickler.stores.sql.database import Database
from tickler.stores.sql.fires import FIRE, decode_entry, read_fire
from tickler.stores.sql.records import read_record

T = TypeVar("T")
Place = tuple[Any, ...]
Restore = Callable[[Sequence[T]], Awaitable[None]]

_RECORDS = """
    SELECT kind, name, value, version, expires_at FROM {schema}.tickler_records
    WHERE (kind, name) > ($1, $2) ORDER BY kind, name LIMIT $3
"""
# The columns are the fields of a `RawSchedule`, in their order.
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
    SELECT {FIRE} FROM {{schema}}.tickler_fires f
    WHERE (f.owner, f.key, f.id) > ($1, $2, $3) ORDER BY f.owner, f.key, f.id LIMIT $4
"""
_HISTORY = """
    SELECT owner, key, at, number, entry, expires_at FROM {schema}.tickler_history
    WHERE (owner, key, at, number) > ($1, $2, $3, $4) ORDER BY owner, key, at, number LIMIT $5
"""
_COUNT = "SELECT count(*) FROM {schema}."
_COUNT_ROWS = """
    SELECT (SELECT count(*) FROM {schema}.tickler_index WHERE NOT managed)
        + (SELECT count(*) FROM {schema}.tickler_aside WHERE NOT managed AND state = 'unreadable')
"""

_encode = msgspec.json.Encoder().encode


class _Kind(NamedTuple, Generic[T]):
    """How things of one kind are counted and read. A walk begins after `start`, and `place` is the type of a place in it."""

    counted: str
    walk: str
    start: Place
    place: type[Place]
    read: Callable[[Iterable[Any]], tuple[Place, T]]


class SqlPart(Generic[T]):
    def __init__(self, kind: _Kind[T], database: Database, restore: Restore[T]) -> None:
        self._kind = kind
        self._fetch = database.fetch
        self._restore = restore

    async def count(self) -> int | None:
        ((count,),) = await self._fetch(self._kind.counted)
        return int(count)

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[T], str | None]:
        kind = self._kind
        after = kind.start if cursor is None else decode_walk(cursor, kind.place)
        page = [kind.read(row) for row in await self._fetch(kind.walk, *after, limit)]
        return [thing for _, thing in page], encode_walk(page[-1][0]) if len(page) == limit else None

    async def restore(self, things: Sequence[T]) -> None:
        if things:
            await self._restore(things)


def contents(
    database: Database,
    *,
    records: Restore[Record],
    schedules: Restore[RawSchedule],
    rows: Restore[RawSchedule],
    fires: Restore[Fire],
    history: Restore[HistoryItem],
) -> Contents:
    return Contents(
        records=SqlPart(_OF_RECORDS, database, records),
        schedules=SqlPart(_OF_SCHEDULES, database, schedules),
        rows=SqlPart(_OF_ROWS, database, rows),
        fires=SqlPart(_OF_FIRES, database, fires),
        history=SqlPart(_OF_HISTORY, database, history),
    )


def record_columns(record: Record) -> Place:
    return (record.kind, record.name, _encode(record.value).decode(), record.version, record.expires_at)


def schedule_columns(raw: RawSchedule) -> Place:
    return (*raw.id, raw.when_text, raw.tz, raw.enabled, raw.version, raw.created_at, raw.updated_at, raw.body)


def row_columns(raw: RawSchedule) -> Place:
    next_fire_at = raw.updated_at if raw.next_fire_at is None else raw.next_fire_at
    return (*raw.id, raw.when_text, raw.tz, next_fire_at, raw.ends_at, raw.offset_ms, raw.managed, raw.format)


def history_columns(item: HistoryItem) -> Place:
    entry, expires_at = item
    return (entry.owner, entry.key, entry.at, entry.happened, expires_at, _encode(entry).decode())


def _read_record(row: Iterable[Any]) -> tuple[Place, Record]:
    record = read_record(row)
    return (record.kind, record.name), record


def _read_schedule(row: Iterable[Any]) -> tuple[Place, RawSchedule]:
    fields = dict(zip(RawSchedule.__struct_fields__, row, strict=True))
    raw = RawSchedule(**{**fields, "enabled": bool(fields["enabled"])})
    return raw.id, without_place(raw)


def _read_fire(row: Iterable[Any]) -> tuple[Place, Fire]:
    fire = read_fire(row)
    return (fire.owner, fire.key, fire.id), fire


def _read_history(row: Iterable[Any]) -> tuple[Place, HistoryItem]:
    owner, key, at, number, entry, expires_at = row
    return (owner, key, at, number), HistoryItem(decode_entry(entry), expires_at)


_OF_RECORDS = _Kind(f"{_COUNT}tickler_records", _RECORDS, ("", ""), tuple[str, str], _read_record)
_OF_SCHEDULES = _Kind(f"{_COUNT}tickler_schedules", _SCHEDULES, ("", ""), tuple[str, str], _read_schedule)
_OF_ROWS = _Kind(_COUNT_ROWS, _ROWS, ("", ""), tuple[str, str], _read_schedule)
_OF_FIRES = _Kind(f"{_COUNT}tickler_fires", _FIRES, ("", "", ""), tuple[str, str, str], _read_fire)
_OF_HISTORY = _Kind(f"{_COUNT}tickler_history", _HISTORY, ("", "", 0, 0), tuple[str, str, int, int], _read_history)
