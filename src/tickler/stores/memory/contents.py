"""All that the memory store holds, as it lies there."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tickler.errors import ManagedRow
from tickler.model.cursor import decode_walk, encode_walk
from tickler.model.fire import Fire
from tickler.model.record import Record
from tickler.model.schedule import Id
from tickler.stores.contents import Contents, HistoryItem, RawSchedule, raw_schedule
from tickler.stores.memory.tables import AsideEntry, IndexEntry, RecordEntry, ScheduleEntry, Tables

T = TypeVar("T")


class _Kind(NamedTuple, Generic[T]):
    """How one kind of thing is read and written. Each has a place, by which they are walked through."""

    place: type[tuple[Any, ...]]
    all: Callable[[Tables], Iterable[tuple[tuple[Any, ...], T]]]
    put: Callable[[Tables, Sequence[T]], None]


class MemoryPart(Generic[T]):
    def __init__(self, tables: Tables, kind: _Kind[T]) -> None:
        self._tables = tables
        self._kind = kind

    async def count(self) -> int | None:
        return sum(1 for _ in self._kind.all(self._tables))

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[T], str | None]:
        after = None if cursor is None else decode_walk(cursor, self._kind.place)
        left = ((place, thing) for place, thing in self._kind.all(self._tables) if after is None or place > after)
        page = heapq.nsmallest(limit, left, key=lambda each: each[0])
        return [thing for _, thing in page], encode_walk(page[-1][0]) if len(page) == limit else None

    async def restore(self, things: Sequence[T]) -> None:
        self._kind.put(self._tables, things)


def contents(tables: Tables) -> Contents:
    return Contents(
        records=MemoryPart(tables, _RECORDS),
        schedules=MemoryPart(tables, _SCHEDULES),
        rows=MemoryPart(tables, _ROWS),
        fires=MemoryPart(tables, _FIRES),
        history=MemoryPart(tables, _HISTORY),
    )


# Records.


def _records(tables: Tables) -> Iterable[tuple[tuple[str, str], Record]]:
    for (kind, name), entry in tables.records.items():
        yield (kind, name), Record(kind, name, msgspec.json.decode(entry.value), entry.version, entry.expires_at)


def _put_records(tables: Tables, records: Sequence[Record]) -> None:
    for record in records:
        entry = RecordEntry(msgspec.json.encode(record.value), record.version, record.expires_at)
        tables.records[record.kind, record.name] = entry


# Schedules, and rows of the index alone.


def _schedules(tables: Tables) -> Iterable[tuple[Id, RawSchedule]]:
    for id, entry in tables.schedules.items():
        times = (entry.version, entry.created_at, entry.updated_at)
        yield id, raw_schedule(*id, entry.when_text, entry.tz, *times, entry.enabled, entry.body, *_stands(tables, id))


def _rows(tables: Tables) -> Iterable[tuple[Id, RawSchedule]]:
    rows = {id: aside.entry for id, aside in tables.aside.items() if aside.state == "unreadable"} | tables.index
    for id, row in rows.items():
        if not row.managed:
            yield id, raw_schedule(*id, row.when_text, row.tz, 0, 0, 0, True, "{}", *_stands(tables, id))


def _stands(tables: Tables, id: Id) -> tuple[Any, ...]:
    """Its standing, and its row, if it has one."""
    row, aside = tables.index.get(id), tables.aside.get(id)
    if row is not None:
        return "indexed", row.next_fire_at, row.ends_at, row.offset_ms, row.format, None
    if aside is None:
        return ("absent",)
    row = aside.entry
    return aside.state, row.next_fire_at, row.ends_at, row.offset_ms, row.format, aside.reason


def _put_schedules(tables: Tables, schedules: Sequence[RawSchedule]) -> None:
    for raw in schedules:
        times = (raw.version, raw.created_at, raw.updated_at)
        tables.schedules[raw.id] = ScheduleEntry(raw.when_text, raw.tz, raw.enabled, *times, raw.body)
        _put_place(tables, raw)


def _put_rows(tables: Tables, rows: Sequence[RawSchedule]) -> None:
    for raw in rows:
        if raw.id in tables.schedules:
            raise ManagedRow(*raw.id)
    for raw in rows:
        _put_place(tables, raw)


def _put_place(tables: Tables, raw: RawSchedule) -> None:
    tables.leave(raw.id)
    next_fire_at = raw.updated_at if raw.next_fire_at is None else raw.next_fire_at
    row = IndexEntry(raw.when_text, raw.tz, next_fire_at, raw.ends_at, raw.offset_ms, raw.managed, raw.format)
    if raw.standing == "indexed":
        tables.index[raw.id] = row
    elif raw.standing != "absent":
        tables.aside[raw.id] = AsideEntry(row, raw.standing, raw.reason)


# Fires, and what happened to them.


def _fires(tables: Tables) -> Iterable[tuple[tuple[str, str, str], Fire]]:
    for fire in tables.fires.values():
        yield (fire.owner, fire.key, fire.id), fire


def _put_fires(tables: Tables, fires: Sequence[Fire]) -> None:
    for fire in fires:
        tables.fires.setdefault(fire.id, fire)


def _history(tables: Tables) -> Iterable[tuple[tuple[str, str, int, int], HistoryItem]]:
    for number, entry, expires_at in tables.history:
        yield (entry.owner, entry.key, entry.at, number), HistoryItem(entry, expires_at)


def _put_history(tables: Tables, history: Sequence[HistoryItem]) -> None:
    known = {each.entry for each in tables.history}
    for entry, expires_at in history:
        if entry not in known:
            tables.remember([entry], expires_at)


_RECORDS = _Kind(tuple[str, str], _records, _put_records)
_SCHEDULES = _Kind(tuple[str, str], _schedules, _put_schedules)
_ROWS = _Kind(tuple[str, str], _rows, _put_rows)
_FIRES = _Kind(tuple[str, str, str], _fires, _put_fires)
_HISTORY = _Kind(tuple[str, str, int, int], _history, _put_history)
