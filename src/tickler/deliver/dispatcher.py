"""What a worker has in its hands: held until its instant, queued until there is room, in flight; and how it gets rid of it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from tickler.clock import Clock
from tickler.deliver.abandoned import STUCK
from tickler.deliver.attempt import Attempts, host_of
from tickler.deliver.fair_queue import FairQueue, Lane
from tickler.deliver.log_throttle import ThrottledLog
from tickler.deliver.missing_targets import MissingTargets
from tickler.deliver.payload_memory import MAX_HELD_BYTES, PayloadMemory, Queued
from tickler.deliver.run_options import RunOptions
from tickler.deliver.settlement_writer import SettlementWriter
from tickler.deliver.shortage import Shortage
from tickler.model.delivery import Delivery, Outcome
from tickler.model.fire import Claim, Fire, Settlement, is_at_most_once, unbegun_fire
from tickler.model.target import label_of

MIN_FLUSH_S = 5.0
CANCELLED_S = 2.0  # for an attempt to end that was told to
STOPPED = "the worker was told to stop"

log = logging.getLogger("tickler.deliver")

Gone = Callable[[Claim, str], Awaitable[None]]


class Dispatcher:
    """Starts what it was given as far as the limits allow, and hands what came of it to the acknowledgements.

    `less` is called when there may be room for more; `gone` with a claim whose target wants no more, and why.
    """

    def __init__(
        self,
        attempts: Attempts,
        acknowledgements: SettlementWriter,
        clock: Clock,
        options: RunOptions,
        less: Callable[[], None],
        gone: Gone,
    ) -> None:
        self._attempts = attempts
        self._acknowledgements = acknowledgements
        self._clock = clock
        self._options = options
        self._longest_s = options.longest.total_seconds()
        self._less = less
        self._gone = gone
        self._queue: FairQueue[Claim] = FairQueue(options.slots, options.per_owner, options.places_of_a_host)
        self._early: dict[int, tuple[asyncio.TimerHandle, Claim]] = {}
        self._numbers = itertools.count()
        self._in_flight: dict[asyncio.Task[None], Claim] = {}
        self._was_cut_off = False  # what was in flight then is settled
        self._memory = PayloadMemory()  # what waits there has no slot
        self._held = self._memory.held
        self._dead = ThrottledLog(log, logging.WARNING, "and %d more were given up")
        self._failed = ThrottledLog(log, logging.INFO, "and %d more failed")
        self.low_water = 0  # `less` is called when so many are left
        self.ends_at: float | None = None  # of a tick, on the loop's clock: no attempt lasts longer than it and the drain
        self.counts = attempts.counts
        self.shortage = Shortage()
        self.lacks = MissingTargets()

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def waiting(self) -> int:
        """How many are not started yet."""
        return len(self._queue) + len(self._early) + self._memory.number_waiting

    @property
    def waiting_of(self) -> dict[str, int]:
        """How many of each owner are not started yet."""
        if not self._early and not self._memory.number_waiting:
            return self._queue.queued
        return Counter(claim.schedule.owner for claim in self._not_started())

    @property
    def held_bytes(self) -> int:
        """Of large payloads, as JSON."""
        return self._held.bytes

    @property
    def held_bytes_of(self) -> dict[str, int]:
        """The same of each owner."""
        return self._held.bytes_of

    def owners(self) -> set[str]:
        """All that have something in hand, or a payload held."""
        return {*self._queue.started_of, *self.waiting_of, *self._held.bytes_of}

    @property
    def free(self) -> int:
        """How many slots nobody has."""
        return self._options.in_flight - self._queue.started

    def waiting_once(self) -> Counter[str]:
        """How many of each owner wait for a slot that are delivered at most once."""
        waiting = itertools.chain(self._queue, self._memory.waiting())
        return Counter(claim.schedule.owner for claim in waiting if is_at_most_once(claim))

    def fires(self) -> list[Fire]:
        """All that are leased to this worker, as far as they are not settled."""
        return [claim.fire for claim in self._all() if claim.fire is not None]

    def busy_owners(self) -> list[str]:
        """Those that have half of their places taken."""
        return [owner for owner, number in self._queue.started_of.items() if 2 * number >= self._options.per_owner]

    def owners_in_flight(self) -> list[str]:
        return list(self._queue.started_of)

    def room_for_any(self, except_owners: Collection[str] = ()) -> int:
        """How many could be started at once, whoever else they belong to, and wherever they go."""
        if self.held_bytes >= MAX_HELD_BYTES:
            return 0
        options, queue = self._options, self._queue
        most_of = max((number for owner, number in queue.started_of.items() if owner not in except_owners), default=0)
        most_to = max(queue.started_to.values(), default=0)
        rooms = (options.slots.shared - queue.started, options.per_owner - most_of, options.places_of_a_host.shared - most_to)
        return min(rooms) - self.waiting

    def room_for_idle(self) -> bool:
        """Whether one of an owner that has nothing in flight could be started at once, wherever it goes, as others of busy owners
        wait.
        """
        queue, options = self._queue, self._options
        if any(owner not in queue.started_of for owner in queue.queued):
            return False
        most_to = max(queue.started_to.values(), default=0)
        taken = queue.started + len(self._early) + self._memory.number_waiting
        return taken < options.in_flight and most_to < options.per_host

    def take(self, claims: Sequence[Claim]) -> int:
        """How many; what was claimed ahead of its time is held until then, and takes nobody's place meanwhile.

        What this worker lacks the means for is given back at once.
        """
        for claim in claims:
            lacking = self._attempts.missing(claim)
            if lacking is None:
                self._accept(claim)
            else:
                self._record(claim, self._attempts.released(claim, lacking), lacking)
        self.counts["claimed"] += len(claims)
        self._start()
        return len(claims)

    async def drain(self, seconds: float) -> None:
        """Give back what was not started, for others and not before its instant, and wait for what was."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        for claim in self._let_go():
            self._give_back_unbegun(claim)
        while self._in_flight and loop.time() < until:
            await asyncio.wait(self._in_flight, timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)  # a task that is cancelled before it began would say nothing of its claim
        await self._cut_off()
        await self._acknowledgements.all_written(max(until - loop.time(), MIN_FLUSH_S))
        if self._acknowledgements.unopened:
            log.error(
                "%d fires that are delivered at most once are lost: the store did not take them back",
                self._acknowledgements.unopened,
            )
        self._dead.sum_up()
        self._failed.sum_up()

    async def _cut_off(self) -> None:
        """Who is cancelled a second time does not wait for a handler that goes on."""
        for is_second in (False, True):
            for task, claim in list(self._in_flight.items()):
                if is_second:
                    log.error("%s: its attempt does not end although it was cancelled; it is left behind", claim.schedule.id)
                task.cancel()
            if self._in_flight:
                await asyncio.wait(list(self._in_flight), timeout=CANCELLED_S)
        for claim in self._in_flight.values():
            self._acknowledgements.put(self._attempts.cut_off(claim, STOPPED))
        self._was_cut_off = True

    # Before an attempt.

    def _accept(self, claim: Claim) -> None:
        self._memory.add(claim)
        early_ms = claim.due_at - self._clock.now_ms() if self._options.ahead else 0
        if early_ms > 0:
            number = next(self._numbers)
            handle = asyncio.get_running_loop().call_later(early_ms / 1000, self._at_its_instant, number)
            self._early[number] = (handle, claim)
        else:
            self._put(claim)

    def _put(self, claim: Claim) -> None:
        schedule = claim.schedule
        self._queue.put(Lane(schedule.owner, host_of(schedule.target)), claim)

    def _at_its_instant(self, number: int) -> None:
        _, claim = self._early.pop(number)
        self._put(claim)
        self._start()

    def _not_started(self) -> Iterator[Claim]:
        return itertools.chain(self._queue, (claim for _, claim in self._early.values()), self._memory.waiting())

    def _all(self) -> Iterable[Claim]:
        return itertools.chain(self._in_flight.values(), self._not_started())

    def _let_go(self) -> list[Claim]:
        """All that was not started."""
        for handle, _ in self._early.values():
            handle.cancel()
        claims = list(self._not_started())
        self._queue.drain()
        self._early.clear()
        self._memory.clear()
        return claims

    def _give_back_unbegun(self, claim: Claim) -> None:
        """For others, though not before its instant."""
        deliver_after = max(claim.due_at, self._clock.now_ms())
        self._give_back(claim, Settlement(claim.schedule.id, claim.fire, "release", None, deliver_after))

    def _give_back(self, claim: Claim, release: Settlement) -> None:
        """What was not begun. One that is delivered at most once has no fire yet, which is opened for whoever comes next."""
        self.counts["given_back"] += 1
        if claim.fire is not None:
            self._acknowledgements.put(release)
            return
        now_ms = self._clock.now_ms()
        deliver_after = now_ms if release.deliver_after is None else release.deliver_after
        self._acknowledgements.open(unbegun_fire(claim, now_ms, deliver_after, release.reason))

    # Attempts.

    def _start(self) -> None:
        while (taken := self._next()) is not None:
            task = asyncio.create_task(self._attempts_from(*taken))
            self._in_flight[task] = taken[1]
            task.add_done_callback(self._ended)

    def _next(self) -> tuple[Lane, Claim] | None:
        """The next that may begin."""
        while (taken := self._queue.take()) is not None:
            if (not self._attempts.abandoned or self._may_end(taken[1])) and (not self._held.bytes or self._has_memory(*taken)):
                return taken
            self._queue.done(taken[0])
        return None

    def _may_end(self, claim: Claim) -> bool:
        """Whether it is likely to; otherwise it is given back."""
        stuck = self._attempts.stuck(claim)
        if stuck is not None:
            self._refuse(claim, stuck)
        return stuck is None

    def _refuse(self, claim: Claim, outcome: Outcome) -> None:
        self._record(claim, self._attempts.released(claim, outcome), outcome)
        self._let_payload_go(claim)

    def _has_memory(self, lane: Lane, claim: Claim) -> bool:
        """Whether there is room for what its target decodes. Until then it has not begun, and has no slot."""
        is_admitted = self._memory.admits(lane, claim)
        if not is_admitted and self._attempts.abandoned.any_of(lane.owner):
            self._refuse_waiting(lane.owner)
        return is_admitted

    def _refuse_waiting(self, owner: str) -> None:
        """What waits for memory that may never be free: attempts of its owner that were abandoned have it."""
        for _, claim in self._memory.drain(owner):
            self._refuse(claim, STUCK)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._in_flight[task]
        self._start()
        if self.ends_at is not None:
            self._less()

    async def _attempts_from(self, lane: Lane, claim: Claim) -> None:
        """This attempt, and then the next that may start: a task for each would cost more than its bookkeeping."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            try:
                await self._attempt(claim)
            finally:
                self._queue.done(lane)
                if self._held.bytes:
                    self._let_payload_go(claim)
            if self.ends_at is not None or len(self._queue) == self.low_water:
                self._less()
            taken = self._next()
            if taken is None:
                break
            lane, claim = taken
            self._in_flight[task] = claim
            self._start()  # one end may make room in two limits

    def _let_payload_go(self, claim: Claim) -> None:
        before = self._held.bytes
        self._put_first(self._memory.remove(claim))
        if self._held.bytes < MAX_HELD_BYTES // 2 <= before:
            self._less()

    def _put_first(self, admitted: Sequence[Queued]) -> None:
        """What waited for memory was the next of its lane."""
        for lane, claim in reversed(admitted):
            self._queue.put(lane, claim, first=True)

    def _keep_payload(self, delivery: Delivery, attempt: asyncio.Future[Any]) -> None:
        """An attempt was abandoned: what it was given counts until it ends."""
        end = self._memory.keep(delivery)

        def ended(_: object) -> None:
            self._put_first(end())
            self._start()

        attempt.add_done_callback(ended)
        self._refuse_waiting(delivery.owner)

    async def _attempt(self, claim: Claim) -> None:
        try:
            settlement, outcome = await self._attempts.make(claim, self._most_s(), self._keep_payload)
        except BaseException as error:
            if not self._was_cut_off:
                why = STOPPED if isinstance(error, asyncio.CancelledError) else f"{type(error).__name__} ended the attempt"
                self._acknowledgements.put(self._attempts.cut_off(claim, why))
            raise
        if self._was_cut_off:
            return
        self._record(claim, settlement, outcome)
        if outcome.verdict == "gone":
            await self._gone(claim, f"its target {_why(settlement) or 'is gone'}")

    def _record(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        if outcome.verdict == "delivered":  # most are, so they come first
            if self.shortage.of is not None:
                self.shortage.eased()
            self._acknowledgements.put(settlement, wakes=claim.schedule.policy.overlap == "wait")
            self.counts["delivered"] += 1
            return
        if outcome.obstacle == "missing":
            detail = outcome.detail or "something is missing here"
            self.lacks.met(label_of(claim.schedule.target), detail, self._clock.now_ms())
        elif outcome.obstacle == "exhausted":
            self.shortage.met(outcome.detail or "something has run out")
        elif self.shortage.of is not None and outcome.verdict != "release":
            self.shortage.eased()
        if settlement.then == "release":
            self._give_back(claim, settlement)
            return
        self._acknowledgements.put(settlement, wakes=settlement.then == "retry" or claim.schedule.policy.overlap == "wait")
        self.counts["failed"] += 1
        self._log_failure(claim, settlement)

    def _log_failure(self, claim: Claim, settlement: Settlement) -> None:
        id, attempt = claim.schedule.id, 1 if claim.fire is None else claim.fire.attempt
        why = _why(settlement) or "no reason is known"
        named = {"fire_id": _fire_id(settlement), "owner": id.owner, "key": id.key, "attempt": attempt}
        if settlement.then == "dead":
            self.counts["dead"] += 1
            text = "%s was given up after attempt %d: %s (`tickler retry %s` sends it again)"
            self._dead.say(text, id, attempt, why, _id_of(claim), extra=named)
        elif claim.fire is None:
            self._dead.say("%s was not delivered, and is not tried again: %s", id, why, extra=named)
        else:
            self._failed.say("%s failed at attempt %d, and is tried again: %s", id, attempt, why, extra=named)

    def _most_s(self) -> float:
        """However long a schedule's own timeout is."""
        if self.ends_at is None:
            return self._longest_s
        left_s = max(self.ends_at - asyncio.get_running_loop().time(), 0) + self._options.drain.total_seconds()
        return min(self._longest_s, left_s)


def _why(settlement: Settlement) -> str | None:
    return None if settlement.entry is None else settlement.entry.detail


def _fire_id(settlement: Settlement) -> str | None:
    return None if settlement.entry is None else settlement.entry.fire_id


def _id_of(claim: Claim) -> str:
    return "it" if claim.fire is None else claim.fire.id
