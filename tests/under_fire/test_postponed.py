"""Workers that are killed while their targets postpone: nothing owed is lost, nothing is begun twice, no attempt is made up."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tickler import At, Policy, PythonTarget, Schedule, Tickler, connect
from tickler.clock import to_datetime
from tickler.fires import Entry
from tickler.model.fire import fire_id
from under_fire.handlers import POSTPONED_MS
from under_fire.load import SOON_MS, Delivery, nothing_is_owed
from under_fire.processes import end, ended, start, until

NUMBER = 60  # of each kind


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def url(request: pytest.FixtureRequest, soak: bool) -> str:
    if not soak:
        pytest.skip("takes half a minute: TICKLER_SOAK=1")
    return str(request.getfixturevalue(f"{request.param}_url"))


async def test_killed_workers_neither_lose_what_is_postponed_nor_begin_it_twice(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("UNDER_FIRE_LOG", str(log))
    command = ("-m", "tickler", "work", "--store", url, "--setup", "under_fire.handlers:postponing", "--lease", "5")
    async with connect(url) as tickler:
        begins_at = tickler.now_ms() + 2 * SOON_MS
        least = await _put(tickler, "at-least-once", begins_at)
        most = await _put(tickler, "at-most-once", begins_at)
        living = [await start(*command) for _ in range(3)]
        try:
            await until("a worker makes an attempt", lambda: log.exists())
            while tickler.now_ms() < begins_at + POSTPONED_MS:
                before = log.stat().st_size
                await asyncio.sleep(0.5 + random.random() / 2)
                if log.stat().st_size > before:  # or the workers have not begun yet
                    await end(living.pop(random.randrange(len(living))))
                    living.append(await start(*command))
            await until("nothing is owed", lambda: nothing_is_owed(tickler), within_s=150)
        finally:
            for process in living:
                process.terminate()
            for process in living:
                await ended(process)
        entries: defaultdict[str, list[Entry]] = defaultdict(list)
        for key in (*least, *most):
            for entry in (await tickler.fires.history("u1", key)).items[::-1]:
                entries[key].append(entry)

    begun = Counter(line.split()[1] for line in log.read_text().splitlines() if line.startswith("begun"))
    for key, id in least.items():
        happened = [entry.happened for entry in entries[key]]
        assert happened.count("delivered") == 1, (key, happened)
        (delivered,) = [entry for entry in entries[key] if entry.happened == "delivered"]
        assert delivered.attempt == 1 + happened.count("expired") + happened.count("failed"), (key, happened)
        assert begun[id] >= 1
    for key, id in most.items():
        assert begun[id] <= 1, (key, entries[key])
        ends = [entry.happened for entry in entries[key] if entry.happened != "postponed"]
        assert len(ends) <= 1, (key, ends)
    everything = Counter(entry.happened for each in entries.values() for entry in each)
    assert everything["postponed"] > NUMBER
    assert everything["expired"] > 0, "no worker was killed at work"


async def _put(tickler: Tickler, delivery: Delivery, begins_at: int) -> dict[str, str]:
    """Put one-shots, and return the ids of their fires by key."""
    policy = Policy(delivery=delivery, attempts=20, timeout=5, backoff=[0.2])
    due = {f"{delivery}-{n:03}": begins_at + n * 1_000 // NUMBER for n in range(NUMBER)}
    schedules = [
        Schedule(owner="u1", key=key, when=At(to_datetime(at)), target=PythonTarget("early"), policy=policy)
        for key, at in due.items()
    ]
    await tickler.schedules.put_many(schedules)
    return {key: fire_id("u1", key, at) for key, at in due.items()}
