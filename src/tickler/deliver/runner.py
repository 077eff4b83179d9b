"""The runner: claims what is due, delivers it, remembers it, and sleeps until there is more.

A round claims from the index, leases what is owed again, and starts what there is room for. Everything else happens beside the
rounds: attempts, acknowledgements, leases that are kept, the heartbeat, the history that is pruned, the store that calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from tickler.clock import Clock
from tickler.deliver.acknowledge import Acknowledgements
from tickler.deliver.attempt import Attempts, host_of
from tickler.deliver.options import RunOptions
from tickler.deliver.queue import FairQueue, Lane
from tickler.errors import ScheduleNotFound, StoreUnavailable, TicklerError, WorkerUnfit
from tickler.fires import Claim, Entry, Fire, Settlement
from tickler.schedules import Schedules
from tickler.store import Store

BATCH = 500
LEASE_EVERY_S = 0.25  # while there is much to do; when there is not, before every sleep
CROWDED_PAUSE_S = 0.2
SHORTEST_POLL_S = 0.05
SHORTEST_VAIN_S = 0.001
UNFIT_PAUSE_S = 30.0
PRUNE_PAUSE_S = 0.05
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
LEAST_FLUSH_S = 5.0
JUMP_MS = 5_000  # a clock that was set
STOPPED = "the worker was told to stop"
CROWD = 16  # an owner with fewer waiting is never passed over

_MS = timedelta(milliseconds=1)

log = logging.getLogger("tickler.deliver")


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick did. `left`: something was still due when its budget was spent."""

    claimed: int
    delivered: int
    failed: int
    dead: int
    left: bool
    duration_ms: int


class Runner:
    """One worker. `run` until it is told to stop, or `tick` for as long as a budget lasts."""

    def __init__(self, store: Store, schedules: Schedules, attempts: Attempts, clock: Clock, options: RunOptions) -> None:
        self._store = store
        self._schedules = schedules
        self._attempts = attempts
        self._clock = clock
        self._worker = attempts.worker
        self._kept_ms = attempts.kept_ms
        self._options = options
        self._lease_ms = options.lease // _MS
        self._low_water = options.queued - min(BATCH, options.queued // 2)
        self._ahead_ms = options.ahead // _MS
        self._queue: FairQueue[Claim] = FairQueue(options.per_owner, options.per_host)
        self._in_flight: dict[asyncio.Task[None], Claim] = {}
        self._acknowledgements = Acknowledgements(store.fires, clock, attempts.kept_ms)
        self._something = asyncio.Event()  # came, or went
        self._stopping = asyncio.Event()
        self._leased_at = 0.0
        self._steady = Steady(clock)
        self._ends_at: float | None = None  # of a tick, on the loop's clock
        self._vain = 0
        self.may_claim = True  # the heartbeat says no while this machine's clock is far off
        self.counts: Counter[str] = Counter()
        self.last_round_at: int | None = None
        self.last_claim_at: int | None = None

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def queued(self) -> int:
        return len(self._queue)

    def wake(self) -> None:
        """Something may have become due."""
        self._something.set()

    def stop(self) -> None:
        """Claim no more, finish what is in flight, give back the rest."""
        self._stopping.set()
        self._something.set()

    async def run(self) -> None:
        """Until `stop`, or until it is cancelled, which stops it too."""
        async with asyncio.TaskGroup() as beside:
            helpers = [
                beside.create_task(work)
                for work in (self._acknowledgements.run(), self._keep_leases(), self._prune(), self._watch())
            ]
            try:
                await self._rounds()
            finally:
                await self._drain(self._options.drain.total_seconds())
                for helper in helpers:
                    helper.cancel()

    async def tick(self, budget_ms: int) -> Summary:
        """Rounds until nothing is due, or the budget is spent; what is in flight then has until the drain's end."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        self._ends_at = started + budget_ms / 1000
        acknowledging = asyncio.create_task(self._acknowledgements.run())
        keeping = asyncio.create_task(self._keep_leases())
        left = False
        try:
            left = await self._tick_rounds(self._ends_at)
        finally:
            await self._drain(self._options.drain.total_seconds())
            acknowledging.cancel()
            keeping.cancel()
        counts = self.counts
        return Summary(
            claimed=counts["claimed"],
            delivered=counts["delivered"],
            failed=counts["failed"],
            dead=counts["dead"],
            left=left,
            duration_ms=round((loop.time() - started) * 1000),
        )

    # Rounds.

    async def _rounds(self) -> None:
        pause_s = 0.0
        while not self._stopping.is_set():
            self._something.clear()
            try:
                if not await self._round(self._room()):
                    await self._idle()
                pause_s = 0.0
            except WorkerUnfit as error:
                log.error("%s", error)
                await self._sleep(UNFIT_PAUSE_S)
            except TicklerError as error:
                pause_s = min(max(pause_s * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S)
                log.warning("a round failed, the next is in %.1f s: %s", pause_s, error)
                await self._sleep(pause_s)

    async def _idle(self) -> None:
        """Until something is due. The poll finds what others put meanwhile, and asks less and less often."""
        poll_s = SHORTEST_POLL_S
        while not self._stopping.is_set():
            if not self.may_claim or self._room() <= 0:
                await self._sleep(CROWDED_PAUSE_S)
                return
            self._something.clear()
            next_at = await self._store.fires.next_at()
            due_s = None if next_at is None else (next_at - self._ahead_ms - await self._now_ms()) / 1000
            if due_s is not None and due_s <= 0:
                # Somebody else is at it, or it is not to be taken: look again, but not at once.
                await self._sleep(self._vain_s())
                return
            self._vain = 0
            slept_s = poll_s if due_s is None else min(due_s, poll_s)
            if await self._sleep(slept_s):
                poll_s = SHORTEST_POLL_S
            elif due_s is not None and due_s <= slept_s:
                return
            else:
                poll_s = min(poll_s * 2, self._store.capabilities.poll_ms / 1000)

    async def _tick_rounds(self, ends_at: float) -> bool:
        """Whether something was left. Claims only what can be started at once: at most once must not mean lost."""
        loop = asyncio.get_running_loop()
        while True:
            self._something.clear()
            if loop.time() >= ends_at:
                return any(claim.fire is not None for claim in self._queue) or await self._is_due()
            room = min(self._options.in_flight - len(self._in_flight), self._queue.room) - len(self._queue)
            written = self._acknowledgements.written
            claimed = await self._round(room) if room > 0 else 0
            if not claimed:
                if not self._in_flight and not len(self._queue):
                    await self._acknowledgements.all_written(ends_at - loop.time())
                    if self._acknowledgements.written > written:
                        continue  # what was just settled may have made another due
                    return not self.may_claim and await self._is_due()
                await self._sleep(min(CROWDED_PAUSE_S, max(ends_at - loop.time(), 0)))

    async def _is_due(self) -> bool:
        next_at = await self._store.fires.next_at()
        return next_at is not None and next_at <= self._clock.now_ms()

    async def _round(self, room: int) -> int:
        """How many were claimed or leased."""
        loop = asyncio.get_running_loop()
        now_ms = await self._now_ms()
        if not self.may_claim:
            return 0
        again_first = room > 0 and loop.time() - self._leased_at >= LEASE_EVERY_S
        claims = await self._lease(now_ms, room) if again_first else []
        if room <= 0 or len(claims) < room:
            claims += await self._claim(now_ms, room - len(claims))
        if not again_first and len(claims) < min(room, BATCH):
            claims += await self._lease(now_ms, room - len(claims))
        self.last_round_at = now_ms
        if claims:
            self.last_claim_at = now_ms
            self.counts["claimed"] += len(claims)
            self._vain = 0
        for claim in claims:
            lane = Lane(claim.schedule.owner, host_of(claim.schedule.target))
            self._queue.put(lane, claim)
        self._start()
        await asyncio.sleep(0)  # so that attempts begin before the next claim
        return len(claims)

    async def _now_ms(self) -> int:
        """The time. Looked at while idle too: a clock that is set there and back would go unnoticed, but for the leases."""
        now_ms = self._clock.now_ms()
        if self._steady.jumped(now_ms):
            await self._after_jump()
        return now_ms

    async def _claim(self, now_ms: int, room: int) -> list[Claim]:
        """What is due; where there is no room, of those owners only that have not more than their share in it."""
        crowded = self._crowded() if room <= 0 else []
        if room <= 0 and not crowded:
            return []
        return await self._store.fires.claim(
            now_ms + self._ahead_ms,
            min(room, BATCH) if room > 0 else BATCH,
            self._worker,
            self._lease_ms + self._ahead_ms,
            expires_at=now_ms + self._kept_ms,
            except_owners=crowded,
        )

    async def _lease(self, now_ms: int, room: int) -> list[Claim]:
        self._leased_at = asyncio.get_running_loop().time()
        return await self._store.fires.lease(
            now_ms,
            min(room, BATCH),
            self._worker,
            self._lease_ms,
            expires_at=now_ms + self._kept_ms,
            expired=self._steady.trusted(self._options.lease.total_seconds()),
        )

    def _room(self) -> int:
        """For how many more to claim; none until a claim is worth it."""
        room = self._options.queued - len(self._queue)
        return room if room >= min(BATCH, self._options.queued // 2) else 0

    def _crowded(self) -> list[str]:
        """Owners that have more than their share waiting, while others may have something due that nobody has seen."""
        waiting = self._queue.queued
        if len(self._queue) >= 2 * self._options.queued:
            return []
        share = max(CROWD, self._options.queued // (len(waiting) + 1))
        return [owner for owner, number in waiting.items() if number > share]

    def _vain_s(self) -> float:
        """How long to wait after a round that got nothing although something is due."""
        self._vain = min(self._vain + 1, 8)
        return float(SHORTEST_VAIN_S * 2**self._vain)

    async def _sleep(self, seconds: float) -> bool:
        """Whether it was woken before."""
        try:
            async with asyncio.timeout(seconds):
                await self._something.wait()
        except TimeoutError:
            return False
        return True

    # Attempts.

    def _start(self) -> None:
        while len(self._in_flight) < self._options.in_flight and (taken := self._queue.take()) is not None:
            task = asyncio.create_task(self._attempts_from(*taken))
            self._in_flight[task] = taken[1]
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._in_flight[task]
        self._start()
        self._something.set()

    async def _attempts_from(self, lane: Lane, claim: Claim) -> None:
        """This attempt, and then the next that may start: a task for each would cost more than its bookkeeping."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            try:
                await self._attempt(claim)
            finally:
                self._queue.done(lane)
            if self._ends_at is not None or len(self._queue) == self._low_water:
                self._something.set()
            taken = self._queue.take()
            if taken is None:
                break
            lane, claim = taken
            self._in_flight[task] = claim
            self._start()  # one end may make room in two limits
        self._start()

    async def _attempt(self, claim: Claim) -> None:
        if self._ahead_ms and (early_ms := claim.due_at - self._clock.now_ms()) > 0:
            try:
                await asyncio.sleep(early_ms / 1000)
            except asyncio.CancelledError:
                self._acknowledgements.put(self._given_back(claim))
                raise
        try:
            settlement, outcome = await self._attempts.make(claim, self._left_s())
        except asyncio.CancelledError:
            self._acknowledgements.put(self._attempts.cut_off(claim, STOPPED))
            raise
        self._acknowledgements.put(settlement)
        self.counts["delivered" if outcome.verdict == "delivered" else "failed"] += 1
        if settlement.then == "dead":
            self.counts["dead"] += 1
        if outcome.verdict == "gone":
            await self._disable(claim, settlement.entry)

    def _given_back(self, claim: Claim) -> Settlement:
        """Of what was not begun: for others, though not before its instant. What nobody else would deliver is recorded."""
        if claim.fire is None:
            return self._attempts.cut_off(claim, STOPPED)
        if claim.due_at > self._clock.now_ms():  # claimed ahead
            return Settlement(claim.schedule.id, claim.fire, "retry", None, claim.due_at)
        return Settlement(claim.schedule.id, claim.fire, "release", None)

    def _left_s(self) -> float | None:
        if self._ends_at is None:
            return None
        return max(self._ends_at - asyncio.get_running_loop().time(), 0) + self._options.drain.total_seconds()

    async def _disable(self, claim: Claim, entry: Entry | None) -> None:
        schedule = claim.schedule
        reason = f"its target {entry.detail if entry and entry.detail else 'is gone'}"
        try:
            await self._schedules.pause(schedule.owner, schedule.key, reason=reason)
        except ScheduleNotFound:
            return
        except TicklerError as error:
            log.warning("%s could not be paused, although its target is gone: %s", schedule.id, error)
        else:
            log.warning("%s is paused: %s", schedule.id, reason)

    # Leases.

    def _held(self) -> list[Fire]:
        return [claim.fire for claim in (*self._in_flight.values(), *self._queue) if claim.fire is not None]

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._options.lease.total_seconds() / 3)
            await _tried("leases could not be extended", self._extend)

    async def _extend(self) -> None:
        held = self._held()
        if held:
            until_ms = self._clock.now_ms() + self._ahead_ms + self._lease_ms  # no takeover before a fire's instant
            for start in range(0, len(held), BATCH):
                lost = await self._store.fires.extend(held[start : start + BATCH], until_ms)
                self.counts["leases_lost"] += len(lost)

    async def _after_jump(self) -> None:
        """Leases of the living seem to have ended. This one keeps its own, and takes over nobody's for a while."""
        log.warning(
            "the clock was set by %+d ms; leases are kept, and none is taken over for %s", self._steady.by_ms, self._options.lease
        )
        await self._extend()

    # Beside.

    async def _prune(self) -> None:
        while True:
            await _tried("the history could not be pruned", self._prune_once)
            await asyncio.sleep(60)

    async def _prune_once(self) -> None:
        pruned = 1
        while pruned and not self._stopping.is_set():
            now_ms = self._clock.now_ms()
            pruned = await self._store.fires.prune(now_ms) + await self._store.records.prune(now_ms)
            await asyncio.sleep(PRUNE_PAUSE_S)

    async def _watch(self) -> None:
        able = True
        while able:
            try:
                able = await self._store.watch(self.wake)
            except StoreUnavailable as error:
                log.debug("not called by the store: %s", error)
            await asyncio.sleep(LONGEST_PAUSE_S if able else 0)

    # The end.

    async def _drain(self, seconds: float) -> None:
        """Give back what was not started, except what is delivered at most once, which nobody else would deliver."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        for lane, claim in self._queue.drain():
            if claim.fire is None:
                self._queue.put(lane, claim)
            else:
                self._acknowledgements.put(self._given_back(claim))
        self._start()
        while self._in_flight and loop.time() < until:
            await asyncio.wait(self._in_flight, timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED)
        for _, claim in self._queue.drain():
            self._acknowledgements.put(self._given_back(claim))
        await asyncio.sleep(0)  # a task that is cancelled before it began would say nothing of its claim
        for task in list(self._in_flight):
            task.cancel()
        if self._in_flight:
            await asyncio.wait(list(self._in_flight))
        await self._acknowledgements.all_written(max(until - loop.time(), LEAST_FLUSH_S))


async def _tried(what: str, work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except TicklerError as error:
        log.warning("%s: %s", what, error)


class Steady:
    """Notices when a clock was set, by one that cannot be."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: tuple[int, float] | None = None
        self._jumped_at: float | None = None
        self.by_ms = 0

    def jumped(self, now_ms: int) -> bool:
        """Whether it was set since the last look."""
        now_s = asyncio.get_running_loop().time()
        seen, self._seen = self._seen, (now_ms, now_s)
        if seen is None:
            return False
        self.by_ms = now_ms - seen[0] - round((now_s - seen[1]) * 1000)
        if abs(self.by_ms) < JUMP_MS:
            return False
        self._jumped_at = now_s
        return True

    def trusted(self, lease_s: float) -> bool:
        """Whether leases that seem to have ended have: not within a lease of a jump."""
        return self._jumped_at is None or asyncio.get_running_loop().time() - self._jumped_at > lease_s
