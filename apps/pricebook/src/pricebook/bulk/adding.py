"""The second step of a job: what its good lines change is added to one change set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Protocol

from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.bulk.attempt import Attempt
from pricebook.bulk.comparing import Comparing
from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import Position
from pricebook.bulk.moments import Moment, read_moment
from pricebook.bulk.price_file import PriceFile
from pricebook.bulk.price_line import PriceLine
from pricebook.change_sets import Line, NewChangeSet
from pricebook.errors import InvalidField, NotAllowed
from pricebook.model import BulkCounts, BulkJob, BulkOptions, ChangeSet
from tickler.table import OpenTable

TITLE = "Import"


class WritesChangeSets(Protocol):
    """What an import does with change sets; `pricebook.change_sets.ChangeSets` implements it."""

    async def create(self, caller: Caller, new: NewChangeSet, *, request: str = "", id: str | None = None) -> ChangeSet: ...

    async def put_lines(self, caller: Caller, id: str, lines: Iterable[Line], *, request: str = "") -> int: ...

    async def submit(self, caller: Caller, id: str, *, request: str = "") -> ChangeSet: ...

    async def cancel(self, caller: Caller, id: str, *, reason: str = "", request: str = "") -> ChangeSet: ...


class Adding:
    """Goes on where a job is. A dry run does all but the writes."""

    def __init__(
        self, db: OpenTable, file: PriceFile, comparing: Comparing, change_sets: WritesChangeSets, limits: BulkLimits
    ) -> None:
        self._db = db
        self._file = file
        self._comparing = comparing
        self._change_sets = change_sets
        self._limits = limits

    async def go_on(self, attempt: Attempt) -> None:
        """Add all lines, and submit the change set if that is asked for."""
        job = attempt.job
        refused = await attempt.refused_lines()
        collected = _Collected(Position(job.added, job.offset))
        async for batch in self._file.batches(job, collected.end):
            found = [each for each in batch.found if each.line not in refused]
            lines, refusals = await self._comparing.allowed(found, attempt.caller)
            if refusals and job.options.all_or_nothing:
                raise InvalidField("file", f"line {refusals[0].line:,}: {refusals[0].reason}. Nothing was imported")
            await attempt.refuse(refusals)
            changes, counts = await self._comparing.compare(job, lines)
            collected.add(changes, counts, batch.end)
            new = batch.end.line - attempt.job.added
            if new >= self._limits.added or (new and attempt.is_over):
                await self._put(attempt, collected)
                collected = _Collected(batch.end)
                attempt.check_time()
        await self._put(attempt, collected)
        if attempt.job.options.submit and attempt.job.change_set:
            await self._submit(attempt)

    async def take_back(self, attempt: Attempt) -> None:
        """Cancel the change set of a job that ends early, unless somebody else has decided about it already.

        It is the job's own: that its actor may do less today does not keep it.
        """
        job = attempt.job
        if await self._is_draft(job):
            canceller = Caller(attempt.caller.id, frozenset({"edit"}))
            await self._change_sets.cancel(canceller, job.change_set, reason=job.error[:500], request=job.request)

    async def _put(self, attempt: Attempt, collected: _Collected) -> None:
        """Add lines, and then write down that they are. A process that is killed in between adds the same lines again."""
        if collected.changes and not attempt.job.options.dry_run:
            await self._make_change_set(attempt)
            lines = [Line(line.key, line.amount) for line in collected.changes]
            await self._change_sets.put_lines(attempt.caller, attempt.job.change_set, lines, request=attempt.job.request)
            await attempt.at_point("bulk.put")
        await attempt.advance(
            BulkJob.added.set(collected.end.line),
            BulkJob.offset.set(collected.end.offset),
            BulkJob.counts.set(_sum(attempt.job.counts, collected.counts)),
        )
        await attempt.at_point("bulk.added")

    async def _make_change_set(self, attempt: Attempt) -> None:
        """Make the change set if there is none. Its id is written down first, so that there is never a second one."""
        if not attempt.job.change_set:
            await attempt.advance(BulkJob.change_set.set(attempt.job.upload.id))
            await attempt.at_point("bulk.named")
        job = attempt.job
        if await self._db.get(ChangeSet.key.id(job.change_set)) is None:
            await self._change_sets.create(attempt.caller, new_change_set(job.options), request=job.request, id=job.change_set)
            await attempt.at_point("bulk.created")

    async def _submit(self, attempt: Attempt) -> None:
        if await self._is_draft(attempt.job):
            try:
                await self._change_sets.submit(attempt.caller, attempt.job.change_set, request=attempt.job.request)
            except NotAllowed:
                if await self._is_draft(attempt.job):
                    raise  # otherwise another process was faster
        await attempt.at_point("bulk.submitted")

    async def _is_draft(self, job: BulkJob) -> bool:
        if not job.change_set:
            return False
        found = await self._db.get(ChangeSet.key.id(job.change_set))
        return found is not None and found.state == "draft"


class _Collected(Struct):
    """Lines that are not added yet, up to a position."""

    end: Position
    changes: list[PriceLine] = []
    counts: BulkCounts = BulkCounts()

    def add(self, changes: Sequence[PriceLine], counts: BulkCounts, end: Position) -> None:
        self.changes += changes
        self.counts = _sum(self.counts, counts)
        self.end = end


def new_change_set(options: BulkOptions) -> NewChangeSet:
    """Return the change set that an import makes. `InvalidField` if its options do not make one."""
    at, day = _split(read_moment("effective", options.effective))
    until_at, until_day = _split(read_moment("until", options.until))
    title = options.title or TITLE
    new = NewChangeSet(title=title, reason=options.reason, at=at, day=day, until_at=until_at, until_day=until_day)
    try:
        return new.checked()
    except InvalidField as error:
        if error.field in ("until_at", "until_day"):
            raise InvalidField("until", error.reason) from None
        raise


def _split(moment: Moment) -> tuple[datetime | None, date | None]:
    return (moment, None) if isinstance(moment, datetime) else (None, moment)


def _sum(one: BulkCounts, other: BulkCounts) -> BulkCounts:
    return BulkCounts(
        changes=one.changes + other.changes,
        unchanged=one.unchanged + other.unchanged,
        kept=one.kept + other.kept,
        failed=one.failed + other.failed,
    )
