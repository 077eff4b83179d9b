"""A process that is killed at any point of an import: another one goes on, and what comes of it is the same."""

from __future__ import annotations

from typing import Any

import pytest

from imports import Imports
from killed_import import IMPORTED_AT, SCENARIOS, go_on, opened_at
from killed_process import answer_of
from pricebook.model import BulkJob, ChangeLine, ChangeSet, ChangeStore
from tickler import ManualClock

MAX_ATTEMPTS = 400
AT_LEAST = {"submitted": 20, "all or nothing": 8, "cancelled": 12}


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_an_import_that_is_killed_at_any_point_ends_as_if_it_were_not(
    stored_url: str, scenario: str, soak: bool, clock: ManualClock
) -> None:
    if scenario != "submitted" and not soak:
        pytest.skip("the other scenarios: make soak")
    async with opened_at(stored_url, clock) as imports:
        await imports.stores({"1": {f"P{n}": 100 + n for n in range(20)}})
        clock.set(IMPORTED_AT)
        attempts = await answer_of("killed_import", stored_url, scenario, "writes" if soak else "")
        assert AT_LEAST[scenario] < attempts < MAX_ATTEMPTS
        expected = await _state(imports, await go_on(imports, scenario, f"{scenario} {attempts}"))  # it was not killed
        for number in range(1, attempts):
            job = await go_on(imports, scenario, f"{scenario} {number}")
            assert await _state(imports, job) == expected, f"after a kill at step {number}"
        jobs = await imports.db.count(BulkJob.all())
        drafts = [each async for each in imports.db.iterate(ChangeSet.open())]
        assert jobs == attempts
        assert len(drafts) == (attempts if scenario == "submitted" else 0)


async def _state(imports: Imports, job: BulkJob) -> Any:
    """Return what became of a job: its counts, its failures, and its change set. How far one came that ended early may differ."""
    change_set = await imports.change_set(job)
    found: list[Any] = [job.state, job.error, await imports.failures(job.id)]
    found += [job.checked, job.added, job.counts] if job.state == "done" else []
    if change_set is None:
        return [*found, None]
    found += [change_set.state, change_set.lines, change_set.stores, change_set.scope]
    if job.state == "done":
        lines = [each async for each in imports.db.iterate(ChangeLine.key(change_set.id, "1"))]
        found += [(line.product, line.amount) for line in lines]
        found += [(each.store, each.state) async for each in imports.db.iterate(ChangeStore.key(change_set.id))]
    return found
