"""Imports as jobs: started with an upload, worked on by the engine, and watched by whoever has started them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from pricebook.access.caller import Caller
from pricebook.access.filtered_pages import filtered_page
from pricebook.bulk.actors import Actors, FindPerson, actor_of
from pricebook.bulk.adding import Adding, WritesChangeSets, new_change_set
from pricebook.bulk.attempt import Attempt, Overtaken, unmoved
from pricebook.bulk.checking import Checking
from pricebook.bulk.comparing import Comparing, PricesAt
from pricebook.bulk.duplicates import Runs
from pricebook.bulk.price_file import PriceFile
from pricebook.bulk.settings import BulkSettings
from pricebook.bulk.uploads import Uploads
from pricebook.editions.keyset_pages import KeysetPages, Listed
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.editions.timing import whole_milliseconds
from pricebook.errors import InvalidField, NotAllowed, NotFound, PricebookError
from pricebook.identifiers import BULK, OWNER
from pricebook.model import BulkCounts, BulkFailure, BulkJob, BulkOptions
from pricebook.money import Money
from pricebook.utc_now import utc_now
from tickler import Policy, PythonTarget, RetryLater, Tickler
from tickler.errors import ConditionFailed, TransactionConflict
from tickler.table import MISSING, OpenTable

POLICY = Policy(timeout=600, attempts=20, backoff=(1, 5, 15, 60, 300))
OTHERS_TURN = timedelta(seconds=10)  # before an attempt that another one has overtaken looks again
MAX_IDEMPOTENCY_KEY = 200


class BulkJobs:
    def __init__(
        self,
        t: Tickler,
        db: OpenTable,
        people: FindPerson,
        prices: PricesAt,
        change_sets: WritesChangeSets,
        settings: BulkSettings | None = None,
    ) -> None:
        self._t = t
        self._db = db
        self._settings = settings or BulkSettings()
        limits = self._settings.limits
        self._actors = Actors(people)
        self._uploads = Uploads(db, limits)
        self._runs = Runs(db)
        self._pages = KeysetPages(db, self._now)
        file, comparing = PriceFile(self._uploads, limits), Comparing(db, prices, self._now)
        self._checking = Checking(file, comparing, self._runs, limits)
        self._adding = Adding(db, file, comparing, change_sets, limits)

    async def start(self, caller: Caller, options: BulkOptions, source: AsyncIterator[bytes], *, request: str = "") -> BulkJob:
        """Keep an upload, and begin to work on it. With the idempotency key of an earlier job, return that one."""
        caller.require("edit")
        _check(options)
        now = self._now()
        upload = await self._uploads.store(source, now + self._settings.limits.kept)
        await self._settings.at_point("bulk.uploaded")
        job = BulkJob(
            id=_job_id(caller, options),
            state="checking",
            options=options,
            upload=upload,
            actor=actor_of(caller),
            request=request,
            created_at=now,
            expires_at=now + self._settings.limits.kept,
        )
        try:
            async with self._db.transaction() as tx:
                tx.create(job)
                await self._t.send(OWNER, _fire(job), PythonTarget(BULK), {"id": job.id}, policy=POLICY, using=tx)
        except (ConditionFailed, TransactionConflict):
            return await self._earlier(job)
        await self._settings.at_point("bulk.started")
        return job

    async def get(self, caller: Caller, id: str) -> BulkJob:
        """Return a job of the caller, or one that concerns only stores that they may see."""
        if not id:
            raise NotFound("bulk job")
        job = await self._db.get(BulkJob.key.id(id))
        if job is None or not _may_see(caller, job):
            raise NotFound("bulk job")
        if caller.id != job.actor.id:
            caller.require("read")
        return job

    async def recent(self, caller: Caller, page: PageArgs) -> NodePage[BulkJob]:
        """Return jobs, newest first."""
        caller.require("read")
        listed = Listed(BulkJob.all(), _by_instant, (datetime, str), newest_first=True)

        async def read(args: PageArgs) -> NodePage[BulkJob]:
            return await self._pages.page(("bulk jobs",), listed, args)

        return await filtered_page(read, page, lambda job: _may_see(caller, job))

    async def failures(self, caller: Caller, id: str, page: PageArgs) -> NodePage[BulkFailure]:
        """Return why lines were refused, by line."""
        job = await self.get(caller, id)
        return await self._pages.page(("bulk failures", job.id), Listed(BulkFailure.key(job.id), _by_line, (int,)), page)

    async def all_failures(self, caller: Caller, id: str) -> AsyncIterator[BulkFailure]:
        return self._db.iterate(BulkFailure.key((await self.get(caller, id)).id))

    async def cancel(self, caller: Caller, id: str) -> BulkJob:
        """Stop a job, and take back what it has added. One that has ended stays as it is."""
        caller.require("edit")
        while (job := await self.get(caller, id)).is_open:
            attempt = Attempt(self._db, job, caller, self._settings)
            try:
                if job.ends is MISSING:
                    await attempt.advance(BulkJob.ends.set("cancelled"), BulkJob.error.set(f"{caller.id} has cancelled it"))
                await self._end_early(attempt)
            except Overtaken:
                continue  # it has gone on meanwhile
            return attempt.job
        return job

    async def work(self, id: str) -> str:
        """Go on with a job for some time. Safe to repeat, to kill anywhere and to run twice at once. Returns what was done.

        `RetryLater` if there is more to do, or if another process does it.
        """
        job = await self._db.get(BulkJob.key.id(id))
        if job is None or job.state == "done":
            return f"nothing to do: the job is {'not there' if job is None else job.state}"
        attempt = Attempt(self._db, job, await self._actors.now(job.actor), self._settings)
        if not job.is_open:
            await self._adding.take_back(attempt)  # an attempt may have added to it while it was cancelled
            return f"nothing to do: the job is {job.state}"
        try:
            await self._work(attempt)
        except Overtaken:
            raise RetryLater(after=OTHERS_TURN, reason="another process works on it") from None
        counts = attempt.job.counts
        return f"{attempt.job.state}: {counts.changes} changes, {counts.failed} lines refused"

    async def sweep(self) -> int:
        """Begin again what the engine has lost, and end what it has given up. Returns how many jobs that were.

        A job that fails is raised after all others had their turn.
        """
        found, failed = 0, None
        async for listed in self._db.iterate(BulkJob.open()):
            job = await self._db.get(listed.key)
            if job is None or not job.is_open:
                continue
            try:
                found += await self._revive(job)
            except Exception as error:
                failed = error
        if failed is not None:
            raise failed
        return found

    async def _work(self, attempt: Attempt) -> None:
        if attempt.job.ends is not MISSING:
            await self._end_early(attempt)
            return
        try:
            attempt.caller.require("edit")
            if attempt.job.state == "checking":
                await self._checking.go_on(attempt)
            if attempt.job.state == "adding":
                await self._adding.go_on(attempt)
        except PricebookError as error:
            await attempt.advance(BulkJob.ends.set("failed"), BulkJob.error.set(str(error)))
            await attempt.at_point("bulk.failing")
            await self._end_early(attempt)
        else:
            failed = await attempt.count_refused()
            await attempt.advance(BulkJob.state.set("done"), BulkJob.counts[BulkCounts.failed].set(failed))
            await attempt.at_point("bulk.done")
            await self._forget(attempt.job)

    async def _end_early(self, attempt: Attempt) -> None:
        """Take back what a job has added, and end it."""
        assert attempt.job.ends is not MISSING
        await self._adding.take_back(attempt)
        await attempt.at_point("bulk.taken_back")
        await attempt.advance(BulkJob.state.set(attempt.job.ends))
        await attempt.at_point("bulk.ended")
        await self._forget(attempt.job)

    async def _forget(self, job: BulkJob) -> None:
        """Delete the upload, which nobody needs any more. What a killed process leaves expires."""
        await self._runs.delete(job)
        await self._uploads.delete(job.upload)

    async def _earlier(self, job: BulkJob) -> BulkJob:
        """Return the job that has the same idempotency key, if it is the same."""
        found = await self._db.get(job.key)
        if found is None:
            raise NotAllowed("it could not be started: send it again")
        if found.upload.id == job.upload.id:
            return found
        await self._uploads.delete(job.upload)
        if (found.upload.digest, found.options) != (job.upload.digest, job.options):
            reason = f"was used on {found.created_at:%Y-%m-%d at %H:%M UTC} for other content or other options: use another one"
            raise NotAllowed(f"the idempotency key {reason}")
        return found

    async def _revive(self, job: BulkJob) -> bool:
        if await self._t.schedules.get(OWNER, _fire(job)) is None:
            return await self._send_again(job)
        if (await self._t.fires.list(state="dead", owner=OWNER, key=_fire(job), limit=1)).items:
            return await self._give_up(job)
        return False

    async def _send_again(self, job: BulkJob) -> bool:
        number = job.fires + 1
        try:
            async with self._db.transaction() as tx:
                tx.update(job.key, BulkJob.fires.set(number), when=unmoved(job) & (BulkJob.fires == job.fires))
                again = _fire(job, number)
                await self._t.send(OWNER, again, PythonTarget(BULK), {"id": job.id}, policy=POLICY, using=tx)
        except (ConditionFailed, TransactionConflict):
            return False
        return True

    async def _give_up(self, job: BulkJob) -> bool:
        attempt = Attempt(self._db, job, await self._actors.now(job.actor), self._settings)
        reason = f"it failed again and again: see the history of {OWNER}/{_fire(job)}"
        try:
            await attempt.advance(BulkJob.ends.set("failed"), BulkJob.error.set(reason))
            await self._end_early(attempt)
        except Overtaken:
            return False
        return True

    def _now(self) -> datetime:
        return whole_milliseconds(utc_now(self._t))


def _fire(job: BulkJob, number: int | None = None) -> str:
    return f"bulk/{job.upload.id}/{job.fires if number is None else number}"


def _by_instant(job: BulkJob) -> tuple[datetime, str]:
    return job.created_at, job.id


def _by_line(failure: BulkFailure) -> tuple[int]:
    return (failure.line,)


def _job_id(caller: Caller, options: BulkOptions) -> str:
    """Return a new id, or the one of an idempotency key, which is the caller's own."""
    if not options.idempotency_key:
        return secrets.token_hex(16)
    return hashlib.blake2b(f"{caller.id}\0{options.idempotency_key}".encode(), digest_size=16).hexdigest()


def _may_see(caller: Caller, job: BulkJob) -> bool:
    return caller.id == job.actor.id or all(caller.may_see(prefix) for prefix in job.actor.stores)


def _check(options: BulkOptions) -> None:
    """Refuse options before anything is uploaded."""
    if options.format not in ("csv", "ndjson"):
        raise InvalidField("format", f"{options.format[:40]!r} is unknown: use csv or ndjson")
    if len(options.idempotency_key) > MAX_IDEMPOTENCY_KEY:
        raise InvalidField("idempotency_key", f"is longer than {MAX_IDEMPOTENCY_KEY} characters: use a shorter one")
    if options.currency:
        Money(0, options.currency)
    new_change_set(options)
