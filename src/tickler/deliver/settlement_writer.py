"""Settlements on their way to the store: many at a time, and none forgotten while the store is away.

A claim without a fire is given back by opening one. What is opened twice would be delivered twice, if somebody was done with it
in between: so after an answer that was lost, the history is asked first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from tickler.clock import Clock
from tickler.errors import TicklerError
from tickler.fires.contract import FireStore
from tickler.fires.lease import SCHEDULE_GONE
from tickler.model.fire import Fire, Settlement, cancelled

MAX_BATCH = 500
FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 5.0
LINGER_S = 0.01  # so that a batch is worth its transaction
OPENED_TOGETHER = 50
HISTORY_PAGE = 100
CLOCKS_APART_MS = 60_000  # more than workers' clocks are

log = logging.getLogger("tickler.deliver")


class SettlementWriter:
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
        self._unopened: dict[str, Fire] = {}  # by id
        self._doubtful: set[str] = set()  # of them, those that may have been opened: the answer was lost
        self._ended = False  # `run` was cancelled
        self._pause_s = 0.0
        self._some = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()
        self.written = 0
        self.lost = 0  # settled by this worker after its lease had gone to another

    def __len__(self) -> int:
        return len(self._waiting) + len(self._unopened)

    @property
    def unopened(self) -> int:
        """How many fires that were given back are known to nobody but this worker."""
        return len(self._unopened)

    def fires(self) -> list[Fire]:
        """Those whose settlements wait."""
        return [settlement.fire for settlement in self._waiting if settlement.fire is not None]

    def open(self, fire: Fire) -> None:
        """Give back a claim that had no fire: with this one, which nobody has leased."""
        self._unopened[fire.id] = fire
        self._all_written.clear()
        self._some.set()

    def put(self, settlement: Settlement, *, wakes: bool = False) -> None:
        self._wakes = self._wakes or wakes
        self._waiting.append(settlement)
        self._all_written.clear()
        self._some.set()

    async def all_written(self, most_s: float) -> None:
        """Until nothing waits, or for so long. Where `run` was cancelled before its time, by who ends all tasks, this writes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(most_s, 0)):
                while len(self):
                    await (self._write() if self._ended else self._all_written.wait())

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                await self._some.wait()
                if len(self._waiting) < MAX_BATCH:
                    await asyncio.sleep(LINGER_S)
                await self._write()
        finally:
            self._ended = True
            self._all_written.set()

    async def _write(self) -> None:
        """A batch, and all that is to be opened; neither waits for the other. After a failure there is a pause, which grows."""
        failed = await self._open_all() if self._unopened else None
        batch, wakes = self._waiting[:MAX_BATCH], self._wakes
        self._wakes = False
        try:
            if batch:
                await self._settle(batch)
        except TicklerError as error:
            failed = error
            self.behind, self._wakes = True, wakes or self._wakes
        else:
            self.behind = False
            self.written += len(batch)
            del self._waiting[: len(batch)]
            if wakes:
                self._wake()
        if not len(self):
            self._some.clear()
            self._all_written.set()
        if failed is None:
            self._pause_s = 0.0
            return
        self._pause_s = min(max(self._pause_s * 2, FIRST_PAUSE_S), MAX_PAUSE_S)
        log.warning("%d outcomes wait to be recorded: %s", len(self), failed)
        await asyncio.sleep(self._pause_s)

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

    async def _open_all(self) -> TicklerError | None:
        """What the last of them failed with that did, once all were tried."""
        failed: TicklerError | None = None
        fires = list(self._unopened.values())
        for start in range(0, len(fires), OPENED_TOGETHER):
            some = fires[start : start + OPENED_TOGETHER]
            for fire, error in zip(some, await asyncio.gather(*map(self._open, some)), strict=True):
                if error is not None:
                    failed = error
                    self._doubtful.add(fire.id)
                    continue
                del self._unopened[fire.id]
                self._doubtful.discard(fire.id)
                self.written += 1
        return failed

    async def _open(self, fire: Fire) -> TicklerError | None:
        """Why it is to be tried again, if it is."""
        try:
            if fire.id in self._doubtful and await self._has_happened(fire):
                return None
            if not await self._fires.open(fire) and await self._fires.get(fire.id) is None:
                gone = cancelled(fire, self._clock.now_ms(), SCHEDULE_GONE)
                self.put(Settlement(fire.schedule_id, None, "done", gone))
        except TicklerError as error:
            return error
        except Exception:
            log.exception("%s: cannot be given back; it is dropped", fire.schedule_id)
        return None

    async def _has_happened(self, fire: Fire) -> bool:
        """Whether the history knows of it: then it was opened, and taken by somebody."""
        before: tuple[int, str] | None = None
        while page := await self._fires.history(id=fire.schedule_id, before=before, limit=HISTORY_PAGE):
            if any(entry.fire_id == fire.id for _, entry in page):
                return True
            name, last = page[-1]
            if last.at < fire.opened_at - CLOCKS_APART_MS:
                return False
            before = (last.at, name)
        return False
