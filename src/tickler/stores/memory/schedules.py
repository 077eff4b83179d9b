"""Schedules in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tickler.database.memory import MemoryPart
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import InvalidInput
from tickler.fires.lease import SCHEDULE_GONE
from tickler.model.fire import cancelled
from tickler.model.schedule import Id, State, StoredSchedule
from tickler.model.schedule_json import stored_schedule
from tickler.schedules.contract import Decide, Stored, check_unchanged
from tickler.schedules.write import ScheduleChange, ScheduleRemoval, id_of
from tickler.stores.memory.tables import ScheduleEntry, Tables


class MemorySchedules:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def change(self, ids: Sequence[Id], decide: Decide, *, using: object = None) -> None:
        await self._change(lambda: {id: stored for id in ids if (stored := self.read(id)) is not None}, decide, using)

    async def change_owner(self, owner: str, decide: Decide, *, using: object = None) -> None:
        def of_owner() -> Stored:
            ids = sorted(id for id in self._tables.schedules if id.owner == owner)
            return {id: stored for id in ids if (stored := self.read(id)) is not None}

        await self._change(of_owner, decide, using)

    async def _change(self, select: Callable[[], Stored], decide: Decide, using: object) -> None:
        if not isinstance(using, UnitOfWork):
            refuse_using(using)
            self.apply(decide(select()))
            return
        seen = select()
        changes = decide(seen)
        await using.join(self._tables.database, map(id_of, changes))
        using.add(MemoryPart(lambda: check_unchanged(seen, select()), lambda: self.apply(changes)))

    async def get(self, id: Id, *, using: object = None) -> StoredSchedule | None:
        if not isinstance(using, UnitOfWork):
            refuse_using(using)
        return self.read(id)

    async def list(
        self, *, owner: str | None, state: State | None, after: Id | None, limit: int, failing: bool = False
    ) -> list[StoredSchedule]:
        ids = sorted(id for id in self._tables.schedules if owner in (None, id.owner) and (after is None or id > after))
        if failing:
            dead = {fire.schedule_id for fire in self._tables.fires.values() if fire.state == "dead"}
            ids = [id for id in ids if id in dead]
        every = (stored for id in ids if (stored := self.read(id)) is not None)
        return [stored for stored in every if state in (None, stored.state)][:limit]

    def read(self, id: Id) -> StoredSchedule | None:
        entry = self._tables.schedules.get(id)
        if entry is None:
            return None
        row = self._tables.index.get(id)
        aside = self._tables.aside.get(id)
        return stored_schedule(
            **msgspec.structs.asdict(entry),
            owner=id.owner,
            key=id.key,
            next_fire_at=row.next_fire_at if row else None,
            aside=aside.state if aside else None,
            reason=aside.reason if aside else None,
        )

    def apply(self, changes: Sequence[ScheduleChange | ScheduleRemoval]) -> None:
        tables = self._tables
        for change in changes:
            if isinstance(change, ScheduleRemoval):
                self._remove(change)
                continue
            id = change.schedule.id
            when, enabled, body = change.schedule.when, change.schedule.enabled, change.body.decode()
            times = (change.version, change.created_at, change.updated_at)
            tables.schedules[id] = ScheduleEntry(str(when), when.tz, enabled, *times, body)
            if change.move != "keep":
                tables.leave(id)
            if change.row is not None:
                tables.enter(change.row, managed=True)
            if change.move == "finish":
                tables.put_aside(change.finished())

    def _remove(self, removal: ScheduleRemoval) -> None:
        tables = self._tables
        del tables.schedules[removal.id]
        tables.leave(removal.id)
        owed = [fire for fire in tables.fires.values() if (fire.owner, fire.key) == removal.id]
        tables.record([cancelled(fire, removal.at, SCHEDULE_GONE) for fire in owed], removal.expires_at)
        for fire in owed:
            del tables.fires[fire.id]


def refuse_using(using: object) -> None:
    if using is not None:
        raise InvalidInput(
            "using= has no connection to join in memory://: pass a transaction of a table in the same memory, or use sqlite:///"
        )
