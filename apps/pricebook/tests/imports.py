"""Imports in tests: files in few words, started and worked on as the engine does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from book import Book
from pricebook.access.caller import Caller
from pricebook.app import Pricebook
from pricebook.bulk import BulkJobs, BulkLimits, BulkSettings
from pricebook.editions.pages import PageArgs
from pricebook.model import BulkJob, BulkOptions, ChangeLine, ChangeSet
from pricebook.points import AtPoint, pass_on
from tickler import ManualClock, RetryLater
from tickler.table import MISSING

ADA = Caller("ada", frozenset({"read", "edit", "approve"}))
SMALL = BulkLimits(batch=3, checkpoint=7, added=5, chunk=64)
"""So that a file of some lines has several batches, runs, checkpoints and chunks."""


async def pieces(content: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for first in range(0, len(content), size):
        yield content[first : first + size]


def csv_of(prices: Iterable[str], header: str = "store,product,amount,currency") -> bytes:
    """Return a CSV of lines such as "1,P1,19.99,EUR"."""
    return "\r\n".join([header, *prices, ""]).encode()


class Imports:
    """The bulk jobs of a pricebook, with limits of their own."""

    def __init__(self, opened: Pricebook, limits: BulkLimits = SMALL, at_point: AtPoint = pass_on, **settings: Any) -> None:
        self.opened = opened
        self.db = opened.db
        parts = BulkSettings(limits, at_point, **settings)
        self.jobs = BulkJobs(opened.t, opened.db, opened.people, opened.prices, opened.change_sets, parts)

    async def stores(self, prices: Mapping[str, Mapping[str, int]], tz: str = "UTC") -> None:
        """Make stores with prices of ALL, in minor units of EUR."""
        clock = self.opened.t.clock
        assert isinstance(clock, ManualClock)
        for store, its_own in prices.items():
            await Book(self.db, clock).a_store(store, its_own, tz=tz)

    async def start(self, content: bytes, *, caller: Caller = ADA, **options: Any) -> BulkJob:
        chosen = BulkOptions(**({"format": "csv"} | options))
        return await self.jobs.start(caller, chosen, pieces(content), request="request-1")

    async def run(self, content: bytes, *, caller: Caller = ADA, **options: Any) -> BulkJob:
        """Start a job and work on it until it has ended."""
        job = await self.start(content, caller=caller, **options)
        await self.work(job.id)
        return await self.get(job.id)

    async def work(self, id: str) -> int:
        """Work on a job until it has ended. Returns how many attempts that took."""
        attempts = 1
        while True:
            try:
                await self.jobs.work(id)
            except RetryLater:
                attempts += 1
            else:
                return attempts

    async def get(self, id: str) -> BulkJob:
        return await self.jobs.get(ADA, id)

    async def failures(self, id: str) -> dict[int, str]:
        """Return why lines were refused."""
        page = await self.jobs.failures(ADA, id, PageArgs(first=2_048))
        return {failure.line: failure.reason for failure in page.nodes}

    async def pairs(self, id: str) -> set[tuple[int, int]]:
        """Return the lines that were refused because of another one, with that one."""
        page = await self.jobs.failures(ADA, id, PageArgs(first=2_048))
        return {(failure.line, failure.other_line) for failure in page.nodes if failure.other_line is not MISSING}

    async def change_set(self, job: BulkJob) -> ChangeSet | None:
        if not job.change_set:
            return None
        return await self.db.get(ChangeSet.key.id(job.change_set))

    async def lines(self, job: BulkJob, *stores: str) -> dict[str, int | None]:
        """Return the lines of the change set of a job, as {"1/ALL/P1": 1999}."""
        found: dict[str, int | None] = {}
        for store in stores or ("1",):
            if job.change_set:
                async for line in self.db.iterate(ChangeLine.key(job.change_set, store)):
                    amount = None if line.amount is MISSING else line.amount
                    found[f"{line.store}/{line.channel}/{line.product}"] = amount
        return found
