"""Everything that the memory store holds, for `tickler copy`."""

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
from tickler.stores.contents import Contents, HistoryItem, RawSchedule
from tickler.stores.memory.tables import AsideEntry, IndexEntry, RecordEntry, ScheduleEntry, Tables

T = TypeVar("T")


class _Kind(NamedTuple, Generic[T]):
    """How things of one kind are read and written. A walk is in the order of their places."""

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
        yield id, RawSchedule(owner=id.owner, key=id.key, **msgspec.structs.asdict(entry), **_place(tables, id))


def _rows(tables: Tables) -> Iterable[tuple[Id, RawSchedule]]:
    rows = {id: aside.entry for id, aside in tables.aside.items() if aside.state == "unreadable"} | tables.index
    for id, row in rows.items():
        if not row.managed:
            place = _place(tables, id)
            yield id, RawSchedule(owner=id.owner, key=id.key, when_text=row.when_text, tz=row.tz, **place)


def _place(tables: Tables, id: Id) -> dict[str, Any]:
    """Return the fields of a `RawSchedule` that say where it is in the index."""
    aside = tables.aside.get(id)
    if (row := tables.index.get(id)) is not None:
        standing, reason = "indexed", None
    elif aside is None or aside.state != "unreadable":
        return {"standing": "absent" if aside is None else aside.state}
    else:
        row, standing, reason = aside.entry, "unreadable", aside.reason
    place = {"next_fire_at": row.next_fire_at, "ends_at": row.ends_at, "offset_ms": row.offset_ms, "format": row.format}
    return {"standing": standing, "reason": reason, **place}


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
            tables.record([entry], expires_at)


_RECORDS = _Kind(tuple[str, str], _records, _put_records)
_SCHEDULES = _Kind(tuple[str, str], _schedules, _put_schedules)
_ROWS = _Kind(tuple[str, str], _rows, _put_rows)
_FIRES = _Kind(tuple[str, str, str], _fires, _put_fires)
_HISTORY = _Kind(tuple[str, str, int, int], _history, _put_history)
