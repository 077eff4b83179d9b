"""Deletes expired history and records, in small batches."""

from __future__ import annotations

import asyncio
import logging

from tickler.clock import Clock
from tickler.errors import TicklerError
from tickler.stores.store import Store

EVERY_S = 60.0
BATCH_PAUSE_S = 0.05

log = logging.getLogger("tickler.deliver")


class HistoryPruner:
    """A failure is logged; the next run tries again."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self, stopping: asyncio.Event) -> None:
        """Prune every minute until cancelled; nothing more once the worker is stopping."""
        while True:
            pruned = 0 if stopping.is_set() else await self.prune_batch()
            await asyncio.sleep(BATCH_PAUSE_S if pruned else EVERY_S)

    async def prune_batch(self) -> int:
        """Delete one batch; return its size."""
        now_ms = self._clock.now_ms()
        try:
            return await self._store.fires.prune(now_ms) + await self._store.records.prune(now_ms)
        except TicklerError as error:
            log.warning("could not prune the history: %s", error)
            return 0
