"""Processes that change a store's prices, and are killed before or after their first write, their second, and so on to the end.

Each attempt has a store of its own and is a process of its own, forked from this one, so that modules are imported once.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from book import MARCH, Book, open_book, staged
from pricebook.editions import settlement, staging
from tickler import ManualClock

PRODUCTS = 7
BEFORE = {f"P{n}": 100 + n for n in range(PRODUCTS)}
AFTER = {f"P{n}": 200 + n for n in range(PRODUCTS)}
SEALED_AT = MARCH + timedelta(hours=12)
FROM_AT = MARCH + timedelta(days=1)
SETTLED_AT = FROM_AT + timedelta(days=2)  # what was before is no longer kept in the rows
EDITION = 2
CHANNEL_ENDS_AT = FROM_AT + timedelta(days=9)


async def go_on(book: Book, store: str) -> None:
    """Change all prices of a store and settle them, from wherever a process that did the same has stopped."""
    book.clock.set(SEALED_AT)
    head = await book.head(store)
    if head.next_edition == EDITION:
        await book.switch.open_edition(store, FROM_AT)
        head = await book.head(store)
    edition = head.editions.get(EDITION)
    if edition is not None and edition.state == "open":
        await book.switch.stage(store, EDITION, staged(AFTER))
        await book.switch.stage(store, EDITION, staged({"P0": 300}, "WEB", until=CHANNEL_ENDS_AT))
        await book.switch.seal(store, EDITION)
    book.clock.set(SETTLED_AT)
    await book.switch.settle(store)


class Steps:
    """Takes a step before and after each write, and kills this process at number `last`."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._taken = 0

    def around(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stepping(*args: Any, **kwargs: Any) -> Any:
            self._step()
            written = await write(*args, **kwargs)
            self._step()
            return written

        return stepping

    def _step(self) -> None:
        self._taken += 1
        if self._taken == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


async def change(url: str, store: str, last: int) -> None:
    async with open_book(url, ManualClock(SEALED_AT)) as book:
        steps, engine = Steps(last), book.db.engine
        for name in ("write", "write_each"):
            setattr(engine, name, steps.around(getattr(engine, name)))
        await go_on(book, store)


def attempt(url: str, number: int) -> bool:
    """Change prices in a process that is killed at step `number`. Returns whether it was."""
    child = os.fork()
    if child == 0:
        try:
            for module in (staging, settlement):
                vars(module)["STAGED_AT_A_TIME"] = 3  # so that there are several batches
            asyncio.run(change(url, f"store{number}", number))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit(f"attempt {number} failed")
    return False


def main(url: str) -> str:
    """Return the number of attempts, of which all but the last were killed."""
    return str(next(number for number in itertools.count(1) if not attempt(url, number)))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
