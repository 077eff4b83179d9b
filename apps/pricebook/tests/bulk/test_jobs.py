"""Imports as jobs: what becomes of each line, with each option."""

from __future__ import annotations

import pytest

from imports import Imports, csv_of
from pricebook.app import Pricebook


@pytest.fixture
async def imports(opened: Pricebook) -> Imports:
    made = Imports(opened)
    await made.stores({"1": {f"P{n}": 100 + n for n in range(20)}, "2": {"P1": 100}})
    return made


async def test_good_lines_are_added_to_one_change_set(imports: Imports) -> None:
    job = await imports.run(csv_of([f"1,P{n},5.{n:02},EUR" for n in range(20)]))
    assert job.state == "done", job.error
    assert (job.counts.changes, job.counts.unchanged, job.counts.kept, job.counts.failed) == (20, 0, 0, 0)
    assert (job.checked, job.added) == (21, 21)
    change_set = await imports.change_set(job)
    assert change_set is not None
    assert (change_set.state, change_set.title, change_set.created_by) == ("draft", "Import", "ada")
    assert await imports.lines(job) == {f"1/ALL/P{n}": 500 + n for n in range(20)}
