"""Jobs that go on: slice by slice, after other processes, beside them, and after the engine has lost or given up their fires."""

from __future__ import annotations

import itertools

import pytest

from imports import ADA, SMALL, Imports, csv_of
from pricebook.access.caller import Caller
from pricebook.app import Pricebook
from pricebook.bulk import BulkLimits
from pricebook.change_sets import ChangeSets
from pricebook.errors import NotAllowed
from pricebook.identifiers import OWNER
from pricebook.model import BulkCounts, BulkJob, ChangeSet
from tickler import ManualClock, RetryLater
from tickler.table import evolve

CONTENT = csv_of([f"1,P{n},5.{n:02},EUR" for n in range(20)])
ADDED = {f"1/ALL/P{n}": 500 + n for n in range(20)}


def in_slices(opened: Pricebook, **given: object) -> Imports:
    """Return imports whose every attempt is over as soon as it was asked whether it is."""
    hours = itertools.count()
    return Imports(opened, seconds=lambda: next(hours) * 3_600.0, **given)  # type: ignore[arg-type]


class Stopped(BaseException):
    """The process ends here."""


def stopping_at(name: str, number: int = 1) -> object:
    """Return what ends the process when a point is reached for the nth time."""
    left = itertools.count(number - 1, -1)

    async def at_point(reached: str) -> None:
        if reached == name and next(left) == 0:
            raise Stopped

    return at_point


async def test_an_import_on_each_store_is_the_same(opened_anywhere: Pricebook) -> None:
    imports = Imports(opened_anywhere)
    await imports.stores({"1": {f"P{n}": 100 + n for n in range(8)}, "2": {"P1": 100}})
    lines = [
        *(f"1,P{n},{(100 + n) / 100 if n < 4 else 9},EUR" for n in range(8)),
        "2,P1,3,EUR",
        "1,P1,7,EUR",
        "3,P1,7,EUR",
        "1,é%,4,EUR",
    ]
    job = await imports.start(csv_of(lines), submit=True, idempotency_key="one")
    await opened_anywhere.t.tick()  # the engine has it, and finds its own limits
    job = await imports.get(job.id)
    assert (job.state, job.error) == ("done", "")
    assert job.counts == BulkCounts(changes=6, unchanged=3, failed=3)
    assert await imports.pairs(job.id) == {(3, 11), (11, 3)}
    expected = {f"1/ALL/P{n}": 900 for n in range(4, 8)} | {"2/ALL/P1": 300, "1/ALL/é%": 400}
    assert await imports.lines(job, "1", "2") == expected
    again = await imports.run(csv_of(lines), submit=True)
    assert (await imports.lines(again, "1", "2"), again.counts) == (expected, job.counts)
    assert await imports.pairs(again.id) == await imports.pairs(job.id)
    change_set = await imports.change_set(again)
    assert change_set is not None
    assert (change_set.state, change_set.lines) == ("submitted", 6)
    assert (await imports.start(csv_of(lines), submit=True, idempotency_key="one")).id == job.id


async def test_a_job_is_done_in_slices_and_tells_how_far_it_is(opened: Pricebook) -> None:
    imports = in_slices(opened)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)
    seen = []
    while True:
        try:
            await imports.jobs.work(job.id)
        except RetryLater:
            found = await imports.get(job.id)
            seen.append((found.state, found.checked, found.added, found.counts.changes))
        else:
            break
    assert seen == [
        *(("checking", 3 * n, 0, 0) for n in range(1, 8)),
        *(("adding", 21, 3 * n, 3 * n - 1) for n in range(1, 8)),
    ]
    assert await imports.lines(await imports.get(job.id)) == ADDED


async def test_a_slice_never_ends_within_a_record_of_several_lines(opened: Pricebook) -> None:
    imports = in_slices(opened, limits=BulkLimits(batch=1))
    await imports.stores({"1": {}})
    job = await imports.start(csv_of([f'1,"two\r\nlines {n}",5,EUR' for n in range(5)]))
    assert await imports.work(job.id) > 10
    assert (await imports.get(job.id)).counts == BulkCounts(changes=5)


async def test_a_run_that_was_kept_twice_has_no_duplicates_of_its_own(opened: Pricebook) -> None:
    """The second time it is shorter, because the attempt is over earlier."""
    imports = Imports(opened)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)
    with pytest.raises(Stopped):
        await Imports(opened, SMALL, stopping_at("bulk.run_kept")).jobs.work(job.id)  # type: ignore[arg-type]
    await in_slices(opened, limits=BulkLimits(batch=2)).work(job.id)
    assert (await imports.get(job.id)).counts == BulkCounts(changes=20)


async def test_the_engine_calls_until_a_job_is_done(
    opened: Pricebook, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = in_slices(opened)
    monkeypatch.setattr(opened.bulk, "work", imports.jobs.work)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)
    for _ in range(20):
        await opened.t.tick()
        clock.advance(1)
    assert (await imports.get(job.id)).state == "done"
    (delivered, *_) = (await opened.t.fires.history(OWNER, f"bulk/{job.upload.id}/1")).items
    assert delivered.happened == "delivered"
    assert await opened.t.schedules.get(OWNER, f"bulk/{job.upload.id}/1") is None


@pytest.mark.parametrize("point", ["bulk.checkpoint", "bulk.named", "bulk.created", "bulk.put", "bulk.added"])
async def test_of_two_that_work_at_once_one_stops_and_each_line_is_added_once(opened: Pricebook, point: str) -> None:
    """One pauses at a point while the other does all the work."""
    other = Imports(opened)
    await other.stores({"1": {}})
    paused = False

    async def pause(reached: str) -> None:
        nonlocal paused
        if reached == point and not paused:
            paused = True
            await other.work(job.id)

    one = Imports(opened, SMALL, pause)
    job = await other.start(CONTENT, submit=True)
    with pytest.raises(RetryLater, match="another process works on it"):
        await one.jobs.work(job.id)
    found = await one.get(job.id)
    assert (found.state, found.counts) == ("done", BulkCounts(changes=20))
    assert await one.lines(found) == ADDED
    change_set = await one.change_set(found)
    assert change_set is not None
    assert (change_set.state, change_set.lines) == ("submitted", 20)
    assert await one.jobs.work(job.id) == "nothing to do: the job is done"


@pytest.mark.parametrize("point", ["bulk.refused", "bulk.all_checked", "bulk.named", "bulk.created", "bulk.put", "bulk.added"])
async def test_a_job_that_is_cancelled_while_it_is_worked_on_leaves_no_change_set_open(opened: Pricebook, point: str) -> None:
    cancelled: list[BulkJob] = []

    async def cancel(reached: str) -> None:
        if reached == point and not cancelled:
            cancelled.append(await imports.jobs.cancel(ADA, job.id))

    imports = Imports(opened, SMALL, cancel)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)
    await imports.work(job.id)
    assert cancelled[0].state == (await imports.get(job.id)).state == "cancelled"
    assert [each async for each in imports.db.iterate(ChangeSet.open())] == []


async def test_a_cancel_that_was_interrupted_is_finished_by_whoever_works_on_the_job(opened: Pricebook) -> None:
    imports = in_slices(opened)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)
    while not (await imports.get(job.id)).added:
        with pytest.raises(RetryLater):
            await imports.jobs.work(job.id)
    for point in ("bulk.taken_back", "bulk.ended"):
        with pytest.raises(Stopped):
            await Imports(opened, SMALL, stopping_at(point)).jobs.cancel(ADA, job.id)  # type: ignore[arg-type]
    assert (await imports.get(job.id)).state == "cancelled"
    assert [each async for each in imports.db.iterate(ChangeSet.open())] == []


async def test_a_change_set_that_somebody_cancels_fails_its_job(opened: Pricebook) -> None:
    async def cancel(reached: str) -> None:
        if reached == "bulk.added":
            found = await imports.get(job.id)
            change_set = await imports.change_set(found)
            if change_set is not None and change_set.state == "draft":
                await opened.change_sets.cancel(ADA, change_set.id)

    imports = Imports(opened, SMALL, cancel)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)
    await imports.work(job.id)
    found = await imports.get(job.id)
    assert found.state == "failed"
    assert "cancelled" in found.error


async def test_of_two_that_submit_at_once_none_fails_the_job(opened: Pricebook, monkeypatch: pytest.MonkeyPatch) -> None:
    imports = Imports(opened)
    await imports.stores({"1": {}})
    submit = ChangeSets.submit

    async def late(self: ChangeSets, caller: Caller, id: str, **options: object) -> ChangeSet:
        await submit(self, caller, id)  # the other one
        return await submit(self, caller, id)

    monkeypatch.setattr(ChangeSets, "submit", late)
    job = await imports.run(CONTENT, submit=True)
    change_set = await imports.change_set(job)
    assert change_set is not None
    assert (job.state, job.error, change_set.state) == ("done", "", "submitted")


@pytest.mark.parametrize("left", [{"roles": {"read"}}, {"stores": ["9"]}])
async def test_what_is_added_for_somebody_who_may_do_less_meanwhile_is_taken_back(
    opened: Pricebook, left: dict[str, object]
) -> None:
    bea = await opened.people.create("Bea", ["read", "edit"])
    stopping = Imports(opened, at_point=stopping_at("bulk.added"))  # type: ignore[arg-type]
    await stopping.stores({"1": {}})
    job = await stopping.start(CONTENT, caller=bea.caller, all_or_nothing=True)
    with pytest.raises(Stopped):
        await stopping.jobs.work(job.id)
    await opened.db.put(evolve(bea, **left))
    imports = Imports(opened)
    await imports.work(job.id)
    job = await imports.get(job.id)
    change_set = await imports.change_set(job)
    assert change_set is not None
    assert (job.state, change_set.state) == ("failed", "cancelled")


async def test_a_sweep_begins_again_what_the_engine_has_lost(opened: Pricebook) -> None:
    imports = Imports(opened)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)
    assert await imports.jobs.sweep() == 0
    await opened.t.schedules.delete(OWNER, f"bulk/{job.upload.id}/1")
    assert [await imports.jobs.sweep(), await imports.jobs.sweep()] == [1, 0]
    assert (await imports.get(job.id)).fires == 2
    await opened.t.tick()
    assert (await imports.get(job.id)).state == "done"
    assert await imports.jobs.sweep() == 0


async def test_a_job_that_a_sweep_cannot_begin_again_holds_up_no_other(
    opened: Pricebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = Imports(opened)
    await imports.stores({"1": {}})
    jobs = [await imports.start(CONTENT) for _ in range(3)]
    for job in jobs:
        await opened.t.schedules.delete(OWNER, f"bulk/{job.upload.id}/1")
    revive, (oldest, *others) = imports.jobs._revive, sorted(jobs, key=lambda job: (job.created_at, job.id))

    async def fail_at_the_first(job: BulkJob) -> bool:
        if job.id == oldest.id:
            raise NotAllowed("it is broken")
        return await revive(job)

    monkeypatch.setattr(imports.jobs, "_revive", fail_at_the_first)
    with pytest.raises(NotAllowed, match="it is broken"):
        await imports.jobs.sweep()
    assert [(await imports.get(job.id)).fires for job in (oldest, *others)] == [1, 2, 2]


async def test_a_sweep_ends_what_the_engine_has_given_up(
    opened: Pricebook, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = Imports(opened)
    await imports.stores({"1": {}})
    job = await imports.start(CONTENT)

    async def broken(_: str) -> str:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(opened.bulk, "work", broken)
    for _ in range(30):
        await opened.t.tick()
        clock.advance(600)
    assert await imports.jobs.sweep() == 1
    found = await imports.get(job.id)
    assert (found.state, found.error) == (
        "failed",
        f"it failed again and again: see the history of pricebook/bulk/{job.upload.id}/1",
    )
    assert await imports.jobs.sweep() == 0
