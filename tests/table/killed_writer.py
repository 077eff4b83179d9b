"""A writer that is killed at its first step, at its second, and so on until it gets to the end: for `test_killed_writers`.

Each attempt is a process of its own, forked from this one, so that modules are imported once. A step is taken before each SQL
statement or request of DynamoDB, and after the last.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Any

import asyncpg
from table.joined_shop import Order, reminder, shop

import tickler
from tickler import Tickler
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

    def end(self) -> None:
        """Take the last step, after which nothing counts."""
        self.step()
        self.counting = False

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*args: Any, **kwargs: Any) -> Any:
            self.step()
            return function(*args, **kwargs)

        return stepping

    def before_coroutine(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stepping(*args: Any, **kwargs: Any) -> Any:
            self.step()
            return await function(*args, **kwargs)

        return stepping


def instrument(steps: Steps) -> None:
    """Let a step be taken before each statement and each request."""
    names = ("execute", "executemany")
    members = {name: steps.before(getattr(sqlite3.Connection, name)) for name in names}
    sqlite3.connect = partial(sqlite3.connect, factory=type("Stepping", (sqlite3.Connection,), members))  # type: ignore[assignment]  # for this process
    for name in (*names, "fetch", "fetchrow", "fetchval"):
        setattr(asyncpg.Connection, name, steps.before_coroutine(getattr(asyncpg.Connection, name)))
    Client._send = steps.before_coroutine(Client._send)  # type: ignore[method-assign, assignment]  # likewise


async def write_schedules(t: Tickler, key: str, using: object) -> None:
    """Write everything of a Tickler that can join a transaction."""
    await t.schedules.put(reminder(key), using=using)
    await t.send("shop", f"sent-{key}", "https://example.org/orders", key, using=using)
    await t.trigger("shop", f"fired-{key}", using=using)
    await t.records.put("mark", key, 1, using=using)


async def write_with_a_table(url: str, name: str, key: str, steps: Steps) -> None:
    async with tickler.connect(url) as t, shop.connect(t, name=name) as db:
        steps.counting = True
        async with db.transaction() as tx:
            tx.put(Order(id=f"new-{key}"))
            tx.update(Order.key.id(f"old-{key}"), Order.status.set("changed"))
            await write_schedules(t, key, tx)
        steps.end()


async def write_with_a_connection(url: str, name: str, key: str, steps: Steps) -> None:
    """Write with a connection of this program's own."""
    async with tickler.connect(url) as t:
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as own:
                steps.counting = True
                own.execute("BEGIN")
                own.execute(f"INSERT INTO {name}_own VALUES (?)", (key,))
                await write_schedules(t, key, own)
                own.execute("COMMIT")
        else:
            connection = await asyncpg.connect(url.partition("&schema=")[0])
            steps.counting = True
            async with connection.transaction():
                await connection.execute(f"INSERT INTO {name}_own VALUES ($1)", key)
                await write_schedules(t, key, connection)
        steps.end()


async def write_alone(url: str, name: str, key: str, steps: Steps) -> None:
    """Send without a transaction: the record of a send and its schedule are two writes."""
    async with tickler.connect(url) as t:
        steps.counting = True
        await t.send("shop", f"sent-{key}", "https://example.org/orders", key)
        steps.end()


WRITERS = {"table": write_with_a_table, "connection": write_with_a_connection, "alone": write_alone}


def attempt(how: str, url: str, name: str, number: int) -> bool:
    """Write in a process that is killed at step `number`. Returns whether it was."""
    child = os.fork()
    if child == 0:
        try:
            steps = Steps(number)
            instrument(steps)
            asyncio.run(WRITERS[how](url, name, f"{how}{number}", steps))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit(f"attempt {number} of {how} failed")
    return False


def main(url: str, name: str, *hows: str) -> str:
    """Return the number of attempts in each way, of which all but the last were killed."""
    shop.connect(tickler.connect(url), name=name)  # imports the modules of this store
    return " ".join(str(next(number for number in itertools.count(1) if not attempt(how, url, name, number))) for how in hows)


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
