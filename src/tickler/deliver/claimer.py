"""Claims what is due, leases open fires, and hands both to the dispatcher."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence

from tickler.deliver.capable_workers import CapableWorkers
from tickler.deliver.claim_size import ClaimSize
from tickler.deliver.dispatcher import Dispatcher
from tickler.deliver.lease_extender import LeaseExtender
from tickler.deliver.listeners import Listeners
from tickler.deliver.payload_memory import MAX_HELD_BYTES
from tickler.deliver.run_options import CLAIM_BATCH, WorkerConfig
from tickler.fires.contract import ClaimRequest, LeaseRequest
from tickler.model.fire import MAX_CLAIM_BYTES, Claim, is_at_most_once
from tickler.stores.store import Store

LEASE_EVERY_S = 0.25  # while there is much to claim; otherwise in every round
HEAD_START_MS = 1_000
PASS_OVER_DIVISOR = 20  # a claim that passes over waiting owners asks for the free slots / 20
MIN_CROWD = 16  # an owner with no more fires waiting is never passed over


class Claimer:
    """Decides how many fires one round may claim, and of which owners."""

    def __init__(
        self, store: Store, dispatcher: Dispatcher, leases: LeaseExtender, listeners: Listeners, config: WorkerConfig
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._leases = leases
        self._listeners = listeners
        self._config = config
        self._options = config.options
        self._size = ClaimSize(config.options.in_flight, CLAIM_BATCH)
        self._capable_workers = CapableWorkers(store.records, config.name)
        self._leased_at = 0.0
        self._is_paused = False
        self.last_round_at: int | None = None
        self.last_claim_at: int | None = None

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    def pause(self) -> None:
        """Claim nothing until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    def may_claim(self) -> bool:
        return not self._is_paused and not self._dispatcher.shortage.lasts()

    def room(self) -> int:
        """Return how many more fires to queue: 0 until a claim is worth its cost, and while payloads take much memory."""
        if self._dispatcher.held_bytes >= MAX_HELD_BYTES:
            return 0
        room = self._options.queued - self._dispatcher.waiting
        return room if room >= max(min(CLAIM_BATCH, self._options.queued // 2), 1) else 0

    def forget_size(self) -> None:
        """Nothing is due: start again with small claims."""
        self._size.idle()

    async def claim_next(self) -> int:
        """Claim as much as this worker can use now; return how many fires it got.

        While at-most-once fires wait for slots, their owners are passed over.
        """
        dispatcher, room = self._dispatcher, self.room()
        except_owners = [] if room else self._crowded_owners()
        waiting = dispatcher.waiting_at_most_once() if self._size.counts_waiting else Counter[str]()
        ended = sum(dispatcher.counts[each] for each in ("delivered", "failed", "postponed"))
        size = self._size.next(dispatcher.free, waiting.total(), ended, asyncio.get_running_loop().time())
        if size == 0:
            except_owners = [*except_owners, *waiting]
            size = -(-dispatcher.free // PASS_OVER_DIVISOR)  # a few: fires of other owners may go to the same full host
        if size <= 0:
            return 0
        room = min(room or CLAIM_BATCH, size)
        if dispatcher.shortage.of is None:
            return await self.claim(room, except_owners)
        # During a shortage, owners that hold nothing come first: everything that the others hold may hang.
        return await self.claim(room, [*except_owners, *dispatcher.owners()]) or await self.claim(room, except_owners)

    async def claim(self, room: int, except_owners: Sequence[str]) -> int:
        """Run one round; return how many fires were claimed or leased.

        Each answer goes to the dispatcher at once, since the next call to the store may fail.
        """
        now_ms = await self._leases.now_ms()
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
        if not lease_first and taken < min(room, CLAIM_BATCH):
            taken += await self._take(self._lease(now_ms, room - taken, except_owners))
        self.last_round_at = now_ms
        self._leases.takeover_hold.store_answered()
        if taken:
            self.last_claim_at = now_ms
            self._dispatcher.shortage.claimed(taken)
        self._listeners.round_ended(now_ms, loop.time() - began, taken)
        return taken

    async def _take(self, answer: Awaitable[list[Claim]]) -> int:
        """Dispatch what the store answers. If the answer took long, some of its leases may have ended."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        claims: Sequence[Claim] = await answer
        if loop.time() - began > self._options.lease.total_seconds() / 3:
            self._leases.takeover_hold.store_failed()
            claims = await self._leases.without_lost(claims)
        return self._dispatcher.take(claims)

    async def _claim(self, now_ms: int, room: int, except_owners: Sequence[str]) -> list[Claim]:
        asked = min(room, CLAIM_BATCH)
        request = ClaimRequest(
            now_ms=now_ms,
            limit=asked,
            worker=self._config.name,
            lease_ms=self._config.lease_ms + self._config.ahead_ms,
            expires_at=now_ms + self._config.retention_ms,
            except_owners=except_owners,
            ahead_ms=self._config.ahead_ms,
            max_bytes=self._room_bytes(),
        )
        claims = await self._store.fires.claim(request)
        self._size.claimed(asked, len(claims), [claim.fire for claim in claims].count(None))
        return claims

    async def _lease(self, now_ms: int, room: int, except_owners: Sequence[str]) -> list[Claim]:
        """Lease open fires. Those released for a reason are left for a moment to workers that have what is missing here."""
        self._leased_at = asyncio.get_running_loop().time()
        missing = self._dispatcher.missing_targets
        others_can = bool(missing) and await self._capable_workers.exist_for(missing.recent(now_ms), now_ms)
        head_start_ms = HEAD_START_MS if others_can else 0
        request = LeaseRequest(
            now_ms=now_ms,
            limit=min(room, CLAIM_BATCH),
            worker=self._config.name,
            lease_ms=self._config.lease_ms,
            expires_at=now_ms + self._config.retention_ms,
            expired=self._leases.may_take_over(),
            except_owners=except_owners,
            max_bytes=self._room_bytes(),
            head_start_ms=head_start_ms,
        )
        claims = await self._store.fires.lease(request)
        self._size.leased(sum(map(is_at_most_once, claims)))
        return claims

    def _within_limits(self, room: int, except_owners: Sequence[str]) -> tuple[int, Sequence[str]]:
        """Return how many fires may be claimed now, and which owners to pass over.

        However many bytes are held, an owner that holds nothing gets its first fire if that can start at once.
        """
        dispatcher = self._dispatcher
        if self._is_paused:
            return 0, except_owners
        if dispatcher.held_bytes >= 2 * MAX_HELD_BYTES:
            room, except_owners = int(dispatcher.room_for_idle()), [*dispatcher.owners()]
        return dispatcher.shortage.room(room), except_owners

    def _room_bytes(self) -> int:
        return min(MAX_CLAIM_BYTES, max(2 * MAX_HELD_BYTES - self._dispatcher.held_bytes, 0))

    def _crowded_owners(self) -> list[str]:
        """Return the owners with more than their share of queued fires or held bytes: they may hide fires of others."""
        waiting = self._dispatcher.waiting_of
        if self._dispatcher.waiting >= 2 * self._options.queued:
            return list(waiting)
        share = max(MIN_CROWD, self._options.queued // (len(waiting) + 1))
        crowded = {owner for owner, number in waiting.items() if number > share}
        if self._dispatcher.held_bytes >= MAX_HELD_BYTES:
            sizes = self._dispatcher.held_bytes_of
            crowded |= {owner for owner, size in sizes.items() if size > MAX_HELD_BYTES // (len(sizes) + 1)}
        return list(crowded)
