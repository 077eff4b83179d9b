"""A writer that is killed at its first step, at its second, and so on until it gets to the end: for `test_killed_writers`.

Each attempt is a process of its own, forked from this one, so that modules are imported once. A step is what happens before or
after an SQL statement or a request of DynamoDB.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import asyncpg
from table.joined_shop import Order, reminder, shop

import tickler
from tickler.dynamo.client import Client


class Steps:
    """Counts steps, and kills this process at number `last`."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._taken = 0
        self.counting = False

    def step(self) -> None:
        self._taken += self.counting
        if self._taken == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*args: Any, **kwargs: Any) -> Any:
            self.step()
            result = function(*args, **kwargs)
            self.step()
            return result

        return stepping

    def around_coroutine(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stepping(*args: Any, **kwargs: Any) -> Any:
            self.step()
            result = await function(*args, **kwargs)
            self.step()
            return result

        return stepping


def instrument(steps: Steps) -> None:
    """Let steps be taken around each statement and each request."""
    names = ("execute", "executemany")
    members = {name: steps.around(getattr(sqlite3.Connection, name)) for name in names}
    sqlite3.connect = partial(sqlite3.connect, factory=type("Stepping", (sqlite3.Connection,), members))  # type: ignore[assignment]  # for this process
    for name in (*names, "fetch", "fetchrow", "fetchval"):
        setattr(asyncpg.Connection, name, steps.around_coroutine(getattr(asyncpg.Connection, name)))
    Client._send = steps.around_coroutine(Client._send)  # type: ignore[method-assign, assignment]  # likewise


async def write(url: str, name: str, number: int, steps: Steps) -> None:
    async with tickler.connect(url) as t, shop.connect(t, name=name) as db:
        steps.counting = True
        async with db.transaction() as tx:
            tx.put(Order(id=f"new{number}"))
            tx.update(Order.key.id(f"old{number}"), Order.status.set("changed"))
            await t.schedules.put(reminder(str(number)), using=tx)
        steps.counting = False


def attempt(url: str, name: str, number: int) -> bool:
    """Write in a process that is killed at step `number`. Returns whether it was."""
    child = os.fork()
    if child == 0:
        try:
            steps = Steps(number)
            instrument(steps)
            asyncio.run(write(url, name, number, steps))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit(f"attempt {number} failed")
    return False


def main(url: str, name: str) -> int:
    """Return the number of attempts, of which all but the last were killed."""
    shop.connect(tickler.connect(url), name=name)  # imports the modules of this store
    return next(number for number in itertools.count(1) if not attempt(url, name, number))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
