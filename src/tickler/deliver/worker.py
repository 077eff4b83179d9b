"""A worker: a runner under a name, with its attempts and its heartbeat."""

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
from tickler.deliver.claim_loop import ClaimLoop, Summary
from tickler.deliver.heartbeat import Heartbeat
from tickler.deliver.run_options import RunOptions
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store

log = logging.getLogger("tickler.deliver")


def new_name() -> str:
    """Of this process, and of no other, before or after."""
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
        options: RunOptions,
        *,
        reopen: Callable[[], Store] | None = None,
    ) -> None:
        self.name = attempts.worker
        self._attempts = attempts
        self._loop = asyncio.get_running_loop()
        self.runner = ClaimLoop(store, schedules, attempts, clock, options, reopen)
        self._heartbeat = Heartbeat(store.records, clock, self.runner, attempts.worker, follow)
        self._telling = ActivityPublisher(store.records, clock, attempts.worker) if store.capabilities.shared else None
        if self._telling is not None:
            attempts.heard.own.append(self._telling)

    async def run(self) -> None:
        self._heartbeat.check_clock()  # before anything is claimed
        await self._attempts.open()
        beside = [asyncio.create_task(self._heartbeat.run())]
        if self._telling is not None:
            beside.append(asyncio.create_task(self._telling.run()))
        log.info("working as %s", self._attempts.worker)
        try:
            await self.runner.run()
        finally:
            for task in beside:
                task.cancel()
            await self._attempts.close()
            await asyncio.wait(beside)

    async def tick(self, budget_ms: int) -> Summary:
        await self._attempts.open()
        try:
            await self._heartbeat.beat()
            return await self.runner.tick(budget_ms)
        finally:
            await self._attempts.close()
            await self._heartbeat.stopped(tick=True)

    def wake(self) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self.runner.wake)

    def stop(self) -> None:
        """From any thread, and from a signal handler."""
        self._loop.call_soon_threadsafe(self.runner.stop)
