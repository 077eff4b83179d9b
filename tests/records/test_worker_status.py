"""Who works on a store, as many as there are."""

from __future__ import annotations

import asyncio

import pytest

import tickler.records.worker_status as module
from tickler import ManualClock, connect
from tickler.records.kinds import WORKER
from tickler.records.worker_status import TICK, WorkerReport, report, report_tick, workers

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z


@pytest.mark.parametrize("number", [0, 1, 4, 5, 6, 11])
async def test_all_are_listed_by_name_however_many_there_are(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 5)
    names = [f"w{n:02}" for n in range(number)]
    async with connect("memory://", clock=ManualClock(NOW_MS)) as t:
        for name in names:
            await report(t.store.records, WorkerReport(name=name, doing="working", started_at=NOW_MS, seen_at=NOW_MS))
        assert [worker.name for worker in await workers(t.store.records, NOW_MS)] == names


async def test_one_that_works_is_seen_behind_a_thousand_that_do_not() -> None:
    async with connect("memory://", clock=ManualClock(NOW_MS)) as t:
        for name, doing in [*((f"a{n:04}", "stopped") for n in range(1_440)), ("worker", "working")]:
            await report(t.store.records, WorkerReport(name=name, doing=doing, started_at=NOW_MS, seen_at=NOW_MS))
        assert len(await t.store.records.list(WORKER, now_ms=NOW_MS, limit=2_000)) == 1_441
        assert [worker.name for worker in await t.workers() if worker.is_alive(NOW_MS)] == ["worker"]


async def test_ticks_that_end_together_leave_the_latest_claim(sqlite_url: str) -> None:
    def tick(number: int) -> WorkerReport:
        claimed_at = NOW_MS + number if number % 2 else None
        return WorkerReport(name=f"t{number}", doing="stopped", started_at=NOW_MS, seen_at=NOW_MS, last_claim_at=claimed_at)

    async with connect(sqlite_url, clock=ManualClock(NOW_MS)) as t:
        await asyncio.gather(*(report_tick(t.store.records, tick(number)) for number in range(8)))
        assert [(worker.name, worker.last_claim_at) for worker in await t.workers()] == [(TICK, NOW_MS + 7)]
