"""Queues claimed fires, starts their attempts as the limits allow, and passes the outcomes on to be settled."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any

from tickler.clock import Clock
from tickler.deliver.abandoned import STUCK
from tickler.deliver.attempt import Attempts, host_of
from tickler.deliver.early_claims import EarlyClaims
from tickler.deliver.failure_log import FailureLog
from tickler.deliver.fair_queue import FairQueue, Lane
from tickler.deliver.missing_targets import MissingTargets
from tickler.deliver.payload_memory import MAX_HELD_BYTES, PayloadMemory, Queued
from tickler.deliver.run_options import RunOptions
from tickler.deliver.settlement_writer import SettlementWriter
from tickler.deliver.shortage import Shortage
from tickler.model.delivery import Delivery, Outcome
from tickler.model.fire import Claim, Fire, Settlement, is_at_most_once, uncounted_fire
from tickler.model.target import label_of

MIN_FLUSH_S = 5.0
CANCEL_TIMEOUT_S = 2.0
STOPPED = "the worker was stopped"

log = logging.getLogger("tickler.deliver")

OnTargetGone = Callable[[Claim, str], Awaitable[None]]


class Dispatcher:
    """Holds every fire of a worker from its claim to its settlement.

    `on_capacity` is called when there may be room for more; `on_target_gone` with a claim whose target is gone, and the reason.
    """

    def __init__(
        self,
        attempts: Attempts,
        settlement_writer: SettlementWriter,
        clock: Clock,
        options: RunOptions,
        on_capacity: Callable[[], None],
        on_target_gone: OnTargetGone,
    ) -> None:
        self._attempts = attempts
        self._settlement_writer = settlement_writer
        self._clock = clock
        self._options = options
        self._longest_s = options.longest.total_seconds()
        self._low_water = options.low_water
        self._on_capacity = on_capacity
        self._on_target_gone = on_target_gone
        self._queue: FairQueue[Claim] = FairQueue(options.slots, options.per_owner, options.slots_per_host)
        self._early = EarlyClaims(self._enqueue_and_start)
        self._in_flight: dict[asyncio.Task[None], Claim] = {}
        self._was_cut_off = False  # everything that was in flight is settled
        self._memory = PayloadMemory()  # a claim that waits there has no slot
        self._held = self._memory.held
        self._failure_log = FailureLog()
        self._ends_at: float | None = None
        self.counts = attempts.counts
        self.shortage = Shortage()
        self.missing_targets = MissingTargets()

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def waiting(self) -> int:
        """The number of fires that are not started yet."""
        return len(self._queue) + len(self._early) + self._memory.number_waiting

    @property
    def waiting_of(self) -> dict[str, int]:
        """The number of fires that are not started yet, by owner."""
        if not self._early and not self._memory.number_waiting:
            return self._queue.queued
        return Counter(claim.schedule.owner for claim in self._unstarted())

    @property
    def held_bytes(self) -> int:
        """The size of all large payloads, as JSON."""
        return self._held.bytes

    @property
    def held_bytes_of(self) -> dict[str, int]:
        """The size of large payloads by owner."""
        return self._held.bytes_of

    def owners(self) -> set[str]:
        """Return the owners that have a fire or a payload here."""
        return {*self._queue.started_of, *self.waiting_of, *self._held.bytes_of}

    @property
    def free(self) -> int:
        """The number of free slots."""
        return self._options.in_flight - self._queue.started

    def waiting_at_most_once(self) -> Counter[str]:
        """Count the at-most-once fires that wait for a slot, by owner."""
        waiting = itertools.chain(self._queue, self._memory.waiting())
        return Counter(claim.schedule.owner for claim in waiting if is_at_most_once(claim))

    def fires(self) -> list[Fire]:
        """Return all fires that are leased to this worker and not settled."""
        claims = itertools.chain(self._in_flight.values(), self._unstarted())
        return [claim.fire for claim in claims if claim.fire is not None]

    def busy_owners(self) -> list[str]:
        """Return the owners that use at least half of their slots."""
        return [owner for owner, number in self._queue.started_of.items() if 2 * number >= self._options.per_owner]

    def owners_in_flight(self) -> list[str]:
        return list(self._queue.started_of)

    def room_for_any(self, except_owners: Collection[str] = ()) -> int:
        """Return how many fires could start at once, whatever their owner (but for these) and host."""
        if self.held_bytes >= MAX_HELD_BYTES:
            return 0
        options, queue = self._options, self._queue
        most_of = max((number for owner, number in queue.started_of.items() if owner not in except_owners), default=0)
        most_to = max(queue.started_to.values(), default=0)
        rooms = (options.slots.shared - queue.started, options.per_owner - most_of, options.slots_per_host.shared - most_to)
        return min(rooms) - self.waiting

    def room_for_idle(self) -> bool:
        """Return whether a fire of an owner with nothing in flight could start at once, whatever its host."""
        queue, options = self._queue, self._options
        if any(owner not in queue.started_of for owner in queue.queued):
            return False
        most_to = max(queue.started_to.values(), default=0)
        taken = queue.started + len(self._early) + self._memory.number_waiting
        return taken < options.in_flight and most_to < options.per_host

    def take(self, claims: Sequence[Claim]) -> int:
        """Queue the claims, release those that this worker cannot deliver, and return how many there were."""
        targets = self._attempts.targets
        for claim in claims:
            missing = targets.missing(claim)
            if missing is None:
                self._accept(claim)
            else:
                self._settle(claim, self._attempts.released(claim, missing), missing)
        self.counts["claimed"] += len(claims)
        self._start()
        return len(claims)

    def set_deadline(self, ends_at: float) -> None:
        """End every attempt by then, on the loop's clock, plus the drain time."""
        self._ends_at = ends_at

    async def finish(self) -> None:
        """Wait until every attempt in flight has ended, and those that it made room for."""
        while self._in_flight:
            await asyncio.wait(self._in_flight)

    async def drain(self, seconds: float) -> None:
        """Release the fires that were not started, and wait for those that were."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        for claim in self._drain_unstarted():
            self._release_unstarted(claim)
        while self._in_flight and loop.time() < until:
            await asyncio.wait(self._in_flight, timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)  # a task that is cancelled before it began would not settle its claim
        await self._cut_off()
        await self._settlement_writer.flush(max(until - loop.time(), MIN_FLUSH_S))
        if self._settlement_writer.unopened:
            log.error("lost %d at-most-once fires: the store did not take them back", self._settlement_writer.unopened)
        self._failure_log.log_suppressed()

    async def _cut_off(self) -> None:
        """Cancel the attempts, twice: a task that is cancelled again no longer waits for its handler."""
        for is_second in (False, True):
            for task, claim in list(self._in_flight.items()):
                if is_second:
                    log.error("%s: the attempt was cancelled and does not end; it is abandoned", claim.schedule.id)
                task.cancel()
            if self._in_flight:
                await asyncio.wait(list(self._in_flight), timeout=CANCEL_TIMEOUT_S)
        for claim in self._in_flight.values():
            self._settlement_writer.put(self._attempts.cut_off(claim, STOPPED))
        self._was_cut_off = True

    # Before an attempt.

    def _accept(self, claim: Claim) -> None:
        self._memory.add(claim)
        early_ms = claim.due_at - self._clock.now_ms() if self._options.ahead else 0
        if early_ms > 0:
            self._early.hold(claim, early_ms / 1000)
        else:
            self._enqueue(claim)

    def _enqueue(self, claim: Claim) -> None:
        schedule = claim.schedule
        self._queue.put(Lane(schedule.owner, host_of(schedule.target)), claim)

    def _enqueue_and_start(self, claim: Claim) -> None:
        self._enqueue(claim)
        self._start()

    def _unstarted(self) -> Iterator[Claim]:
        return itertools.chain(self._queue, self._early, self._memory.waiting())

    def _drain_unstarted(self) -> list[Claim]:
        claims = list(self._unstarted())
        self._queue.drain()
        self._early.clear()
        self._memory.clear()
        return claims

    def _release_unstarted(self, claim: Claim) -> None:
        """Release a fire for other workers, not before its instant."""
        deliver_after = max(claim.due_at, self._clock.now_ms())
        self._release(claim, Settlement(claim.schedule.id, claim.fire, "release", None, deliver_after))

    def _release(self, claim: Claim, settlement: Settlement) -> None:
        """Release the lease of a fire whose attempt did not begin."""
        self.counts["released"] += 1
        self._put_uncounted(claim, settlement)

    def _put_uncounted(self, claim: Claim, settlement: Settlement) -> None:
        """Make a fire available again without counting the attempt. An at-most-once claim has no fire yet: open one."""
        if claim.fire is not None:
            self._settlement_writer.put(settlement, wakes=settlement.then == "postpone")
            return
        now_ms = self._clock.now_ms()
        deliver_after = now_ms if settlement.deliver_after is None else settlement.deliver_after
        fire = uncounted_fire(claim, now_ms, deliver_after, settlement.reason)
        self._settlement_writer.open(fire, settlement.entry)

    # Attempts.

    def _start(self) -> None:
        while (taken := self._next()) is not None:
            task = asyncio.create_task(self._make_attempts(*taken))
            self._in_flight[task] = taken[1]
            task.add_done_callback(self._on_task_done)

    def _next(self) -> tuple[Lane, Claim] | None:
        while (taken := self._queue.take()) is not None:
            if (not self._attempts.abandoned or self._may_start(taken[1])) and (not self._held.bytes or self._has_memory(*taken)):
                return taken
            self._queue.done(taken[0])
        return None

    def _may_start(self, claim: Claim) -> bool:
        """Return whether the attempt is likely to end. If not, release the fire."""
        stuck = self._attempts.stuck(claim)
        if stuck is not None:
            self._refuse(claim, stuck)
        return stuck is None

    def _refuse(self, claim: Claim, outcome: Outcome) -> None:
        self._settle(claim, self._attempts.released(claim, outcome), outcome)
        self._free_payload(claim)

    def _has_memory(self, lane: Lane, claim: Claim) -> bool:
        """Return whether there is memory for what its target decodes. Until then the claim has no slot."""
        is_admitted = self._memory.admits(lane, claim)
        if not is_admitted and self._attempts.abandoned.any_of(lane.owner):
            self._refuse_waiting(lane.owner)
        return is_admitted

    def _refuse_waiting(self, owner: str) -> None:
        """Release what waits for memory that may never be freed: abandoned attempts of the same owner hold it."""
        for _, claim in self._memory.drain(owner):
            self._refuse(claim, STUCK)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        del self._in_flight[task]
        self._start()
        if self._ends_at is not None:
            self._on_capacity()

    async def _make_attempts(self, lane: Lane, claim: Claim) -> None:
        """Make this attempt, then the next that may start: a task for each attempt would cost more than the bookkeeping."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            try:
                await self._attempt(claim)
            finally:
                self._queue.done(lane)
                if self._held.bytes:
                    self._free_payload(claim)
            if self._ends_at is not None or len(self._queue) == self._low_water:
                self._on_capacity()
            taken = self._next()
            if taken is None:
                break
            lane, claim = taken
            self._in_flight[task] = claim
            self._start()  # the end of one attempt may free room in two limits

    def _free_payload(self, claim: Claim) -> None:
        before = self._held.bytes
        self._put_first(self._memory.remove(claim))
        if self._held.bytes < MAX_HELD_BYTES // 2 <= before:
            self._on_capacity()

    def _put_first(self, admitted: Sequence[Queued]) -> None:
        """Put back at the head of their lanes the claims that waited for memory."""
        for lane, claim in reversed(admitted):
            self._queue.put(lane, claim, first=True)

    def _keep_payload(self, delivery: Delivery, attempt: asyncio.Future[Any]) -> None:
        """Count the payload of an abandoned attempt until the attempt ends."""
        end = self._memory.keep(delivery)

        def ended(_: object) -> None:
            self._put_first(end())
            self._start()

        attempt.add_done_callback(ended)
        self._refuse_waiting(delivery.owner)

    async def _attempt(self, claim: Claim) -> None:
        try:
            settlement, outcome = await self._attempts.make(claim, self._max_s(), self._keep_payload)
        except BaseException as error:
            if not self._was_cut_off:
                why = STOPPED if isinstance(error, asyncio.CancelledError) else f"{type(error).__name__} ended the attempt"
                self._settlement_writer.put(self._attempts.cut_off(claim, why))
            raise
        if self._was_cut_off:
            return
        self._settle(claim, settlement, outcome)
        if outcome.verdict == "gone":
            detail = settlement.entry.detail if settlement.entry else None
            await self._on_target_gone(claim, f"its target {detail or 'is gone'}")

    def _settle(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        if outcome.verdict == "delivered":
            if self.shortage.of is not None:
                self.shortage.eased()
            self._settlement_writer.put(settlement, wakes=claim.schedule.policy.overlap == "wait")
            self.counts["delivered"] += 1
            return
        if outcome.obstacle == "missing":
            detail = outcome.detail or "the worker lacks something"
            self.missing_targets.add(label_of(claim.schedule.target), detail, self._clock.now_ms())
        elif outcome.obstacle == "exhausted":
            self.shortage.began(outcome.detail or "the worker is out of something")
        elif self.shortage.of is not None and outcome.verdict != "release":
            self.shortage.eased()
        if settlement.then == "release":
            self._release(claim, settlement)
            return
        if settlement.then == "postpone":
            self._put_uncounted(claim, settlement)
            self.counts["postponed"] += 1
            return
        self._settlement_writer.put(settlement, wakes=settlement.then == "retry" or claim.schedule.policy.overlap == "wait")
        self.counts["failed"] += 1
        if settlement.then == "dead":
            self.counts["dead"] += 1
        self._failure_log.log(claim, settlement)

    def _max_s(self) -> float:
        """Return the longest time that an attempt may take, whatever its schedule's timeout."""
        if self._ends_at is None:
            return self._longest_s
        left_s = max(self._ends_at - asyncio.get_running_loop().time(), 0) + self._options.drain.total_seconds()
        return min(self._longest_s, left_s)
