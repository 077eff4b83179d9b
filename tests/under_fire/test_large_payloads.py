"""One owner's large payloads do not fill a worker's memory. At full size, in `make soak`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tickler import At, ManualClock, PythonTarget, Schedule, Target, Tickler, connect
from tickler.clock import to_datetime
from under_fire.accounts import RecordProperty, tell
from under_fire.load import nothing_is_owed
from under_fire.processes import end, start, until
from under_fire.sink import Sink

pytestmark = pytest.mark.skipif(os.environ.get("TICKLER_SOAK") != "1", reason="an attack at full size: make soak")

HOUR_MS = 3_600_000
NUMBER = 300
TOGETHER = 10
MAX_MB = 300
BYTES = 255 * 1024
LISTS: list[object] = [[] for _ in range(BYTES // 3)]


def nested(levels: int) -> list[object]:
    return [nested(levels - 1)] if levels else []


PAYLOADS = {"lists": LISTS, "nested lists": [nested(97) for _ in range(BYTES // 197)], "text": "\U0001f600" + "x" * BYTES}


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("kind", ["python", "http"])
async def test_a_worker_that_meets_many_large_payloads_stays_small(
    url: str, kind: str, payload: object, record_property: RecordProperty
) -> None:
    async with connect(url) as tickler, Sink() as sink:
        target = PythonTarget("look") if kind == "python" else sink.hook(takes_ms=100)
        await put_overdue(url, tickler, target, payload)
        process = await start("-m", "tickler", "work", "--store", url, "--setup", "under_fire.handlers:looking", piped=False)
        try:
            began = time.monotonic()
            await until("all of them are delivered", lambda: nothing_is_owed(tickler), within_s=600)
            seconds = time.monotonic() - began
            peak_mb = most_mb(process.pid)
        finally:
            await end(process)
        tell(record_property, {f"{kind} peak MB": peak_mb, f"{kind} ms": round(seconds * 1000)})
        assert (await tickler.fires.list(state="dead")).items == []
        assert peak_mb < MAX_MB


async def put_overdue(url: str, now: Tickler, target: Target | str, payload: object) -> None:
    async with connect(url, clock=ManualClock(now.now_ms() - HOUR_MS)) as before:
        at = At(to_datetime(now.now_ms() - 60_000))
        first = Schedule(owner="flood", key="k00000", when=at, target=target, payload=payload)
        await before.schedules.put(first)
        stored = await before.schedules.get(*first.id)
        assert stored is not None
        declared = [replace(stored.declared(), key=f"k{n:05}") for n in range(1, NUMBER)]  # which nobody decodes
        for start_at in range(0, NUMBER, TOGETHER):
            await before.schedules.put_many(declared[start_at : start_at + TOGETHER])


def most_mb(pid: int) -> int:
    """The most that a process has had in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024
