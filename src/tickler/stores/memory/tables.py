"""The tables of the memory store. Rows are kept as text, as in the other stores, so that unreadable ones can exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tickler.database.memory import MemoryDatabase
from tickler.index.advance import ROW_FORMAT, AsideRow
from tickler.model.fire import Entry, Fire
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Id, State
from tickler.records.kinds import ZONE


class ScheduleEntry(msgspec.Struct):
    when_text: str
    tz: str
    enabled: bool
    version: int
    created_at: int
    updated_at: int
    body: str


class IndexEntry(msgspec.Struct):
    when_text: str
    tz: str
    next_fire_at: int
    ends_at: int | None
    offset_ms: int
    managed: bool
    format: int = ROW_FORMAT


class AsideEntry(msgspec.Struct):
    entry: IndexEntry
    state: State
    reason: str | None


class RecordEntry(msgspec.Struct):
    value: bytes
    version: int
    expires_at: int | None


class HistoryEntry(NamedTuple):
    number: int
    entry: Entry
    expires_at: int


class Tables:
    def __init__(self) -> None:
        self.database = MemoryDatabase()
        self.fires: dict[str, Fire] = {}
        self.history: list[HistoryEntry] = []
        self.schedules: dict[Id, ScheduleEntry] = {}
        self.index: dict[Id, IndexEntry] = {}
        self.aside: dict[Id, AsideEntry] = {}
        self.records: dict[tuple[str, str], RecordEntry] = {}

    def clear(self) -> None:
        for table in (self.schedules, self.index, self.aside, self.records, self.fires, self.history):
            table.clear()

    def enter(self, row: IndexRow, *, managed: bool) -> None:
        """Put a row into the index, wherever it was before."""
        id = Id(row.owner, row.key)
        self.index[id] = IndexEntry(str(row.when), row.when.tz, row.next_fire_at, row.ends_at, row.offset_ms, managed)
        self.aside.pop(id, None)
        self.records.setdefault((ZONE, row.when.tz), RecordEntry(b"{}", 1, None))

    def put_aside(self, row: AsideRow) -> None:
        """Keep a row outside the index."""
        id = Id(row.owner, row.key)
        self.leave(id)
        entry = IndexEntry(row.when_text, row.tz, row.next_fire_at, row.ends_at, row.offset_ms, row.managed)
        self.aside[id] = AsideEntry(entry, row.state, row.reason)

    def record(self, entries: Iterable[Entry], expires_at: int) -> None:
        first = self.history[-1].number + 1 if self.history else 1
        self.history += [HistoryEntry(number, entry, expires_at) for number, entry in enumerate(entries, first)]

    def leave(self, id: Id) -> None:
        self.index.pop(id, None)
        self.aside.pop(id, None)
