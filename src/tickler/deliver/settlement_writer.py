"""Writes settlements to the store in batches, and keeps them while the store is away.

An at-most-once claim has no fire, and is released or postponed by opening one. If the answer was lost, opening it again
could deliver it twice, because another worker may have finished the first one. So the history is searched first. The entry of a
postponement is recorded together with the opening, so it too shows that the fire was opened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tickler.clock import Clock
from tickler.errors import TicklerError
from tickler.fires.contract import FireStore
from tickler.fires.lease import SCHEDULE_GONE
from tickler.model.fire import Entry, Fire, Settlement, cancelled

MAX_BATCH = 500
FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 5.0
LINGER_S = 0.01  # lets a batch grow
MAX_CONCURRENT_OPENS = 50
HISTORY_PAGE = 100
MAX_CLOCK_SKEW_MS = 60_000  # between workers

log = logging.getLogger("tickler.deliver")


class Opening(NamedTuple):
    """A fire to open, and the entry to record with it."""

    fire: Fire
    entry: Entry | None


class SettlementWriter:
    """Each batch has the settlements that arrived while the last one was being written.

    While the store is away they wait, in order; if their leases end meanwhile, another worker tries those fires again. `wake` is
    called after a write that may have made something due.
    """

    def __init__(self, fires: FireStore, clock: Clock, retention_ms: int, wake: Callable[[], None] = lambda: None) -> None:
        self._fires = fires
        self._clock = clock
        self._retention_ms = retention_ms
        self._wake = wake
        self._wakes = False
        self.behind = False  # the last write failed
        self._waiting: list[Settlement] = []
        self._unopened: dict[str, Opening] = {}  # by the fire's id
        self._maybe_opened: set[str] = set()  # ids of those that were asked for, as long as there is no answer
        self._has_ended = False  # `run` was cancelled
        self._pause_s = 0.0
        self._has_work = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()
        self.written = 0
        self.lost = 0  # settled too late: another worker had taken over the lease

    def __len__(self) -> int:
        return len(self._waiting) + len(self._unopened)

    @property
    def unopened(self) -> int:
        """The number of released and postponed fires that the store does not have yet."""
        return len(self._unopened)

    def fires(self) -> list[Fire]:
        """Return the fires whose settlements wait."""
        return [settlement.fire for settlement in self._waiting if settlement.fire is not None]

    def open(self, fire: Fire, entry: Entry | None = None) -> None:
        """Release an at-most-once claim by opening this fire, unleased; with the entry of its postponement, postpone it."""
        self._unopened[fire.id] = Opening(fire, entry)
        self._all_written.clear()
        self._has_work.set()

    def put(self, settlement: Settlement, *, wakes: bool = False) -> None:
        self._wakes = self._wakes or wakes
        self._waiting.append(settlement)
        self._all_written.clear()
        self._has_work.set()

    async def flush(self, timeout_s: float) -> None:
        """Wait until everything is written, at most `timeout_s`. If `run` was cancelled early, write it here."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(timeout_s, 0)):
                while len(self):
                    await (self._write() if self._has_ended else self._all_written.wait())

    async def write_all(self) -> None:
        """Write what waits. For callers that do not `run` it."""
        while len(self):
            await self._write()

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                await self._has_work.wait()
                if len(self._waiting) < MAX_BATCH:
                    await asyncio.sleep(LINGER_S)
                await self._write()
        finally:
            self._has_ended = True
            self._all_written.set()

    async def _write(self) -> None:
        """Write one batch and open all fires that are to be opened; neither failure stops the other. Pause after a failure."""
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
            self._has_work.clear()
            self._all_written.set()
        if failed is None:
            self._pause_s = 0.0
            return
        self._pause_s = min(max(self._pause_s * 2, FIRST_PAUSE_S), MAX_PAUSE_S)
        log.warning("%d settlements wait to be written: %s", len(self), failed)
        await asyncio.sleep(self._pause_s)

    async def _settle(self, batch: Sequence[Settlement]) -> None:
        """Write a batch. If one settlement is at fault, and not the store, write the others without it."""
        now_ms = self._clock.now_ms()
        try:
            self.lost += len(await self._fires.settle(batch, now_ms, expires_at=now_ms + self._retention_ms))
        except TicklerError:
            raise
        except Exception:
            if len(batch) == 1:
                log.exception("%s: cannot settle an attempt; its outcome is dropped", batch[0].id)
                return
            for each in batch:
                await self._settle([each])

    async def _open_all(self) -> TicklerError | None:
        """Try to open every fire; return the last error."""
        failed: TicklerError | None = None
        openings = list(self._unopened.values())
        for start in range(0, len(openings), MAX_CONCURRENT_OPENS):
            batch = openings[start : start + MAX_CONCURRENT_OPENS]
            for (fire, entry), error in zip(batch, await asyncio.gather(*map(self._open, batch)), strict=True):
                if error is not None:
                    failed = error
                    continue
                del self._unopened[fire.id]
                self._maybe_opened.discard(fire.id)
                self.written += 1
                if entry is not None:
                    self._wake()
        return failed

    async def _open(self, opening: Opening) -> TicklerError | None:
        """Open a fire; return the error if that has to be tried again."""
        fire, entry = opening
        now_ms = self._clock.now_ms()
        try:
            if fire.id in self._maybe_opened and await self._is_in_history(opening):
                return None
            self._maybe_opened.add(fire.id)  # also if this is cancelled
            if await self._fires.open(fire, entry, expires_at=now_ms + self._retention_ms):
                return None
            is_gone = await self._fires.get(fire.id) is None
            if entry is not None:  # the attempt was made all the same
                self.put(Settlement(fire.schedule_id, None, "done", entry))
            if is_gone:
                self.put(Settlement(fire.schedule_id, None, "done", cancelled(fire, now_ms, SCHEDULE_GONE)))
        except TicklerError as error:
            return error
        except Exception:
            log.exception("%s: cannot open a fire; it is dropped", fire.schedule_id)
        return None

    async def _is_in_history(self, opening: Opening) -> bool:
        """Return whether the history has the fire: then it was opened."""
        fire, entry = opening
        since = (fire.opened_at if entry is None else entry.at) - MAX_CLOCK_SKEW_MS
        before: tuple[int, str] | None = None
        while page := await self._fires.history(id=fire.schedule_id, before=before, limit=HISTORY_PAGE):
            if any(entry.fire_id == fire.id for _, entry in page):
                return True
            name, last = page[-1]
            if last.at < since:
                return False
            before = (last.at, name)
        return False
