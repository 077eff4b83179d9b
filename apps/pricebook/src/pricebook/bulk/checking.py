"""The first step of a job: every line is read, and those that cannot be imported are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pricebook.bulk.attempt import Attempt
from pricebook.bulk.comparing import Comparing
from pricebook.bulk.duplicates import Duplicate, Run, Runs
from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import Position
from pricebook.bulk.price_file import Batch, PriceFile
from pricebook.bulk.price_line import Refusal
from pricebook.errors import InvalidField
from pricebook.model import BulkCounts, BulkJob


class Checking:
    """Goes on where a job is. Nothing of it has an effect before all lines are checked."""

    def __init__(self, file: PriceFile, comparing: Comparing, runs: Runs, limits: BulkLimits) -> None:
        self._file = file
        self._comparing = comparing
        self._runs = runs
        self._limits = limits

    async def go_on(self, attempt: Attempt) -> None:
        """Check all lines, and let the good ones be added next. `InvalidField` if none may be."""
        job = attempt.job
        is_whole_file = job.offset == 0
        run, refused, end = Run(job.upload.lines), 0, Position(job.checked, job.offset)
        async for batch in self._file.batches(job, end):
            refused += await self._check(attempt, batch, run)
            self._check_number(attempt.job.counts.failed + refused)
            end = batch.end
            new = end.line - attempt.job.checked
            if new >= self._limits.checkpoint or (new and attempt.is_over):
                await self._checkpoint(attempt, end, run, refused)
                run, refused, is_whole_file = Run(job.upload.lines), 0, False
                attempt.check_time()
        await self._refuse_duplicates(attempt, run, is_whole_file=is_whole_file)
        failed = await attempt.count_refused()
        self._check_number(failed)
        if failed and job.options.all_or_nothing:
            raise InvalidField("file", f"{failed:,} of {end.line:,} lines were refused: correct them. Nothing was imported")
        await attempt.at_point("bulk.all_checked")
        await attempt.advance(
            BulkJob.state.set("adding"),
            BulkJob.checked.set(end.line),
            BulkJob.offset.set(0),
            BulkJob.counts.set(BulkCounts(failed=failed)),
        )

    async def _check(self, attempt: Attempt, batch: Batch, run: Run) -> int:
        """Keep why lines of a batch are refused, and digests of the others. Returns how many were refused."""
        lines, refusals = await self._comparing.allowed(batch.found, attempt.caller)
        for line in lines:
            run.add(line.key, line.line)
        await attempt.refuse(refusals)
        return len(refusals)

    async def _checkpoint(self, attempt: Attempt, end: Position, run: Run, refused: int) -> None:
        await attempt.at_point("bulk.refused")
        await self._runs.keep(attempt.job, run, attempt.job.checked)
        await attempt.at_point("bulk.run_kept")
        await attempt.advance(
            BulkJob.checked.set(end.line),
            BulkJob.offset.set(end.offset),
            BulkJob.counts.set(BulkCounts(failed=attempt.job.counts.failed + refused)),
        )
        await attempt.at_point("bulk.checkpoint")

    async def _refuse_duplicates(self, attempt: Attempt, last: Run, *, is_whole_file: bool) -> None:
        """Refuse all lines that are about the same price as another one: nobody knows which of them is meant."""
        refused, refusals = attempt.job.counts.failed, list[Refusal]()
        async for each in self._duplicates(attempt, last, is_whole_file=is_whole_file):
            refusals.append(_refusal(each))
            if len(refusals) == self._limits.batch:
                refused += len(refusals)
                self._check_number(refused)
                await attempt.refuse(refusals)
                refusals = []
        await attempt.refuse(refusals)
        await attempt.at_point("bulk.duplicates_refused")

    async def _duplicates(self, attempt: Attempt, last: Run, *, is_whole_file: bool) -> AsyncIterator[Duplicate]:
        if is_whole_file:
            for each in last.duplicates():
                yield each
            return
        await self._runs.keep(attempt.job, last, attempt.job.checked)
        await attempt.at_point("bulk.runs_kept")
        async for each in self._runs.duplicates(attempt.job):
            yield each

    def _check_number(self, failed: int) -> None:
        most = self._limits.failures
        if failed > most:
            raise InvalidField("file", f"more than {most:,} lines were refused: is it of another kind? Nothing was imported")


def _refusal(duplicate: Duplicate) -> Refusal:
    return Refusal(duplicate.line, f"is about the same price as line {duplicate.other:,}: leave one of them out", duplicate.other)
