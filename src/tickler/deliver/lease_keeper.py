"""Extends a worker's leases from a thread, over a connection of its own, while its event loop is blocked.

A handler that computes for longer than a lease blocks the event loop. Without the thread, other workers would take over the fires
that this worker still works on.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from tickler.clock import Clock
from tickler.deliver.held_leases import HeldLeases
from tickler.errors import TicklerError
from tickler.model.fire import Fire
from tickler.stores.store import Store

MAX_BATCH = 500
SNAPSHOT_TRIES = 5
STOP_TIMEOUT_S = 2.0
# How long an event loop may be silent before it counts as dead. Independent of how long attempts may last: a handler that blocks
# the loop for minutes is a mistake, and a process that hangs must not keep its fires for long.
MAX_SILENCE_S = 300.0

log = logging.getLogger("tickler.deliver")


class KeeperTiming(msgspec.Struct, frozen=True):
    """When the thread looks and acts. A loop that is silent for `dead_after_s` counts as dead: its leases are left to expire."""

    lease_ms: int
    ahead_ms: int
    max_silence_s: float = MAX_SILENCE_S

    @property
    def look_s(self) -> float:
        return self.lease_ms / 10_000

    @property
    def late_s(self) -> float:
        return self.lease_ms / 5_000

    @property
    def dead_after_s(self) -> float:
        return max(self.max_silence_s, self.lease_ms / 1_000)


class LeaseKeeper:
    """Watches the event loop, and opens a store only while the loop is late with its own extensions.

    `held` returns the worker's fires, from any thread. Without `reopen` nothing is watched: either no other process can open the
    store, or it cannot be opened again, as with the caller's own pool. Leases are longer then.
    """

    def __init__(
        self, reopen: Callable[[], Store] | None, clock: Clock, held: Callable[[], Sequence[Fire]], timing: KeeperTiming
    ) -> None:
        self._reopen = reopen
        self._clock = clock
        self._held = held
        self._timing = timing
        self._beat_at = 0.0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.extended = 0

    def start(self) -> None:
        if self._reopen is not None:
            self.beat()
            self._thread = threading.Thread(target=self._watch, args=(self._reopen,), name="tickler lease keeper", daemon=True)
            self._thread.start()

    def beat(self) -> None:
        """Note that the event loop has extended all leases that were due."""
        self._beat_at = time.monotonic()  # not the loop's own time, which may stand still

    async def stop(self) -> None:
        """Extend nothing from now on. Wait a little for the thread, which may have a connection to close."""
        self._stopped.set()
        ends_at = time.monotonic() + STOP_TIMEOUT_S
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < ends_at:  # noqa: ASYNC110  # a thread
            await asyncio.sleep(0.005)

    @property
    def _silent_s(self) -> float:
        return time.monotonic() - self._beat_at

    def _is_needed(self) -> bool:
        return self._timing.late_s < self._silent_s < self._timing.dead_after_s and not self._stopped.is_set()

    def _watch(self, reopen: Callable[[], Store]) -> None:
        was_dead = has_failed = False
        while not self._stopped.wait(self._timing.look_s):
            if self._is_needed():
                try:
                    asyncio.run(self._keep(reopen()))
                    has_failed = False
                except Exception as error:  # the next try may succeed, and nothing else keeps these leases
                    level = logging.DEBUG if has_failed else logging.WARNING
                    expected = isinstance(error, TicklerError | OSError)
                    text = "the lease keeper could not extend leases, and tries again: %s"
                    log.log(level, text, str(error) or type(error).__name__, exc_info=None if expected else error)
                    has_failed = True
            is_dead = self._silent_s >= self._timing.dead_after_s
            if is_dead and not was_dead:
                log.error("no lease was extended for %.0f s: this worker's fires are left to other workers", self._silent_s)
            was_dead = is_dead

    async def _keep(self, store: Store) -> None:
        leases = HeldLeases(self._timing.lease_ms, self._timing.ahead_ms)
        lease_s = self._timing.lease_ms / 1000
        if not self._snapshot():
            return
        async with asyncio.timeout(lease_s):
            await store.open(create=False)
        try:
            log.warning("the event loop is blocked for %.1f s, perhaps by a handler: a thread extends the leases", self._silent_s)
            while self._is_needed():
                async with asyncio.timeout(lease_s):
                    await self._extend(store, leases)
                await asyncio.sleep(self._timing.look_s)
        finally:
            await store.close()

    async def _extend(self, store: Store, leases: HeldLeases) -> None:
        due = leases.due(self._snapshot(), self._clock.now_ms())
        for start in range(0, len(due), MAX_BATCH):
            batch, until_ms = due[start : start + MAX_BATCH], leases.until(self._clock.now_ms())
            extension = await store.fires.extend(batch, until_ms)
            leases.extended(batch, until_ms, extension)
            self.extended += len(batch) - len(extension.lost) - len(extension.skipped)

    def _snapshot(self) -> Sequence[Fire]:
        """Return the held fires. If they change while they are read, the loop runs again and extends its leases itself."""
        for _ in range(SNAPSHOT_TRIES):
            try:
                return self._held()
            except RuntimeError:  # a collection changed during iteration
                continue
        return []
