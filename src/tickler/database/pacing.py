"""Shares the event loop: long computations take turns, a few milliseconds each, and everything else runs in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

TURN_S = 0.005
LONG_BYTES = 32_768  # JSON that is longer may take longer to read than a turn lasts
MAX_WRITERS = 2  # that work out what to write at once

T = TypeVar("T")


class RunInThread(Protocol):
    """Runs what takes longer than a turn elsewhere, such as on a thread."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


async def in_place(work: Callable[[], T], /) -> T:
    return work()


class Pace:
    """What computations of one event loop share. One of them has its turn at a time, however many there are."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self.writing = asyncio.Semaphore(MAX_WRITERS)

    def turns(self) -> FairTurns:
        """For one computation."""
        return FairTurns(self._one_at_a_time)


class FairTurns:
    """The turns of one computation: it waits for the next one between its steps."""

    def __init__(self, one_at_a_time: asyncio.Lock) -> None:
        self._one_at_a_time = one_at_a_time
        self._until = 0.0

    async def next(self) -> None:
        """Return at once while the turn lasts, and wait for the next turn otherwise. Time that other tasks use counts too."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._until:
            return
        async with self._one_at_a_time:
            await asyncio.sleep(0)
        self._until = loop.time() + TURN_S
