"""Settlements on their way to the store: many at a time, and none forgotten while the store is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from tickler.clock import Clock
from tickler.errors import TicklerError
from tickler.fires import Fire, FireStore, Settlement

MOST_AT_ONCE = 500
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
LINGER_S = 0.01  # so that a batch is worth its transaction

log = logging.getLogger("tickler.deliver")


class Acknowledgements:
    """Takes settlements and writes them in batches, as many as have come while the last batch was being written.

    While the store is away they wait, in order; leases that end meanwhile mean that another worker tries again. `wake` is called
    when one is written that may have made something due.
    """

    def __init__(self, fires: FireStore, clock: Clock, kept_ms: int, wake: Callable[[], None] = lambda: None) -> None:
        self._fires = fires
        self._clock = clock
        self._kept_ms = kept_ms
        self._wake = wake
        self._wakes = False
        self.behind = False  # the store did not take what it was last given
        self._waiting: list[Settlement] = []
        self._some = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()
        self.written = 0
        self.lost = 0  # settled by this worker after its lease had gone to another

    def __len__(self) -> int:
        return len(self._waiting)

    def fires(self) -> list[Fire]:
        """Those whose settlements wait."""
        return [settlement.fire for settlement in self._waiting if settlement.fire is not None]

    def put(self, settlement: Settlement, *, wakes: bool = False) -> None:
        self._wakes = self._wakes or wakes
        self._waiting.append(settlement)
        self._all_written.clear()
        self._some.set()

    async def all_written(self, most_s: float) -> None:
        """Until nothing waits, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(most_s, 0)):
                await self._all_written.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        pause_s = 0.0
        while True:
            await self._some.wait()
            if len(self._waiting) < MOST_AT_ONCE:
                await asyncio.sleep(LINGER_S)
            batch, wakes = self._waiting[:MOST_AT_ONCE], self._wakes
            self._wakes = False
            try:
                await self._settle(batch)
            except TicklerError as error:
                self.behind, self._wakes = True, wakes or self._wakes
                pause_s = min(max(pause_s * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S)
                log.warning("%d outcomes wait to be recorded: %s", len(self._waiting), error)
                await asyncio.sleep(pause_s)
                continue
            self.behind, pause_s = False, 0.0
            self.written += len(batch)
            del self._waiting[: len(batch)]
            if not self._waiting:
                self._some.clear()
                self._all_written.set()
            if wakes:
                self._wake()

    async def _settle(self, batch: Sequence[Settlement]) -> None:
        """Where one of them is at fault, and not the store, the others are written without it."""
        now_ms = self._clock.now_ms()
        try:
            self.lost += len(await self._fires.settle(batch, now_ms, expires_at=now_ms + self._kept_ms))
        except TicklerError:
            raise
        except Exception:
            if len(batch) == 1:
                log.exception("%s: what came of an attempt cannot be recorded; it is dropped", batch[0].id)
                return
            for each in batch:
                await self._settle([each])
