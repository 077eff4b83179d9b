"""Delivers a parked change again, in one process at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec.structs import replace

from tickler.errors import StoreUnavailable
from tickler.table.engines.metadata import Entry
from tickler.table.streams.context import StreamContext
from tickler.table.streams.delivery import Delivery, Interrupted, Stopped, error_text
from tickler.table.streams.parking import ParkedChange, Parking

RENEWALS_PER_LEASE = 3


async def retry_one(context: StreamContext, delivery: Delivery, parking: Parking, key: str) -> None:
    """Deliver one parked change, unless another process does. It is removed if that succeeds.

    Raises `Stopped` if the consumer stops, or if the change was discarded meanwhile.
    """
    now_ms, claimed_at = context.clock.now_ms(), asyncio.get_running_loop().time()
    claimed = await parking.claim(key, now_ms, now_ms + context.options.lease_ms)
    if claimed is not None:
        await _Retry(context, delivery, parking, claimed, claimed_at).run()


class _Retry:
    """`claimed_at` is by the clock of the event loop, from before the change was claimed."""

    def __init__(
        self,
        context: StreamContext,
        delivery: Delivery,
        parking: Parking,
        claimed: tuple[Entry, ParkedChange],
        claimed_at: float,
    ) -> None:
        self._context = context
        self._delivery = delivery
        self._parking = parking
        self._entry, self._parked = claimed
        self._is_mine = True
        self._valid_until = claimed_at + context.options.lease.total_seconds()

    async def run(self) -> None:
        renewing = asyncio.create_task(self._renew())
        try:
            error = await self._delivery.retry(self._parked, self._may_start)
        except Interrupted as stop:
            await _ended(renewing)
            if self._is_mine:
                await self._release(error_text(stop.error), stop.attempts, again=True)
            raise
        except Stopped:
            await _ended(renewing)
            if self._is_mine:
                await self._parking.extend(self._entry, self._parked, 0)
            raise
        finally:
            await _ended(renewing)
        if error is None:
            await self._parking.remove(self._entry)
            return
        most, before = self._context.options.attempts, self._parked.attempts
        await self._release(error, most - before if before < most else most)

    async def _release(self, error: str, attempts: int, *, again: bool = False) -> None:
        failed = replace(self._parked, error=error, attempts=self._parked.attempts + attempts)
        await self._parking.release(self._entry, failed, again=again)

    def _may_start(self) -> bool:
        return self._is_mine and asyncio.get_running_loop().time() < self._valid_until

    async def _renew(self) -> None:
        """Claim the change longer, as long as handlers run."""
        options = self._context.options
        while self._is_mine:
            await asyncio.sleep(options.lease.total_seconds() / RENEWALS_PER_LEASE)
            started_at = asyncio.get_running_loop().time()
            with suppress(StoreUnavailable):  # there are some tries before the claim ends
                extended = await self._parking.extend(self._entry, self._parked, self._context.clock.now_ms() + options.lease_ms)
                self._is_mine = extended is not None
                self._entry = extended or self._entry
                self._valid_until = started_at + options.lease.total_seconds()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
