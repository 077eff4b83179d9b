"""Fires and their history in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec.structs import replace

from tickler.fires.byte_budget import ByteBudget
from tickler.fires.claim import ClaimBatch
from tickler.fires.lease import lease
from tickler.index.row_reports import say_set_aside
from tickler.model.cursor import decode_entry_number
from tickler.model.fire import (
    MANUALLY,
    MAX_CLAIM_BYTES,
    Claim,
    DueItem,
    Entry,
    Extension,
    Fire,
    FireState,
    Health,
    Settlement,
    cancelled,
    retried,
    sent_again,
)
from tickler.model.schedule import Id, StoredSchedule
from tickler.stores.memory.index import MemoryIndex, columns
from tickler.stores.memory.schedules import MemorySchedules
from tickler.stores.memory.tables import Tables

_NOT_DEAD = ("open", "waiting")


class MemoryFires:
    def __init__(self, tables: Tables, schedules: MemorySchedules, index: MemoryIndex) -> None:
        self._tables = tables
        self._schedules = schedules
        self._index = index

    async def claim(
        self,
        now_ms: int,
        limit: int,
        worker: str,
        lease_ms: int,
        *,
        expires_at: int,
        except_owners: Collection[str] = (),
        ahead_ms: int = 0,
        max_bytes: int = MAX_CLAIM_BYTES,
    ) -> list[Claim]:
        tables = self._tables
        due = self._index.due(now_ms, lambda id: id.owner not in except_owners and self._has_target(id), ahead_ms)
        claimed: list[Claim] = []
        left, budget = limit, ByteBudget(max_bytes)
        while left > 0 and due:
            taken = budget.fitting(due[:left], self._size)
            rows = [(id, *id, *columns(tables.index[id])) for id in taken]
            batch = ClaimBatch(rows, [self._body(id) for id in taken], now_ms, left)
            due = due[len(taken) :] if batch.advance.problems else []
            say_set_aside(batch.advance.problems)
            self._index.apply(batch.advance)
            busy = {Id(fire.owner, fire.key) for fire in tables.fires.values() if fire.state in _NOT_DEAD}
            opened = batch.open(busy, worker, lease_ms)
            new = {fire.id: fire for fire in opened.fires if fire.id not in tables.fires}
            tables.fires |= new
            tables.remember(opened.entries, expires_at)
            claimed += opened.claimed(new)
            left -= batch.size
            budget = budget if claimed else ByteBudget(max_bytes)
        return claimed

    async def lease(
        self,
        now_ms: int,
        limit: int,
        worker: str,
        lease_ms: int,
        *,
        expires_at: int,
        expired: bool = True,
        except_owners: Collection[str] = (),
        max_bytes: int = MAX_CLAIM_BYTES,
        head_start_ms: int = 0,
    ) -> list[Claim]:
        tables = self._tables
        due = [
            fire
            for fire in tables.fires.values()
            if fire.deliver_after is not None
            and fire.deliver_after <= now_ms - (head_start_ms if fire.is_given_back else 0)
            and (expired or fire.worker is None)
            and fire.owner not in except_owners
        ]
        due.sort(key=lambda fire: fire.deliver_after or 0)
        budget = ByteBudget(max_bytes)
        fitting = budget.fitting_by_name(due[:limit], lambda fire: self._size(_id(fire)), _id)
        found = [(fire, self._schedule(fire)) for fire in fitting]
        result = lease(found, now_ms, worker, lease_ms)
        for fire in [*result.dead, *(claim.fire for claim in result.claims if claim.fire is not None)]:
            tables.fires[fire.id] = fire
        for fire in result.cancelled:
            del tables.fires[fire.id]
        tables.remember(result.entries, expires_at)
        for fire in result.dead:
            self._wake(Id(fire.owner, fire.key), now_ms)
        return result.claims

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        for fire in fires:
            if self._still(fire):
                self._tables.fires[fire.id] = replace(self._tables.fires[fire.id], deliver_after=until_ms)
        return Extension([fire for fire in fires if not self._still(fire)])

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        tables = self._tables
        tables.remember([each.entry for each in settlements if each.entry is not None], expires_at)
        lost = [each.fire for each in settlements if each.fire is not None and not self._still(each.fire)]
        for each in settlements:
            if each.fire is not None and self._still(each.fire):
                self._settle(each, each.fire, now_ms)
        for each in settlements:
            if each.fire is not None and each.then in ("done", "dead"):
                self._wake(each.id, now_ms)
            if each.delete_schedule:
                self._delete(each.id)
        return lost

    async def open(self, fire: Fire) -> bool:
        if fire.id in self._tables.fires or Id(fire.owner, fire.key) not in self._tables.schedules:
            return False
        self._tables.fires[fire.id] = fire
        return True

    async def change(
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = MANUALLY
    ) -> Fire | None:
        fire = self._tables.fires.get(fire_id)
        if fire is None or fire.worker is not None or (to == "open" and fire.state != "dead"):
            return None
        if to == "open":
            self._tables.fires[fire_id] = sent_again(fire, now_ms)
            self._tables.remember([retried(fire, now_ms, why)], expires_at)
        else:
            del self._tables.fires[fire_id]
            self._tables.remember([cancelled(fire, now_ms, why)], expires_at)
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

    async def next_at(self) -> int | None:
        rows = [entry.next_fire_at for id, entry in self._tables.index.items() if self._has_target(id)]
        fires = [fire.deliver_after for fire in self._tables.fires.values() if fire.deliver_after is not None]
        return min([*rows, *fires], default=None)

    async def peek(self, due_by: int, limit: int) -> list[DueItem]:
        rows = [
            DueItem(*id, entry.next_fire_at, None)
            for id, entry in self._tables.index.items()
            if entry.next_fire_at <= due_by and self._has_target(id)
        ]
        fires = [
            DueItem(fire.owner, fire.key, fire.deliver_after, fire.id)
            for fire in self._tables.fires.values()
            if fire.deliver_after is not None and fire.deliver_after <= due_by
        ]
        return sorted([*rows, *fires], key=lambda due: due.at)[:limit]

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

    def _settle(self, settlement: Settlement, fire: Fire, now_ms: int) -> None:
        fires, reason = self._tables.fires, None if settlement.entry is None else settlement.entry.detail
        if settlement.then == "done":
            del fires[fire.id]
        elif settlement.then == "retry":
            fires[fire.id] = replace(fire, deliver_after=settlement.deliver_after, worker=None, lease_token=None, reason=reason)
        elif settlement.then == "dead":
            fires[fire.id] = replace(fire, state="dead", deliver_after=None, worker=None, lease_token=None, reason=reason)
        else:
            deliver_after = now_ms if settlement.deliver_after is None else settlement.deliver_after
            reason = settlement.reason or fire.reason
            given_back = replace(fire, deliver_after=deliver_after, worker=None, lease_token=None, reason=reason)
            fires[fire.id] = replace(given_back, attempt=fire.attempt - 1)

    def _wake(self, id: Id, now_ms: int) -> None:
        """Open the first that waits, unless one is open."""
        of_schedule = [fire for fire in self._tables.fires.values() if _id(fire) == id]
        waiting = sorted((fire for fire in of_schedule if fire.state == "waiting"), key=_place)
        if waiting and all(fire.state != "open" for fire in of_schedule):
            self._tables.fires[waiting[0].id] = replace(
                waiting[0], state="open", deliver_after=max(now_ms, waiting[0].nominal_at)
            )

    def _delete(self, id: Id) -> None:
        stored = self._schedules.read(id)
        if stored is not None and stored.state == "finished" and all(_id(fire) != id for fire in self._tables.fires.values()):
            del self._tables.schedules[id]
            self._tables.leave(id)

    def _still(self, fire: Fire) -> bool:
        """Whether the lease is still the one that was given."""
        stored = self._tables.fires.get(fire.id)
        return stored is not None and (stored.holder, stored.attempt) == (fire.holder, fire.attempt)

    def _has_target(self, id: Id) -> bool:
        stored = self._schedules.read(id)
        return stored is not None and (stored.target is not None or stored.newer or stored.state == "unreadable")

    def _schedule(self, fire: Fire) -> StoredSchedule | None:
        return self._schedules.read(_id(fire))

    def _size(self, id: Id) -> int:
        entry = self._tables.schedules.get(id)
        return 0 if entry is None else len(entry.body.encode())

    def _body(self, id: Id) -> tuple[int, int, int, str]:
        entry = self._tables.schedules[id]
        return entry.version, entry.created_at, entry.updated_at, entry.body


def _id(of: Fire | Entry) -> Id:
    return Id(of.owner, of.key)


def _place(fire: Fire) -> tuple[int, str]:
    return fire.nominal_at, fire.id
