"""Changes a store's prices, follows the change and settles it, in processes that are killed on the way.

A step is after each write of the table, with the schedules and sends that join it, and at each point that pricebook names. Each
attempt has a store of its own.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from book import MARCH
from event_receiver import EventReceiver
from killed_process import Steps, survivor
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
        steps.begin(book.db.engine, before_writes=False)
        await book.switch.seal(store, edition)
        await book.follow()
        clock.set(start + SETTLED)
        await book.settling.settle(store)
        await book.follow()


def main(url: str, receiver: str, told: str) -> int:
    return survivor(partial(go_through, url, receiver, Path(told)))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
