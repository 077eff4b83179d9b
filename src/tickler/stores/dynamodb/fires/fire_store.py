"""Fires and their history in DynamoDB. `layout.py` documents the items."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from msgspec.structs import replace

from tickler.database.unit_of_work import UnitOfWork
from tickler.dynamo.batches import get_many
from tickler.dynamo.client import pause
from tickler.errors import TicklerError
from tickler.fires.contract import ClaimRequest, LeaseRequest, TakeRequest
from tickler.fires.settle import ManualChange, change
from tickler.model.fire import MANUALLY, Claim, DueItem, Entry, Extension, Fire, FireState, Health, Settlement
from tickler.model.schedule import Id
from tickler.stores.dynamodb.fires.claim import FireClaimer
from tickler.stores.dynamodb.fires.history import inserts, read_history
from tickler.stores.dynamodb.fires.layout import fire_key, unchanged
from tickler.stores.dynamodb.fires.lease import Leaser
from tickler.stores.dynamodb.fires.lists import find_fire, health, list_fires, peek
from tickler.stores.dynamodb.fires.settle import Settler
from tickler.stores.dynamodb.fires.transaction import FireTransaction, read_owing
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.table import TRIES, Table, refuse_using
from tickler.stores.dynamodb.transactions import Delete, write_transaction


class DynamodbFires:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self.claimer = FireClaimer(table, records)
        self.leaser = Leaser(table)
        self._settler = Settler(table)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        work = asyncio.ensure_future(self.claimer.claim(request))
        try:
            taken = await asyncio.shield(work)
        except asyncio.CancelledError:
            with suppress(TicklerError):  # the caller was cancelled
                taken = await work
                await self.claimer.revert(taken)
                await self._release([claim for each in taken for claim in each.claims], request)
            raise
        return sorted((claim for each in taken for claim in each.claims), key=_order)

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        work = asyncio.ensure_future(self.leaser.lease(request))
        try:
            return sorted(await asyncio.shield(work), key=_order)
        except asyncio.CancelledError:
            with suppress(TicklerError):
                await self._release(await work, request)
            raise

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        return await self._settler.extend(fires, until_ms)

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        return await self._settler.settle(settlements, now_ms, expires_at)

    async def open(self, fire: Fire, entry: Entry | None = None, *, expires_at: int = 0, using: object = None) -> bool:
        if isinstance(using, UnitOfWork):
            opening = await self._opening(fire, entry, expires_at)
            if opening is not None:
                await using.join(self._table.client, [fire.schedule_id])
                using.add(*opening.parts())
            return opening is not None
        refuse_using(using)
        for attempt in range(1, TRIES + 1):
            opening = await self._opening(fire, entry, expires_at)
            if opening is None:
                return False
            if not await opening.write():
                return True
            await pause(attempt)
        raise self._table.contended(fire.schedule_id)

    async def _opening(self, fire: Fire, entry: Entry | None, expires_at: int) -> FireTransaction | None:
        """Return the transaction that opens a fire. None if the fire exists already or its schedule does not."""
        owing = await read_owing(self._table, fire.schedule_id)
        if owing is None or (owing.on_head is not None and owing.on_head.id == fire.id):
            return None
        if "spilled" in owing.head or "dead" in owing.head:
            keys = [fire_key(replace(fire, state=state)) for state in ("open", "waiting", "dead")]
            if await get_many(self._table.client, self._table.name, keys):
                return None
        owing.add(fire)
        owing.remember([] if entry is None else [entry], expires_at)
        return owing

    async def change(
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = MANUALLY
    ) -> Fire | None:
        for attempt in range(1, TRIES + 1):
            fire = await self.get(fire_id)
            decided = change(fire, to, now_ms, why)
            if fire is None or decided is None:
                return None
            if await self._changed(fire, decided, now_ms, expires_at):
                return fire
            await pause(attempt)
        raise self._table.contended(fire_id)

    async def get(self, fire_id: str) -> Fire | None:
        return await find_fire(self._table, fire_id)

    async def history(self, *, id: Id, before: tuple[int, str] | None, limit: int) -> list[tuple[str, Entry]]:
        return await read_history(self._table, id, before, limit)

    async def health(self, ids: Sequence[Id]) -> dict[Id, Health]:
        return await health(self._table, ids)

    async def peek(self, due_by: int, limit: int) -> list[DueItem]:
        return await peek(self._table, due_by, limit)

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Do nothing: DynamoDB prunes by the time to live, within days."""
        return 0

    async def list(
        self, *, state: FireState, id: Id | None, owner: str | None, after: tuple[int, str] | None, limit: int
    ) -> list[Fire]:
        return await list_fires(self._table, state, id, owner, after, limit)

    async def _changed(self, fire: Fire, decided: ManualChange, now_ms: int, expires_at: int) -> bool:
        """Write a manual change. Return False if the fire was changed meanwhile."""
        owing = await read_owing(self._table, Id(fire.owner, fire.key))
        entries = [decided.entry]
        if owing is None:  # the schedule was deleted, and only its fire is left
            return not await write_transaction(
                self._table, [Delete(fire_key(fire), unchanged(fire)), *inserts(entries, expires_at)]
            )
        owing.close(fire, unchanged(fire))
        owing.remember(entries, expires_at)
        if decided.after is None:
            owing.wake(now_ms)
        else:
            owing.add(decided.after)
        return not await owing.write()

    async def _release(self, claims: Sequence[Claim], request: TakeRequest) -> None:
        """Release fires of a cancelled call. Those claimed ahead of time become due at their time."""
        released = [
            Settlement(Id(claim.fire.owner, claim.fire.key), claim.fire, "release", None, max(request.now_ms, claim.due_at))
            for claim in claims
            if claim.fire is not None
        ]
        await self.settle(released, request.now_ms, expires_at=request.expires_at)


def _order(claim: Claim) -> tuple[int, int]:
    return claim.due_at, claim.nominal_at
