"""One attempt at a job, by one process, for a limited time. Others may have another attempt at the same moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pricebook.access.caller import Caller
from pricebook.bulk.price_line import Refusal
from pricebook.bulk.settings import BulkSettings
from pricebook.model import BulkFailure, BulkJob
from tickler import RetryLater
from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table import MISSING, Change, Condition, OpenTable

WRITTEN_AT_A_TIME = 100
AGAIN_AFTER = timedelta(seconds=1)  # the least that the engine takes


class Overtaken(Exception):
    """Another process has moved the job on, or somebody has cancelled it."""


class Attempt:
    """`job` is as it was read, or as this attempt has written it last."""

    def __init__(self, db: OpenTable, job: BulkJob, caller: Caller, settings: BulkSettings) -> None:
        self.job = job
        self.caller = caller
        self.at_point = settings.at_point
        self._db = db
        self._seconds = settings.seconds
        self._ends_at = self._seconds() + settings.limits.slice.total_seconds()

    @property
    def is_over(self) -> bool:
        """Tell whether it is time to let others have their turn."""
        return self._seconds() >= self._ends_at

    def check_time(self) -> None:
        """Let the engine call again if it is over."""
        if self.is_over:
            raise RetryLater(after=AGAIN_AFTER, reason="there is more to do")

    async def advance(self, *changes: Change[BulkJob]) -> None:
        """Change the job if it is as far as this attempt knows. Otherwise `Overtaken`."""
        try:
            self.job = await self._db.update(self.job.key, *changes, when=unmoved(self.job))
        except (ConditionFailed, ItemNotFound):
            raise Overtaken from None

    async def refuse(self, refusals: Sequence[Refusal]) -> None:
        """Keep why lines were refused. Doing that twice is the same as once."""
        for first in range(0, len(refusals), WRITTEN_AT_A_TIME):
            await self._db.put_many([_failure(self.job, each) for each in refusals[first : first + WRITTEN_AT_A_TIME]])

    async def refused_lines(self) -> set[int]:
        """Return the numbers of the lines that were refused. There are no more than the limits allow."""
        return {failure.line async for failure in self._db.iterate(BulkFailure.key(self.job.id))}

    async def count_refused(self) -> int:
        return await self._db.count(BulkFailure.key(self.job.id), consistent=True)


def unmoved(job: BulkJob) -> Condition[BulkJob]:
    """Return the condition that a job is as far as it was read."""
    as_far = (BulkJob.state == job.state) & (BulkJob.offset == job.offset) & (BulkJob.change_set == job.change_set)
    return as_far & (BulkJob.ends.missing() if job.ends is MISSING else BulkJob.ends == job.ends)


def _failure(job: BulkJob, refusal: Refusal) -> BulkFailure:
    return BulkFailure(
        job=job.id,
        line=refusal.line,
        reason=refusal.reason,
        other_line=MISSING if refusal.other_line is None else refusal.other_line,
        expires_at=job.expires_at,
    )
