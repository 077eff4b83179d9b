"""Fires and their history in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Literal

from msgspec.structs import asdict, replace

from tickler.database.memory import MemoryPart
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict
from tickler.fires.byte_budget import ByteBudget
from tickler.fires.claim import ClaimBatch, DueSchedule
from tickler.fires.contract import ClaimRequest, LeaseRequest
from tickler.fires.lease import lease
from tickler.fires.settle import change, ends_fire, holds, next_to_wake, settled, woken
from tickler.index.row_reports import log_set_aside
from tickler.model.cursor import decode_entry_number
from tickler.model.fire import MANUALLY, Claim, DueItem, Entry, Extension, Fire, FireState, Health, Settlement
from tickler.model.schedule import Id
from tickler.stores.memory.index import MemoryIndex
from tickler.stores.memory.schedules import MemorySchedules, refuse_using
from tickler.stores.memory.tables import Tables

_NOT_DEAD = ("open", "waiting")


class MemoryFires:
    def __init__(self, tables: Tables, schedules: MemorySchedules, index: MemoryIndex) -> None:
        self._tables = tables
        self._schedules = schedules
        self._index = index

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        await asyncio.sleep(0)  # a store waits for its answer: attempts begin before the next claim
        tables = self._tables
        others = request.except_owners
        due = self._index.due(
            request.now_ms, lambda id: id.owner not in others and self._has_target(id), until_ms=request.until_ms
        )
        claimed: list[Claim] = []
        left, budget = request.limit, ByteBudget(request.max_bytes)
        while left > 0 and due:
            taken = budget.fitting(due[:left], self._size)
            batch = ClaimBatch([self._due(id) for id in taken], request, left)
            due = due[len(taken) :] if batch.advance.problems else []
            log_set_aside(batch.advance.problems)
            self._index.apply(batch.advance)
            busy = {Id(fire.owner, fire.key) for fire in tables.fires.values() if fire.state in _NOT_DEAD}
            opened = batch.open(busy)
            new = {fire.id: fire for fire in opened.fires if fire.id not in tables.fires}
            tables.fires |= new
            tables.record(opened.entries, request.expires_at)
            claimed += opened.claimed(new)
            left -= batch.size
            budget = budget if claimed else ByteBudget(request.max_bytes)
        return claimed

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        tables = self._tables
        due = [
            fire
            for fire in tables.fires.values()
            if fire.deliver_after is not None
            and fire.deliver_after <= request.now_ms - (request.head_start_ms if fire.has_release_reason else 0)
            and (request.expired or fire.worker is None)
            and fire.owner not in request.except_owners
        ]
        due.sort(key=lambda fire: fire.deliver_after or 0)
        budget = ByteBudget(request.max_bytes)
        fitting = budget.fitting_by_name(due[: request.limit], lambda fire: self._size(_id(fire)), _id)
        result = lease([(fire, self._schedules.read(_id(fire))) for fire in fitting], request)
        for fire in [*result.dead, *(claim.fire for claim in result.claims if claim.fire is not None)]:
            tables.fires[fire.id] = fire
        for fire in result.cancelled:
            del tables.fires[fire.id]
        tables.record(result.entries, request.expires_at)
        for fire in result.dead:
            self._wake(Id(fire.owner, fire.key), request.now_ms)
        return result.claims

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        for fire in fires:
            if holds(self._tables.fires.get(fire.id), fire):
                self._tables.fires[fire.id] = replace(self._tables.fires[fire.id], deliver_after=until_ms)
        return Extension([fire for fire in fires if not holds(self._tables.fires.get(fire.id), fire)])

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        tables = self._tables
        tables.record([each.entry for each in settlements if each.entry is not None], expires_at)
        owed = [(each, each.fire) for each in settlements if each.fire is not None]
        lost = [fire for _, fire in owed if not holds(tables.fires.get(fire.id), fire)]
        for each, fire in owed:
            if holds(tables.fires.get(fire.id), fire):
                self._put(fire, settled(fire, each, now_ms))
        waiting = {_id(fire) for fire in tables.fires.values() if fire.state == "waiting"}
        left = {_id(fire) for fire in tables.fires.values()}
        for each in settlements:
            if ends_fire(each) and each.id in waiting:
                self._wake(each.id, now_ms)
            if each.delete_schedule and each.id not in left:
                self._delete(each.id)
        return lost

    async def open(self, fire: Fire, entry: Entry | None = None, *, expires_at: int = 0, using: object = None) -> bool:
        if not isinstance(using, UnitOfWork):
            refuse_using(using)
            opened = self._can_open(fire)
            if opened:
                self._open(fire, entry, expires_at)
            return opened
        if not self._can_open(fire):
            return False

        def check() -> None:
            if not self._can_open(fire):
                raise TransactionConflict(f"the schedule {fire.schedule_id}")

        await using.join(self._tables.database, [fire.schedule_id])
        using.add(MemoryPart(check, lambda: self._open(fire, entry, expires_at)))
        return True

    def _can_open(self, fire: Fire) -> bool:
        return fire.id not in self._tables.fires and fire.schedule_id in self._tables.schedules

    def _open(self, fire: Fire, entry: Entry | None, expires_at: int) -> None:
        self._tables.fires[fire.id] = fire
        self._tables.record([] if entry is None else [entry], expires_at)

    async def change(
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = MANUALLY
    ) -> Fire | None:
        fire = self._tables.fires.get(fire_id)
        decided = change(fire, to, now_ms, why)
        if fire is None or decided is None:
            return None
        self._put(fire, decided.after)
        self._tables.record([decided.entry], expires_at)
        if decided.after is None:
            self._wake(Id(fire.owner, fire.key), now_ms)
        return fire

    async def get(self, fire_id: str) -> Fire | None:
        return self._tables.fires.get(fire_id)

    async def history(self, *, id: Id, before: tuple[int, str] | None, limit: int) -> list[tuple[str, Entry]]:
        found = [(each.entry.at, each.number, each.entry) for each in self._tables.history if _id(each.entry) == id]
        if before is not None:
            found = [each for each in found if each[:2] < (before[0], decode_entry_number(before[1]))]
        found.sort(key=lambda each: each[:2], reverse=True)
        return [(str(number), entry) for _, number, entry in found[:limit]]

    async def health(self, ids: Sequence[Id]) -> dict[Id, Health]:
        dead = {_id(fire) for fire in self._tables.fires.values() if fire.state == "dead"}
        last = {id: await self.history(id=id, before=None, limit=1) for id in ids}
        return {id: Health(found[0][1] if found else None, id in dead) for id, found in last.items()}

    async def peek(self, due_by: int, limit: int) -> list[DueItem]:
        rows = [
            DueItem(*id, entry.next_fire_at, None) for id, entry in self._tables.index.items() if entry.next_fire_at <= due_by
        ]
        fires = [
            DueItem(fire.owner, fire.key, fire.deliver_after, fire.id)
            for fire in self._tables.fires.values()
            if fire.deliver_after is not None and fire.deliver_after <= due_by
        ]
        due = sorted([*rows, *fires], key=attrgetter("at"))
        return list(islice((item for item in due if item.fire_id is not None or self._has_target(Id(*item[:2]))), limit))

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        over = [each for each in self._tables.history if each.expires_at <= now_ms][:limit]
        self._tables.history = [each for each in self._tables.history if each not in over]
        return len(over)

    async def count_expired(self, now_ms: int, most: int) -> int:
        return min(sum(each.expires_at <= now_ms for each in self._tables.history), most)

    async def list(
        self, *, state: FireState, id: Id | None, owner: str | None, after: tuple[int, str] | None, limit: int
    ) -> list[Fire]:
        found = [
            fire
            for fire in self._tables.fires.values()
            if fire.state == state and id in (None, _id(fire)) and owner in (None, fire.owner)
        ]
        found.sort(key=_place)
        return [fire for fire in found if after is None or _place(fire) > after][:limit]

    def _put(self, fire: Fire, after: Fire | None) -> None:
        if after is None:
            del self._tables.fires[fire.id]
        else:
            self._tables.fires[fire.id] = after

    def _wake(self, id: Id, now_ms: int) -> None:
        waiting = next_to_wake(fire for fire in self._tables.fires.values() if _id(fire) == id)
        if waiting is not None:
            self._tables.fires[waiting.id] = woken(waiting, now_ms)

    def _delete(self, id: Id) -> None:
        stored = self._schedules.read(id)
        if stored is not None and stored.state == "finished":
            del self._tables.schedules[id]
            self._tables.leave(id)

    def _has_target(self, id: Id) -> bool:
        stored = self._schedules.read(id)
        return stored is not None and (stored.target is not None or stored.newer or stored.state == "unreadable")

    def _size(self, id: Id) -> int:
        entry = self._tables.schedules.get(id)
        return 0 if entry is None else len(entry.body.encode())

    def _due(self, id: Id) -> DueSchedule:
        row, entry = asdict(self._index.row(id)), self._tables.schedules[id]
        times: dict[str, Any] = {"version": entry.version, "created_at": entry.created_at, "updated_at": entry.updated_at}
        return DueSchedule(**row, **times, body=entry.body)


def _id(of: Fire | Entry) -> Id:
    return Id(of.owner, of.key)


def _place(fire: Fire) -> tuple[int, str]:
    return fire.nominal_at, fire.id
