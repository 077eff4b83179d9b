"""Processes that import a file, and are killed at the first point of a job, at the second, and so on to the end.

Each attempt has a job of its own and is a process of its own, forked from this one, so that modules are imported once. With
`writes`, they are also killed before and after each write.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from book import MARCH
from imports import ADA, SMALL, Imports, csv_of
from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.model import BulkJob
from pricebook.points import pass_on
from tickler import ManualClock, RetryLater

LINES = [*(f"1,P{n},5.{n:02},EUR" for n in range(14)), "1,P3,7,EUR", "1,P14,x,EUR", "2,P1,5,EUR", "1,P15,1.15,EUR", "1,P16,,"]
IMPORTED_AT = MARCH + timedelta(hours=1)  # when the prices of before count
SCENARIOS: dict[str, dict[str, Any]] = {
    "submitted": {"submit": True},
    "all or nothing": {"all_or_nothing": True},
    "cancelled": {},
}


@asynccontextmanager
async def opened_at(url: str, clock: ManualClock, at_point: Any = None) -> AsyncIterator[Imports]:
    """Open the pricebook of a store, with limits so small that a job of a few lines has several of each step."""
    table = url.removeprefix("dynamodb://").partition("?")[0] + "_prices" if url.startswith("dynamodb") else "pricebook"
    async with open_pricebook(Settings(store=url, table=table), clock=clock) as opened:
        yield _imports(opened, at_point)


def _imports(opened: Pricebook, at_point: Any) -> Imports:
    ticks = itertools.count()
    # A slice of 20 s is over each time that it was asked for a few times.
    return Imports(opened, SMALL, at_point or pass_on, seconds=lambda: next(ticks) * 4.0)


async def go_on(imports: Imports, scenario: str, key: str) -> BulkJob:
    """Import the file, from wherever a process that did the same has stopped."""
    job = await imports.start(csv_of(LINES), idempotency_key=key, **SCENARIOS[scenario])
    if scenario != "cancelled":
        await imports.work(job.id)
        return await imports.get(job.id)
    while not job.added and job.is_open:
        try:
            await imports.jobs.work(job.id)
        except RetryLater:
            job = await imports.get(job.id)
    return await imports.jobs.cancel(ADA, job.id)


class Steps:
    """Counts steps, and kills this process at number `last`."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._taken = 0

    async def at_point(self, _: str) -> None:
        self._taken += 1
        if self._taken == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stepping(*args: Any, **kwargs: Any) -> Any:
            await self.at_point("before a write")
            written = await write(*args, **kwargs)
            await self.at_point("after a write")
            return written

        return stepping


async def run(url: str, scenario: str, number: int, *, writes: bool) -> None:
    steps = Steps(number)
    async with opened_at(url, ManualClock(IMPORTED_AT), steps.at_point) as imports:
        engine: Any = imports.db.engine
        for name in ("write", "write_each") if writes else ():
            setattr(engine, name, steps.around(getattr(engine, name)))
        await go_on(imports, scenario, f"{scenario} {number}")


def attempt(url: str, scenario: str, number: int, *, writes: bool) -> bool:
    """Import in a process that is killed at step `number`. Returns whether it was."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(run(url, scenario, number, writes=writes))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit(f"attempt {number} failed")
    return False


def main(url: str, scenario: str, writes: str) -> str:
    """Return the number of attempts, of which all but the last were killed."""
    return str(next(number for number in itertools.count(1) if not attempt(url, scenario, number, writes=writes == "writes")))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
