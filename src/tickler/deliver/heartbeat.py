"""A sign of life every 20 seconds, whatever the rounds do, and a look at the store's clock with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tickler.clock import MAX_OFFSET_MS, Clock, SystemClock
from tickler.deliver.claim_loop import ClaimLoop
from tickler.errors import TicklerError
from tickler.records.contract import RecordStore
from tickler.records.worker_status import EVERY_S, STOPPED, WORKING, WorkerReport, report, report_tick

log = logging.getLogger("tickler.deliver")


class Heartbeat:
    """Keeps the record of one worker. `follow` measures the clock against the store's."""

    def __init__(
        self, records: RecordStore, clock: Clock, runner: ClaimLoop, worker: str, follow: Callable[[], Awaitable[None]]
    ) -> None:
        self._records = records
        self._clock = clock
        self._runner = runner
        self._worker = worker
        self._follow = follow
        self._started_at = clock.now_ms()

    async def run(self) -> None:
        """Until cancelled; then the record says that the worker has stopped."""
        try:
            while True:
                try:
                    await self.beat()
                except TicklerError as error:
                    log.warning("no heartbeat: %s", error)
                await asyncio.sleep(EVERY_S)
        finally:
            await asyncio.shield(self.stopped())

    async def beat(self) -> None:
        await self._follow()
        self.check_clock()
        await report(self._records, self._said(WORKING if self._runner.may_claim else "not claiming: its clock is off"))

    def check_clock(self) -> None:
        """A clock that is far off was not set by anybody's wish: until it is right, this worker claims nothing."""
        if not isinstance(self._clock, SystemClock):
            return
        fit = abs(self._clock.offset_ms) <= MAX_OFFSET_MS
        if not fit:
            log.error(
                "this machine's clock is %+d ms off the store's: nothing is claimed here until it is set right",
                -self._clock.offset_ms,
            )
        elif not self._runner.may_claim:
            log.warning("this machine's clock is right again: claiming goes on")
        self._runner.may_claim = fit
        self._runner.wake()

    def _said(self, doing: str) -> WorkerReport:
        runner = self._runner
        return WorkerReport(
            name=self._worker,
            doing=doing,
            started_at=self._started_at,
            seen_at=self._clock.now_ms(),
            last_round_at=runner.last_round_at,
            last_claim_at=runner.last_claim_at,
            in_flight=runner.in_flight,
            queued=runner.queued,
            counts=dict(runner.counts),
            clock_offset_ms=self._clock.offset_ms if isinstance(self._clock, SystemClock) else 0,
            delivers_to=runner.attempts.delivers_to(),
            lacks=runner.lacks(self._clock.now_ms()),
            short_of=runner.shortage,
            abandoned=len(runner.attempts.abandoned),
        )

    async def stopped(self, *, tick: bool = False) -> None:
        """Of a tick, no record of its own is left."""
        write = report_tick if tick else report
        try:
            await write(self._records, self._said(STOPPED))
        except TicklerError as error:
            log.debug("not said that it stopped: %s", error)
