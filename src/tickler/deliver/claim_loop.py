"""The runner: claims what is due, hands it out, and sleeps until there is more.

A round claims from the index and leases what is owed again. Everything else happens beside the rounds: attempts,
acknowledgements, leases that are kept, the heartbeat, the history that is pruned, the store that calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import msgspec

from tickler.clock import Clock
from tickler.deliver.attempt import Attempts
from tickler.deliver.claim_size import ClaimSize
from tickler.deliver.clock_jump import ClockJumpDetector
from tickler.deliver.dispatcher import Dispatcher
from tickler.deliver.held_leases import HeldLeases
from tickler.deliver.lease_keeper import KeeperTiming, LeaseKeeper
from tickler.deliver.payload_memory import MAX_HELD_BYTES
from tickler.deliver.run_options import RunOptions
from tickler.deliver.settlement_writer import SettlementWriter
from tickler.errors import StoreUnavailable, TicklerError, WorkerUnfit
from tickler.fires.contract import ClaimRequest, LeaseRequest
from tickler.model.fire import MAX_CLAIM_BYTES, Claim, DueItem, Fire, is_at_most_once
from tickler.records.worker_status import workers
from tickler.schedules.schedules import Schedules
from tickler.stores.optional import Watches
from tickler.stores.store import Store

BATCH = 500
LEASE_EVERY_S = 0.25  # while there is much to do; when there is not, before every sleep
CROWDED_PAUSE_S = 0.2
MIN_POLL_S = 0.05
MIN_EMPTY_ROUND_S = 0.001
UNFIT_PAUSE_S = 30.0
PRUNE_PAUSE_S = 0.05
FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 5.0
HEAD_START_MS = 1_000
OTHERS_EVERY_S = 5.0  # how often a worker that lacks something looks who else is there
LOOKS_PAST = 20  # claims that look past owners whose fires wait ask for one such part of the free slots
CROWD = 16  # an owner with fewer waiting is never passed over

_MS = timedelta(milliseconds=1)

log = logging.getLogger("tickler.deliver")


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick did. `failed` counts the `dead` too; what was `given_back` could not be begun here, and counts as no attempt.

    `left`: something was still due when its budget was spent.
    """

    claimed: int
    delivered: int
    failed: int
    dead: int
    left: bool
    duration_ms: int
    given_back: int = 0


class ClaimLoop:
    """One worker. `run` until it is told to stop, or `tick` for as long as a budget lasts.

    `reopen` makes another store on the same data, for the thread that keeps leases while the event loop cannot.
    """

    def __init__(
        self,
        store: Store,
        schedules: Schedules,
        attempts: Attempts,
        clock: Clock,
        options: RunOptions,
        reopen: Callable[[], Store] | None = None,
    ) -> None:
        self._store = store
        self._schedules = schedules
        self.attempts = attempts
        self._clock = clock
        self._worker = attempts.worker
        self._heard = attempts.heard
        self._kept_ms = attempts.kept_ms
        self._options = options
        self._lease_ms = options.lease // _MS
        self._ahead_ms = options.ahead // _MS
        self._acknowledgements = SettlementWriter(store.fires, clock, attempts.kept_ms, self.wake)
        self._hands = Dispatcher(attempts, self._acknowledgements, clock, options, self.wake, self._disable)
        self._hands.low_water = options.queued - min(BATCH, options.queued // 2)
        self._something = asyncio.Event()  # came, or went
        self._stopping = asyncio.Event()
        self._leased_at = 0.0
        self._others_seen_at = float("-inf")
        self._others_asked: frozenset[str] = frozenset()
        self._others_able = False
        self._steady = ClockJumpDetector(options.lease.total_seconds())
        self._claim_size = ClaimSize(options.in_flight, BATCH)
        self._leases = HeldLeases(self._lease_ms, self._ahead_ms)
        self._keeper = LeaseKeeper(reopen, clock, self._held, KeeperTiming(self._lease_ms, self._ahead_ms))
        self._extends = True  # the last extension succeeded
        self._vain = 0
        self.may_claim = True  # the heartbeat says no while this machine's clock is far off
        self.last_round_at: int | None = None
        self.last_claim_at: int | None = None

    @property
    def in_flight(self) -> int:
        return self._hands.in_flight

    @property
    def queued(self) -> int:
        return self._hands.waiting

    @property
    def shortage(self) -> str | None:
        """What has run out here, if anything has."""
        return self._hands.shortage.of

    def lacks(self, now_ms: int) -> dict[str, int]:
        """Labels of what it was asked to deliver to lately and cannot, with when it last was."""
        return self._hands.lacks.recent(now_ms)

    @property
    def counts(self) -> Counter[str]:
        return self._hands.counts

    def wake(self) -> None:
        """Something may have become due, or there may be room for it."""
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
            self._keeper.start()
            try:
                await self._rounds()
            finally:
                await self._hands.drain(self._options.drain.total_seconds())
                for helper in helpers:
                    helper.cancel()
                await self._keeper.stop()

    async def tick(self, budget_ms: int) -> Summary:
        """Rounds until nothing is due, or the budget is spent; what is in flight then has until the drain's end.

        Where only ticks come by, nobody else prunes: one that has time left does so once.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        ends_at = self._hands.ends_at = started + budget_ms / 1000
        async with asyncio.TaskGroup() as beside:
            helpers = [beside.create_task(work) for work in (self._acknowledgements.run(), self._keep_leases())]
            self._keeper.start()
            try:
                left = await self._tick_rounds(ends_at)
                if loop.time() < ends_at:
                    await _tried("the history could not be pruned", self._prune_batch)
            finally:
                await self._hands.drain(self._options.drain.total_seconds())
                for helper in helpers:
                    helper.cancel()
                await self._keeper.stop()
        counts = self.counts
        return Summary(
            claimed=counts["claimed"],
            delivered=counts["delivered"],
            failed=counts["failed"],
            dead=counts["dead"],
            left=left,
            duration_ms=round((loop.time() - started) * 1000),
            given_back=counts["given_back"],
        )

    # Rounds.

    async def _rounds(self) -> None:
        pause_s = 0.0
        while not self._stopping.is_set():
            self._something.clear()
            try:
                room = self._room()
                if not await self._round_past(room or BATCH, [] if room else self._crowded()):
                    await self._idle()
                pause_s = 0.0
            except WorkerUnfit as error:
                log.error("%s", error)
                await self._sleep(UNFIT_PAUSE_S)
            except TicklerError as error:
                pause_s = min(max(pause_s * 2, FIRST_PAUSE_S), MAX_PAUSE_S)
                self._steady.doubt()
                log.warning("a round failed, the next is in %.1f s: %s", pause_s, error)
                await self._sleep(pause_s)

    async def _round_past(self, room: int, except_owners: Sequence[str]) -> int:
        """A round for as many as may be claimed now; while what is delivered at most once waits for slots, past its owners."""
        hands = self._hands
        waiting = hands.waiting_once() if self._claim_size.counts_waiting else Counter[str]()
        ended = self.counts["delivered"] + self.counts["failed"]
        size = self._claim_size.next(hands.free, waiting.total(), ended, asyncio.get_running_loop().time())
        if size == 0:
            except_owners = [*except_owners, *waiting]
            size = -(-hands.free // LOOKS_PAST)  # others may be unable to start theirs either: their host may be full
        if size <= 0:
            return 0
        room = min(room, size)
        if hands.shortage.of is None:
            return await self._round(room, except_owners)
        # Of the little that may be claimed, first what belongs to owners that have nothing: all that the others have may hang.
        return await self._round(room, [*except_owners, *hands.owners()]) or await self._round(room, except_owners)

    async def _idle(self) -> None:
        """Until something is due. The poll finds what others put meanwhile, and asks less and less often."""
        poll_s = MIN_POLL_S
        while not self._stopping.is_set():
            if not self._claims() or not self._room():
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
            self._claim_size.idle()
            slept_s = poll_s if due_s is None else min(due_s, poll_s)
            if await self._sleep(slept_s):
                poll_s = MIN_POLL_S
            elif due_s is not None and due_s <= slept_s:
                return
            else:
                poll_s = min(poll_s * 2, self._store.capabilities.poll_ms / 1000)

    async def _tick_rounds(self, ends_at: float) -> bool:
        """Whether something was left. Claims only what can be started at once: at most once must not mean lost."""
        loop, hands = asyncio.get_running_loop(), self._hands
        still_due: list[DueItem] = []
        while True:
            self._something.clear()
            if loop.time() >= ends_at:
                return bool(hands.waiting) or await self._is_due()
            written = self._acknowledgements.written
            busy = hands.busy_owners()  # the others first, so that none of them waits for these
            room = min(hands.room_for_any(busy), max(self._options.per_owner // 2, 1))
            claimed = await self._round(room, busy) if room > 0 else 0
            if not claimed and busy and (room := hands.room_for_any()) > 0:
                claimed = await self._round(room, [])
            if not claimed and hands.room_for_any() <= 0 and hands.room_for_idle():
                claimed = await self._round(1, hands.owners_in_flight())
            if not claimed:
                if not hands.in_flight and not hands.waiting:
                    await self._acknowledgements.all_written(ends_at - loop.time())
                    if self._acknowledgements.written > written:
                        continue  # what was just settled may have made another due
                    before, still_due = still_due, await self._store.fires.peek(self._clock.now_ms(), BATCH)
                    if self._claims() and still_due != before:
                        continue  # a claim moved on what its policy skips, and others may be due behind it
                    return bool(still_due) and not self._claims()
                await self._sleep(min(CROWDED_PAUSE_S, max(ends_at - loop.time(), 0)))

    async def _is_due(self) -> bool:
        next_at = await self._store.fires.next_at()
        return next_at is not None and next_at <= self._clock.now_ms()

    async def _round(self, room: int, except_owners: Sequence[str]) -> int:
        """How many were claimed or leased. Each answer is taken at once: the store may be gone when the next one is asked for."""
        now_ms = await self._now_ms()
        room, except_owners = self._within_limits(room, except_owners)
        if not room:
            return 0
        taken = 0
        loop = asyncio.get_running_loop()
        began = loop.time()
        lease_first = began - self._leased_at >= LEASE_EVERY_S
        if lease_first:
            taken += await self._take(self._lease(now_ms, room, except_owners))
        if taken < room:
            taken += await self._take(self._claim(now_ms, room - taken, except_owners))
        if not lease_first and taken < min(room, BATCH):
            taken += await self._take(self._lease(now_ms, room - taken, except_owners))
        self.last_round_at = now_ms
        self._steady.answered()
        if taken:
            self.last_claim_at = now_ms
            self._vain = 0
            self._hands.shortage.claimed(taken)
        self._heard.round_ended(now_ms, loop.time() - began, taken)
        await asyncio.sleep(0)  # so that attempts begin before the next claim
        return taken

    async def _take(self, asked: Awaitable[list[Claim]]) -> int:
        """How many the store gave. Of an answer that took long to come, leases may have ended: what another has is left to it."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        claims = await asked
        if loop.time() - began > self._options.lease.total_seconds() / 3:
            self._steady.doubt()
            lost = await self._lost_of(claims)
            self.counts["leases_lost"] += len(lost)
            claims = [claim for claim in claims if claim.fire is None or claim.fire.id not in lost]
        return self._hands.take(claims)

    async def _lost_of(self, claims: Sequence[Claim]) -> set[str]:
        """Extends their leases; ids of the fires that are another's by now, as far as the store can tell."""
        fires = [claim.fire for claim in claims if claim.fire is not None]
        try:
            extension = await self._store.fires.extend(fires, self._leases.until(self._clock.now_ms()))
            return {fire.id for fire in extension.lost}
        except TicklerError as error:
            log.warning("leases could not be extended: %s", error)
            return set()

    async def _now_ms(self) -> int:
        """The time. Looked at often: a clock that is set there and back would go unnoticed, but for the leases."""
        now_ms = self._clock.now_ms()
        if self._steady.jumped(now_ms):
            await self._after_jump()
        return now_ms

    async def _claim(self, now_ms: int, room: int, except_owners: Sequence[str]) -> list[Claim]:
        asked = min(room, BATCH)
        request = ClaimRequest(
            now_ms=now_ms,
            limit=asked,
            worker=self._worker,
            lease_ms=self._lease_ms + self._ahead_ms,
            expires_at=now_ms + self._kept_ms,
            except_owners=except_owners,
            ahead_ms=self._ahead_ms,
            max_bytes=self._room_bytes(),
        )
        claims = await self._store.fires.claim(request)
        self._claim_size.claimed(asked, len(claims), [claim.fire for claim in claims].count(None))
        return claims

    async def _lease(self, now_ms: int, room: int, except_owners: Sequence[str]) -> list[Claim]:
        """While this worker has something to say that the store has not heard, its own leases may be among those that ran out."""
        self._leased_at = asyncio.get_running_loop().time()
        head_start_ms = HEAD_START_MS if self._hands.lacks and await self._others_have_it(now_ms) else 0
        request = LeaseRequest(
            now_ms=now_ms,
            limit=min(room, BATCH),
            worker=self._worker,
            lease_ms=self._lease_ms,
            expires_at=now_ms + self._kept_ms,
            expired=not self._acknowledgements.behind and self._steady.trusted(),
            except_owners=except_owners,
            max_bytes=self._room_bytes(),
            head_start_ms=head_start_ms,
        )
        claims = await self._store.fires.lease(request)
        self._claim_size.leased(sum(map(is_at_most_once, claims)))
        return claims

    async def _others_have_it(self, now_ms: int) -> bool:
        """Whether a live worker has what this one lacks. Looked up when something new is missing, and else seldom."""
        lacks, now_s = self._hands.lacks.recent(now_ms), asyncio.get_running_loop().time()
        if now_s - self._others_seen_at >= OTHERS_EVERY_S or not lacks.keys() <= self._others_asked:
            self._others_seen_at, self._others_asked = now_s, frozenset(lacks)
            others = [each for each in await workers(self._store.records, now_ms) if each.name != self._worker]
            able = [other for other in others if other.is_alive(now_ms)]
            self._others_able = any(other.has(label) for other in able for label in lacks)
        return self._others_able

    def _claims(self) -> bool:
        """Whether it may claim anything now."""
        return self.may_claim and not self._hands.shortage.lasts()

    def _within_limits(self, room: int, except_owners: Sequence[str]) -> tuple[int, Sequence[str]]:
        """How many may be claimed now, and past whom. However many bytes are held, an owner that has nothing gets its first, if
        that can start at once.
        """
        hands = self._hands
        if not self.may_claim:
            return 0, except_owners
        if hands.held_bytes >= 2 * MAX_HELD_BYTES:
            room, except_owners = int(hands.room_for_idle()), [*hands.owners()]
        return hands.shortage.room(room), except_owners

    def _room(self) -> int:
        """For how many more to claim; none until a claim is worth it, or while the payloads that are held take much memory."""
        if self._hands.held_bytes >= MAX_HELD_BYTES:
            return 0
        room = self._options.queued - self._hands.waiting
        return room if room >= max(min(BATCH, self._options.queued // 2), 1) else 0

    def _room_bytes(self) -> int:
        """For how many bytes of schedules to claim at once."""
        return min(MAX_CLAIM_BYTES, max(2 * MAX_HELD_BYTES - self._hands.held_bytes, 0))

    def _crowded(self) -> list[str]:
        """Owners that have more than their share waiting, or held in bytes, while others may have something due that nobody has
        seen.
        """
        waiting = self._hands.waiting_of
        if self._hands.waiting >= 2 * self._options.queued:
            return list(waiting)
        share = max(CROWD, self._options.queued // (len(waiting) + 1))
        crowded = {owner for owner, number in waiting.items() if number > share}
        if self._hands.held_bytes >= MAX_HELD_BYTES:
            sizes = self._hands.held_bytes_of
            crowded |= {owner for owner, size in sizes.items() if size > MAX_HELD_BYTES // (len(sizes) + 1)}
        return list(crowded)

    def _vain_s(self) -> float:
        """How long to wait after a round that got nothing although something is due."""
        self._vain = min(self._vain + 1, 8)
        return float(MIN_EMPTY_ROUND_S * 2**self._vain)

    async def _sleep(self, seconds: float) -> bool:
        """Whether it was woken before."""
        try:
            async with asyncio.timeout(seconds):
                await self._something.wait()
        except TimeoutError:
            return False
        return True

    async def _disable(self, claim: Claim, reason: str) -> None:
        """Pause a schedule whose target wants no more, unless it was put again meanwhile, or ends by itself."""
        owner, key = claim.schedule.id
        try:
            stored = await self._schedules.get(owner, key)
            if stored is None or stored.state != "active" or stored.version != claim.schedule.version:
                return
            await self._schedules.pause(owner, key, reason=reason)
        except TicklerError as error:
            log.warning("%s could not be paused, although %s: %s", claim.schedule.id, reason, error)
        else:
            log.warning("%s is paused: %s", claim.schedule.id, reason)

    # Beside.

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._options.lease.total_seconds() / 10)
            try:
                await self._now_ms()
                await self._extend()
                self._extends = True
            except TicklerError as error:
                log.log(logging.WARNING if self._extends else logging.DEBUG, "leases could not be extended: %s", error)
                self._extends = False

    async def _extend(self) -> None:
        """What it is time for. Where that took as long as a third of a lease, it is time again."""
        while due := self._leases.due(self._held(), self._clock.now_ms()):
            for start in range(0, len(due), BATCH):
                batch, until_ms = due[start : start + BATCH], self._leases.until(self._clock.now_ms())
                extension = await self._store.fires.extend(batch, until_ms)
                self._leases.extended(batch, until_ms, extension)
                self.counts["leases_lost"] += len(extension.lost)
        self._keeper.beat()

    def _held(self) -> list[Fire]:
        """All that is leased to this worker, and what it has not been able to settle."""
        return [*self._hands.fires(), *self._acknowledgements.fires()]

    async def _after_jump(self) -> None:
        """Leases of the living seem to have ended. This one keeps its own, and takes over nobody's for a while."""
        log.warning(
            "the clock was set by %+d ms; leases are kept, and none is taken over for %s", self._steady.by_ms, self._options.lease
        )
        await self._extend()

    async def _prune(self) -> None:
        while True:
            await _tried("the history could not be pruned", self._prune_once)
            await asyncio.sleep(60)

    async def _prune_once(self) -> None:
        pruned = 1
        while pruned and not self._stopping.is_set():
            pruned = await self._prune_batch()
            await asyncio.sleep(PRUNE_PAUSE_S)

    async def _prune_batch(self) -> int:
        now_ms = self._clock.now_ms()
        return await self._store.fires.prune(now_ms) + await self._store.records.prune(now_ms)

    async def _watch(self) -> None:
        store, able = self._store, True
        while able and isinstance(store, Watches):
            try:
                able = await store.watch(self.wake)
            except StoreUnavailable as error:
                log.debug("not called by the store: %s", error)
            await asyncio.sleep(MAX_PAUSE_S if able else 0)


async def _tried(what: str, work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except TicklerError as error:
        log.warning("%s: %s", what, error)
