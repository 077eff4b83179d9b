"""Imports a file in processes that are killed at a point of the job; with `writes`, also before and after each write.

Each attempt has a job of its own.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from book import MARCH
from imports import ADA, SMALL, Imports, csv_of
from killed_process import Steps, survivor
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


async def run(url: str, scenario: str, writes: str, number: int) -> None:
    steps = Steps(number)
    async with opened_at(url, ManualClock(IMPORTED_AT), steps.at_point) as imports:
        steps.begin(imports.db.engine if writes else None)
        await go_on(imports, scenario, f"{scenario} {number}")


def main(url: str, scenario: str, writes: str) -> int:
    return survivor(partial(run, url, scenario, writes))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
