"""The loop of a worker: claims what is due, and sleeps until there is more.

Everything else runs in tasks beside it: attempts, settlements, lease extension, pruning, and the store's notifications.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial

from tickler.clock import Clock
from tickler.deliver.attempt import Attempts
from tickler.deliver.claimer import Claimer
from tickler.deliver.dispatcher import Dispatcher
from tickler.deliver.gone_targets import pause_schedule
from tickler.deliver.history_pruner import HistoryPruner
from tickler.deliver.lease_extender import LeaseExtender
from tickler.deliver.run_options import CLAIM_BATCH, WorkerConfig
from tickler.deliver.settlement_writer import SettlementWriter
from tickler.deliver.summary import Summary
from tickler.errors import StoreUnavailable, TicklerError, WorkerUnfit
from tickler.fires.contract import next_at
from tickler.model.fire import DueItem
from tickler.schedules.schedules import Schedules
from tickler.stores.optional import Watches
from tickler.stores.store import Store

CROWDED_PAUSE_S = 0.2
MIN_POLL_S = 0.05
MIN_EMPTY_ROUND_S = 0.001
MAX_EMPTY_ROUNDS = 8  # that make the pause longer
UNFIT_PAUSE_S = 30.0
FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 5.0

log = logging.getLogger("tickler.deliver")


class ClaimLoop:
    """Either runs until it is stopped, or ticks for as long as a budget lasts."""

    def __init__(self, store: Store, schedules: Schedules, attempts: Attempts, clock: Clock, config: WorkerConfig) -> None:
        self._store = store
        self._clock = clock
        self._options = config.options
        self._ahead_ms = config.ahead_ms
        self._settlement_writer = SettlementWriter(store.fires, clock, config.retention_ms, self.wake)
        self.dispatcher = Dispatcher(
            attempts, self._settlement_writer, clock, config.options, self.wake, partial(pause_schedule, schedules)
        )
        self._leases = LeaseExtender(store.fires, self.dispatcher, self._settlement_writer, clock, config)
        self.claimer = Claimer(store, self.dispatcher, self._leases, attempts.listeners, config)
        self._pruner = HistoryPruner(store, clock)
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._empty_rounds = 0

    def wake(self) -> None:
        """Look again: something may have become due, or there may be room for it."""
        self._woken.set()

    def stop(self) -> None:
        """Claim no more, finish what is in flight, and release the rest."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        """Run until `stop`. A cancellation stops it too."""
        async with self._with_helpers(self._pruner.run(self._stopping), self._listen_to_store()):
            await self._rounds()

    async def tick(self, budget_ms: int) -> Summary:
        """Run rounds until nothing is due or the budget is spent; attempts in flight then have the drain time to end.

        A tick with time left prunes one batch of history: where only ticks run, nothing else prunes.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        ends_at = started + budget_ms / 1000
        self.dispatcher.set_deadline(ends_at)
        async with self._with_helpers():
            left = await self._tick_rounds(ends_at)
            if loop.time() < ends_at:
                await self._pruner.prune_batch()
        counts = self.dispatcher.counts
        return Summary(
            claimed=counts["claimed"],
            delivered=counts["delivered"],
            failed=counts["failed"],
            dead=counts["dead"],
            left=left,
            duration_ms=round((loop.time() - started) * 1000),
            released=counts["released"],
            postponed=counts["postponed"],
        )

    @asynccontextmanager
    async def _with_helpers(self, *helpers: Coroutine[None, None, None]) -> AsyncIterator[None]:
        """Write settlements and extend leases meanwhile; at the end, drain the dispatcher first."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(helper) for helper in (self._settlement_writer.run(), self._leases.run(), *helpers)]
            self._leases.start_keeper()
            try:
                yield
            finally:
                await self.dispatcher.drain(self._options.drain.total_seconds())
                for task in tasks:
                    task.cancel()
                await self._leases.stop_keeper()

    async def _rounds(self) -> None:
        pause_s = 0.0
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                if await self.claimer.claim_next():
                    self._empty_rounds = 0
                else:
                    await self._idle()
                pause_s = 0.0
            except WorkerUnfit as error:
                log.error("%s", error)
                await self._sleep(UNFIT_PAUSE_S)
            except TicklerError as error:
                pause_s = min(max(pause_s * 2, FIRST_PAUSE_S), MAX_PAUSE_S)
                self._leases.takeover_hold.store_failed()
                log.warning("claiming failed, next try in %.1f s: %s", pause_s, error)
                await self._sleep(pause_s)

    async def _idle(self) -> None:
        """Sleep until something is due. Poll for what other processes put meanwhile, less and less often."""
        poll_s = MIN_POLL_S
        while not self._stopping.is_set():
            if not self.claimer.may_claim() or not self.claimer.room():
                await self._sleep(CROWDED_PAUSE_S)
                return
            self._woken.clear()
            due_at = await next_at(self._store.fires)
            due_s = None if due_at is None else (due_at - self._ahead_ms - await self._leases.now_ms()) / 1000
            if due_s is not None and due_s <= 0:
                # Another worker is claiming it, or it cannot be claimed: look again, but not at once.
                self._empty_rounds = min(self._empty_rounds + 1, MAX_EMPTY_ROUNDS)
                await self._sleep(MIN_EMPTY_ROUND_S * 2**self._empty_rounds)
                return
            self._empty_rounds = 0
            self.claimer.forget_size()
            slept_s = poll_s if due_s is None else min(due_s, poll_s)
            if await self._sleep(slept_s):
                poll_s = MIN_POLL_S
            elif due_s is not None and due_s <= slept_s:
                return
            else:
                poll_s = min(poll_s * 2, self._store.capabilities.poll_ms / 1000)

    async def _tick_rounds(self, ends_at: float) -> bool:
        """Return whether something was left. Claims only what can start at once, so that no at-most-once fire is lost."""
        loop, dispatcher, claimer = asyncio.get_running_loop(), self.dispatcher, self.claimer
        still_due: list[DueItem] = []
        while True:
            self._woken.clear()
            if loop.time() >= ends_at:
                return bool(dispatcher.waiting) or await self._is_due()
            written = self._settlement_writer.written
            busy = dispatcher.busy_owners()  # the others come first, so that none of them waits for a busy one
            room = min(dispatcher.room_for_any(busy), max(self._options.per_owner // 2, 1))
            claimed = await claimer.claim(room, busy) if room > 0 else 0
            if not claimed and busy and (room := dispatcher.room_for_any()) > 0:
                claimed = await claimer.claim(room, [])
            if not claimed and dispatcher.room_for_any() <= 0 and dispatcher.room_for_idle():
                claimed = await claimer.claim(1, dispatcher.owners_in_flight())
            if not claimed:
                if not dispatcher.in_flight and not dispatcher.waiting:
                    await self._settlement_writer.flush(ends_at - loop.time())
                    if self._settlement_writer.written > written:
                        continue  # a settlement may have made another fire due
                    before, still_due = still_due, await self._store.fires.peek(self._clock.now_ms(), CLAIM_BATCH)
                    if claimer.may_claim() and still_due != before:
                        continue  # the claim skipped instants by policy, and others may be due behind them
                    return bool(still_due) and not claimer.may_claim()
                await self._sleep(min(CROWDED_PAUSE_S, max(ends_at - loop.time(), 0)))

    async def _is_due(self) -> bool:
        return bool(await self._store.fires.peek(self._clock.now_ms(), 1))

    async def _sleep(self, seconds: float) -> bool:
        """Return whether `wake` ended the sleep."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    async def _listen_to_store(self) -> None:
        """Be woken by a store that can notify; return if this one cannot."""
        store, able = self._store, True
        while able and isinstance(store, Watches):
            try:
                able = await store.watch(self.wake)
            except StoreUnavailable as error:
                log.debug("the store's notifications are interrupted: %s", error)
            await asyncio.sleep(MAX_PAUSE_S if able else 0)
