"""The schedule index in a dictionary."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from tickler.errors import ManagedRow, WorkerUnfit
from tickler.index.advance import ROW_FORMAT, AdvancePlan, DueRow, advance, lacking_zones, readable, reads
from tickler.index.row_reports import OutdatedReport, log_set_aside
from tickler.model.cursor import decode_walk_id, encode_walk
from tickler.model.index_row import IndexRow, SetAside
from tickler.model.schedule import Id
from tickler.records.kinds import OUTDATED, ZONE
from tickler.stores.memory.schedules import refuse_using
from tickler.stores.memory.tables import RecordEntry, Tables


class MemoryIndex:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._outdated = OutdatedReport()

    async def upsert_many(self, rows: Sequence[IndexRow], *, using: object = None) -> None:
        refuse_using(using)
        for row in rows:
            self._refuse_managed(Id(row.owner, row.key))
        for row in rows:
            self._tables.enter(row, managed=False)

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        refuse_using(using)
        self._refuse_managed(Id(owner, key))
        self._tables.leave(Id(owner, key))

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[IndexRow]:
        result = advance(map(self.row, self.due(now_ms)[:limit]), now_ms)
        self.apply(result)
        return result.claimed

    def due(self, now_ms: int, wanted: Callable[[Id], bool] = lambda id: True, until_ms: int | None = None) -> list[Id]:
        """Return readable rows that are due by `until_ms`, earliest first; set unreadable ones aside, and report newer ones."""
        index = self._tables.index
        due = [id for id, entry in index.items() if entry.next_fire_at <= (until_ms or now_ms) and wanted(id)]
        due.sort(key=lambda id: (index[id].next_fire_at, id))
        known = [id for id in due if index[id].format <= ROW_FORMAT]
        result = advance(map(self.row, known), now_ms)
        problems, result.finished = result.problems, []
        lacking = {zone for zone in lacking_zones(problems) if (ZONE, zone) in self._tables.records}
        if lacking:
            raise WorkerUnfit(lacking)
        log_set_aside(problems)
        for aside in result.aside():
            self._tables.put_aside(aside)
        if len(known) < len(due):
            self._report_outdated(now_ms)
        return [id for id in known if id in index]

    def apply(self, result: AdvancePlan) -> None:
        for moved, next_fire_at in zip(result.moved, result.moved_to, strict=True):
            self._tables.index[moved].next_fire_at = next_fire_at
        for row in result.finished:
            self._tables.leave(row.handle)
        for aside in result.aside():
            self._tables.put_aside(aside)

    async def next_due(self) -> int | None:
        return min((entry.next_fire_at for entry in self._tables.index.values()), default=None)

    async def count(self, *, due_by: int | None = None, most: int | None = None) -> int:
        found = sum(due_by is None or entry.next_fire_at <= due_by for entry in self._tables.index.values())
        return found if most is None else min(found, most)

    async def next_fires(self, owner: str, limit: int) -> tuple[list[int], bool]:
        found = [entry.next_fire_at for id, entry in self._tables.index.items() if id.owner == owner]
        return found[:limit], len(found) > limit

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        unreadable = sorted((id, aside) for id, aside in self._tables.aside.items() if aside.state == "unreadable")
        return [
            SetAside(
                *id, aside.entry.when_text, aside.entry.tz, aside.entry.next_fire_at, aside.reason or "", aside.entry.managed
            )
            for id, aside in unreadable[:limit]
        ]

    async def count_set_aside(self) -> int:
        return sum(aside.state == "unreadable" for aside in self._tables.aside.values())

    async def restore(self) -> int:
        aside = self._tables.aside
        readable = [id for id, row in aside.items() if row.state == "unreadable" and reads(row.entry.when_text, row.entry.tz)]
        for id in readable:
            self._tables.index[id] = aside.pop(id).entry
        return len(readable)

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        index = self._tables.index
        after = None if cursor is None else decode_walk_id(cursor)
        page = heapq.nsmallest(limit, (id for id in index if after is None or id > after))
        rows = readable(self.row(id) for id in page if index[id].format <= ROW_FORMAT)
        return rows, encode_walk(page[-1]) if len(page) == limit else None

    async def orphans(self, limit: int) -> list[Id]:
        return heapq.nsmallest(limit, self._orphans())

    async def drop_orphans(self, limit: int) -> int:
        dropped = heapq.nsmallest(limit, self._orphans())
        for id in dropped:
            self._tables.leave(id)
        return len(dropped)

    def _orphans(self) -> set[Id]:
        tables = self._tables
        managed = {id for id, entry in tables.index.items() if entry.managed}
        managed |= {id for id, aside in tables.aside.items() if aside.entry.managed}
        return managed - tables.schedules.keys()

    def row(self, id: Id) -> DueRow:
        row = self._tables.index[id]
        return DueRow(id, *id, row.when_text, row.tz, row.next_fire_at, row.ends_at, row.offset_ms, row.managed)

    def _refuse_managed(self, id: Id) -> None:
        if id in self._tables.schedules:
            raise ManagedRow(*id)

    def _report_outdated(self, now_ms: int) -> None:
        report = self._outdated.make(now_ms)
        if report is not None:
            value, expires_at = report
            self._tables.records[OUTDATED, self._outdated.name] = RecordEntry(value, 1, expires_at)
