"""Processes that change a store's prices, follow the change and settle it, and are killed at the first step, the second, and on.

A step is after each write of the table, with the schedules and sends that join it, and at each point that pricebook
names. Each attempt has a store of its own and is a process of its own, forked from this one, so that modules are imported once.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from book import MARCH
from event_receiver import EventReceiver
from pricebook.events import Receiver
from settled_book import SettledBook, open_settled_book
from tickler import ManualClock

BEFORE = {"P1": 100, "P2": 110}
AFTER = {"P1": 200, "P2": 210}
TURN = timedelta(minutes=10)  # of each attempt
EFFECTIVE = timedelta(minutes=5)  # after its start
SETTLED = timedelta(minutes=6)  # and so long before the next turn that the leases of a process run out
ENDS = timedelta(days=2)


def start_of(number: int) -> datetime:
    return MARCH + number * TURN


class ToldFile:
    """Writes down which settled editions change sets are told of, for whoever survives."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def store_settled(self, change_set: str, store: str, edition: int) -> None:
        with self._path.open("a") as file:
            file.write(f"{change_set} {store} {edition}\n")


class Steps:
    """Counts steps once it is begun, and kills this process at number `last`."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._taken: int | None = None

    def begin(self) -> None:
        self._taken = 0

    async def at_point(self, _: str) -> None:
        self._step()

    def around(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stepping(*args: Any, **kwargs: Any) -> Any:
            written = await write(*args, **kwargs)
            self._step()
            return written

        return stepping

    def _step(self) -> None:
        if self._taken is None:
            return
        self._taken += 1
        if self._taken == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


@asynccontextmanager
async def open_told_book(
    url: str, receiver: str, told: Path, clock: ManualClock, steps: Steps | None = None
) -> AsyncIterator[SettledBook]:
    """Open a price book whose change sets are a file, and whose events go to an address."""
    steps = steps or Steps(0)
    known = EventReceiver(clock)
    known.receiver = Receiver(receiver)
    async with open_settled_book(url, clock, at_point=steps.at_point, receivers=[known], change_sets=ToldFile(told)) as book:
        yield book


async def go_through(url: str, receiver: str, told: Path, number: int) -> None:
    """Change the prices of a store, and settle them, as a process of its own."""
    start, steps, store = start_of(number), Steps(number), f"store{number}"
    clock = ManualClock(start)
    async with open_told_book(url, receiver, told, clock, steps) as book:
        await book.follow()  # what others have left
        edition = await book.switch.open_edition(store, start + EFFECTIVE, change_set="a")
        await book.stage_to(store, edition, AFTER, until=start + ENDS)
        for name in ("write", "write_each"):
            setattr(book.db.engine, name, steps.around(getattr(book.db.engine, name)))
        steps.begin()
        await book.switch.seal(store, edition)
        await book.follow()
        clock.set(start + SETTLED)
        await book.settling.settle(store)
        await book.follow()


def attempt(url: str, receiver: str, told: Path, number: int) -> bool:
    """Go through it in a process that is killed at step `number`. Returns whether it was."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(go_through(url, receiver, told, number))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit(f"attempt {number} failed")
    return False


def main(url: str, receiver: str, told: str) -> str:
    """Return the number of attempts, of which all but the last were killed."""
    return str(next(number for number in itertools.count(1) if not attempt(url, receiver, Path(told), number)))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
