"""Reports a worker's status every 20 seconds, and measures its clock against the store's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tickler.clock import MAX_OFFSET_MS, Clock, SystemClock
from tickler.deliver.attempt import Attempts
from tickler.deliver.claim_loop import ClaimLoop
from tickler.errors import TicklerError
from tickler.records.contract import RecordStore
from tickler.records.worker_status import EVERY_S, STOPPED, WORKING, WorkerReport, report, report_tick

log = logging.getLogger("tickler.deliver")


class Heartbeat:
    """Keeps the record of one worker, independently of its rounds. `follow` measures the clock against the store's."""

    def __init__(
        self,
        records: RecordStore,
        clock: Clock,
        claim_loop: ClaimLoop,
        attempts: Attempts,
        follow: Callable[[], Awaitable[None]],
    ) -> None:
        self._records = records
        self._clock = clock
        self._claim_loop = claim_loop
        self._attempts = attempts
        self._follow = follow
        self._started_at = clock.now_ms()

    async def run(self) -> None:
        """Report until cancelled; then report that the worker has stopped."""
        try:
            while True:
                try:
                    await self.beat()
                except TicklerError as error:
                    log.warning("no heartbeat: %s", error)
                await asyncio.sleep(EVERY_S)
        finally:
            await asyncio.shield(self.report_stopped())

    async def beat(self) -> None:
        await self._follow()
        self.check_clock()
        is_paused = self._claim_loop.claimer.is_paused
        await report(self._records, self._report("not claiming: its clock is off" if is_paused else WORKING))

    def check_clock(self) -> None:
        """Pause claiming while this machine's clock is far off, and resume it when the clock is right again."""
        if not isinstance(self._clock, SystemClock):
            return
        claimer = self._claim_loop.claimer
        if abs(self._clock.offset_ms) > MAX_OFFSET_MS:
            text = "this machine's clock is %+d ms off the store's: the worker claims nothing until the clock is corrected"
            log.error(text, -self._clock.offset_ms)
            claimer.pause()
        elif claimer.is_paused:
            log.warning("this machine's clock is right again: the worker resumes claiming")
            claimer.resume()
        self._claim_loop.wake()

    def _report(self, doing: str) -> WorkerReport:
        dispatcher, claimer, now_ms = self._claim_loop.dispatcher, self._claim_loop.claimer, self._clock.now_ms()
        return WorkerReport(
            name=self._attempts.worker,
            doing=doing,
            started_at=self._started_at,
            seen_at=now_ms,
            last_round_at=claimer.last_round_at,
            last_claim_at=claimer.last_claim_at,
            in_flight=dispatcher.in_flight,
            queued=dispatcher.waiting,
            counts=dict(dispatcher.counts),
            clock_offset_ms=self._clock.offset_ms if isinstance(self._clock, SystemClock) else 0,
            delivers_to=self._attempts.targets.labels(),
            lacks=dispatcher.missing_targets.recent(now_ms),
            short_of=dispatcher.shortage.of,
            abandoned=len(self._attempts.abandoned),
        )

    async def report_stopped(self, *, tick: bool = False) -> None:
        """Report that the worker has stopped. A tick leaves no record of its own."""
        write = report_tick if tick else report
        try:
            await write(self._records, self._report(STOPPED))
        except TicklerError as error:
            log.debug("could not report that the worker stopped: %s", error)
