"""Extends the leases that a worker holds, from its event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from tickler.clock import Clock
from tickler.deliver.clock_jump import ClockJumpDetector
from tickler.deliver.dispatcher import Dispatcher
from tickler.deliver.held_leases import HeldLeases
from tickler.deliver.lease_keeper import KeeperTiming, LeaseKeeper
from tickler.deliver.run_options import WorkerConfig
from tickler.deliver.settlement_writer import SettlementWriter
from tickler.deliver.takeover_hold import TakeoverHold
from tickler.errors import TicklerError
from tickler.fires.contract import FireStore
from tickler.model.fire import Claim, Fire

MAX_BATCH = 500

log = logging.getLogger("tickler.deliver")


class LeaseExtender:
    """Keeps this worker's leases, also after a clock jump, and says when expired leases of others may be taken over.

    While the event loop is blocked, a `LeaseKeeper` extends them from a thread.
    """

    def __init__(
        self, fires: FireStore, dispatcher: Dispatcher, settlement_writer: SettlementWriter, clock: Clock, config: WorkerConfig
    ) -> None:
        self._fires = fires
        self._dispatcher = dispatcher
        self._settlement_writer = settlement_writer
        self._clock = clock
        self._lease = config.options.lease
        self._leases = HeldLeases(config.lease_ms, config.ahead_ms)
        self._keeper = LeaseKeeper(config.reopen, clock, self._held, KeeperTiming(config.lease_ms, config.ahead_ms))
        self._clock_jumps = ClockJumpDetector()
        self._is_failing = False
        self.takeover_hold = TakeoverHold(self._lease.total_seconds())

    def start_keeper(self) -> None:
        self._keeper.start()

    async def stop_keeper(self) -> None:
        await self._keeper.stop()

    async def run(self) -> None:
        """Extend leases until cancelled."""
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 10)
            try:
                await self.now_ms()
                await self._extend()
                self._is_failing = False
            except TicklerError as error:
                log.log(logging.DEBUG if self._is_failing else logging.WARNING, "could not extend leases: %s", error)
                self._is_failing = True

    async def now_ms(self) -> int:
        """Return the time. After a clock jump, when leases of live workers seem to have expired, extend our own first."""
        now_ms = self._clock.now_ms()
        if self._clock_jumps.has_jumped(now_ms):
            self.takeover_hold.clock_jumped()
            text = "the clock jumped by %+d ms: this worker keeps its leases, and takes over none for %s"
            log.warning(text, self._clock_jumps.jump_ms, self._lease)
            await self._extend()
        return now_ms

    def may_take_over(self) -> bool:
        """Return whether expired leases may be taken over.

        Not while settlements wait to be written: this worker's own leases may be among the expired ones.
        """
        return not self._settlement_writer.behind and not self.takeover_hold.is_active

    async def without_lost(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Extend the leases of claims that took long to arrive; return those that no other worker has taken over meanwhile."""
        fires = [claim.fire for claim in claims if claim.fire is not None]
        try:
            extension = await self._fires.extend(fires, self._leases.until(self._clock.now_ms()))
        except TicklerError as error:
            log.warning("could not extend leases: %s", error)
            return claims
        lost = {fire.id for fire in extension.lost}
        self._dispatcher.counts["leases_lost"] += len(lost)
        return [claim for claim in claims if claim.fire is None or claim.fire.id not in lost]

    async def _extend(self) -> None:
        """Extend the leases that are due, and look again: extending many may itself take a third of a lease."""
        while due := self._leases.due(self._held(), self._clock.now_ms()):
            for start in range(0, len(due), MAX_BATCH):
                batch, until_ms = due[start : start + MAX_BATCH], self._leases.until(self._clock.now_ms())
                extension = await self._fires.extend(batch, until_ms)
                self._leases.extended(batch, until_ms, extension)
                self._dispatcher.counts["leases_lost"] += len(extension.lost)
        self._keeper.beat()

    def _held(self) -> list[Fire]:
        return [*self._dispatcher.fires(), *self._settlement_writer.fires()]
