"""A worker: a claim loop under a name, with its heartbeat."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable

from tickler.clock import Clock
from tickler.deliver.activity_publisher import ActivityPublisher
from tickler.deliver.attempt import Attempts
from tickler.deliver.claim_loop import ClaimLoop
from tickler.deliver.heartbeat import Heartbeat
from tickler.deliver.run_options import WorkerConfig
from tickler.deliver.summary import Summary
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store

log = logging.getLogger("tickler.deliver")


def new_name() -> str:
    """Return a name that no other worker has, before or after: host, process and some random digits."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


class Worker:
    """Runs or ticks once. `follow` measures the clock against the store's."""

    def __init__(
        self,
        store: Store,
        schedules: Schedules,
        attempts: Attempts,
        clock: Clock,
        follow: Callable[[], Awaitable[None]],
        config: WorkerConfig,
    ) -> None:
        self.name = config.name
        self._attempts = attempts
        self._loop = asyncio.get_running_loop()
        self._claim_loop = ClaimLoop(store, schedules, attempts, clock, config)
        self._heartbeat = Heartbeat(store.records, clock, self._claim_loop, attempts, follow)
        self._activity_publisher = ActivityPublisher(store.records, clock, config.name) if store.capabilities.shared else None
        if self._activity_publisher is not None:
            attempts.listeners.add(self._activity_publisher)

    @property
    def in_flight(self) -> int:
        return self._claim_loop.dispatcher.in_flight

    async def run(self) -> None:
        self._heartbeat.check_clock()  # before anything is claimed
        await self._attempts.open()
        helpers = [asyncio.create_task(self._heartbeat.run())]
        if self._activity_publisher is not None:
            helpers.append(asyncio.create_task(self._activity_publisher.run()))
        log.info("working as %s", self.name)
        try:
            await self._claim_loop.run()
        finally:
            for helper in helpers:
                helper.cancel()
            await self._attempts.close()
            await asyncio.wait(helpers)

    async def tick(self, budget_ms: int) -> Summary:
        await self._attempts.open()
        try:
            await self._heartbeat.beat()
            return await self._claim_loop.tick(budget_ms)
        finally:
            await self._attempts.close()
            await self._heartbeat.report_stopped(tick=True)

    def wake(self) -> None:
        """Look for due fires now. Safe from any thread."""
        self._loop.call_soon_threadsafe(self._claim_loop.wake)

    def stop(self) -> None:
        """Finish `run`. Safe from any thread and from a signal handler."""
        self._loop.call_soon_threadsafe(self._claim_loop.stop)
