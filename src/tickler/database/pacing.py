"""Shares the event loop among long computations: each gets turns of a few milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

TURN_S = 0.005
LONG_BYTES = 32_768  # parsing longer JSON may take longer than a turn
MAX_WRITERS = 2  # how many writers may compute at once

T = TypeVar("T")


class RunInThread(Protocol):
    """Runs work that takes longer than a turn elsewhere, such as on a thread."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


async def in_place(work: Callable[[], T], /) -> T:
    return work()


class Pace:
    """Shared by the computations of one event loop. Only one of them has its turn at a time."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self.writing = asyncio.Semaphore(MAX_WRITERS)

    def turns(self) -> FairTurns:
        """Return the turns of one computation."""
        return FairTurns(self._one_at_a_time)


class FairTurns:
    """The turns of one computation, which calls `next` between its steps."""

    def __init__(self, one_at_a_time: asyncio.Lock) -> None:
        self._one_at_a_time = one_at_a_time
        self._until = 0.0

    async def next(self) -> None:
        """Return at once while the turn lasts; otherwise wait for the next. Time used by other tasks counts too."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._until:
            return
        async with self._one_at_a_time:
            await asyncio.sleep(0)
        self._until = loop.time() + TURN_S
