"""Imports take as much memory for a large file as for a small one."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from importing_process import made
from imports import ADA, Imports
from killed_process import answer_of
from pricebook.app import Settings, open_pricebook
from pricebook.bulk import BulkLimits
from pricebook.model import BulkOptions

LIMITS = BulkLimits(batch=50, checkpoint=200, added=100, chunk=5_000)
MEGABYTE = 1_000_000


async def test_a_file_three_times_as_large_takes_no_more_memory(tmp_path: Path) -> None:
    async with open_pricebook(Settings(store=f"sqlite:///{tmp_path / 'prices.db'}")) as opened:
        imports = Imports(opened, LIMITS)
        for store in range(10):
            await opened.switch.open_store(str(store))
        await _peak(imports, 100)  # what is made once
        small, large = await _peak(imports, 300), await _peak(imports, 900)
    assert large < 1.15 * small
    assert large < 2 * MEGABYTE


async def test_a_process_that_imports_200_000_lines_takes_hardly_more_than_for_20_000(tmp_path: Path, soak: bool) -> None:
    if not soak:
        pytest.skip("200,000 lines: make soak")
    urls = {lines: f"sqlite:///{tmp_path / str(lines)}.db?cache_mb=8" for lines in (20_000, 200_000)}
    small, large = [await answer_of("importing_process", url, lines) for lines, url in urls.items()]
    assert large - small < 25 * MEGABYTE, (small, large)


async def _peak(imports: Imports, lines: int) -> int:
    """Return the most bytes that were in use while a file was uploaded and imported."""
    tracemalloc.start()
    try:
        job = await imports.jobs.start(ADA, BulkOptions(format="csv"), made(lines))
        await imports.work(job.id)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (await imports.get(job.id)).counts.failed == 2 * (lines // 10)
    return peak
