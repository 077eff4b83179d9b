"""50,000 fires due in one second: time to drain, order within each owner, and memory growth, in a separate process."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent))
from measure import Result, Stopwatch
from postgres import bench_server
from sink import SinkProcess
from tickler import At, ManualClock, RunOptions, Schedule, connect
from tickler.clock import to_datetime
from tickler.model.fire import fire_id
from workload import NOW_MS

FIRES = 50_000
OWNERS = 500
MOST_MB = 150


class Drained(msgspec.Struct):
    seconds: float
    grown_mb: float


async def run(say: Callable[[str], None]) -> list[Result]:
    results = []
    with bench_server() as server, tempfile.TemporaryDirectory() as folder:
        for store, url in {"PostgreSQL": server.url("flood"), "SQLite": f"sqlite:///{folder}/flood.db"}.items():
            say(f"{store}: {FIRES:,} due in one second")
            with SinkProcess() as sink:
                await _load(url, sink.url)
                process = await asyncio.create_subprocess_exec(sys.executable, __file__, url, stdout=PIPE)
                output, _ = await process.communicate()
                drained = msgspec.json.decode(output, type=Drained)
                _check(sink)
            results.append(
                Result(
                    f"{store}: {FIRES:,} due in one second",
                    f"{FIRES / drained.seconds:,.0f}/s",
                    f"{drained.grown_mb:.0f} MB",
                    "memory it grew by; ratio: to 150 MB",
                    drained.grown_mb / MOST_MB,
                    1.0,
                    at_most=True,
                )
            )
    return results


async def _load(url: str, target: str) -> None:
    async with connect(url, clock=ManualClock(NOW_MS)) as tickler:
        await tickler.schedules.put_many(
            Schedule(owner=f"u{n % OWNERS}", key=f"k{n}", when=At(to_datetime(_nominal(n)).isoformat()), target=target,
                     payload={"text": "x" * 500}, delete_after=False)
            for n in range(FIRES)
        )  # fmt: skip


def _nominal(n: int) -> int:
    return NOW_MS + 60_000 + n * 1000 // FIRES


def _check(sink: SinkProcess) -> None:
    """Check that all fires arrived once, in order within an owner, except those that were in flight together."""
    arrived = sink.arrived()
    ids = {fire_id(f"u{n % OWNERS}", f"k{n}", _nominal(n)): n for n in range(FIRES)}
    order = [ids[id] for id, _, _ in arrived]
    assert sorted(order) == list(range(FIRES)), "each arrives once"
    latest: dict[int, int] = defaultdict(int)
    for n in order:
        owner = n % OWNERS
        assert _nominal(n) >= latest[owner], "nominal order within each owner"
        latest[owner] = _nominal(n)


async def drained(url: str) -> Drained:
    clock = ManualClock(NOW_MS)
    dispatched = 0
    done = asyncio.Event()
    async with connect(url, clock=clock, allow_networks=("127.0.0.0/8",)) as tickler:

        @tickler.on_dispatch
        def count(delivery: object, outcome: object) -> None:
            nonlocal dispatched
            dispatched += 1
            if dispatched == FIRES:
                done.set()

        before = _memory_mb("VmRSS")
        clock.advance(timedelta(seconds=62))
        with Stopwatch() as watch:
            running = asyncio.create_task(tickler.run(RunOptions(per_owner=1, per_host=100)))
            await done.wait()
            tickler.stop()
            await running
    return Drained(watch.seconds, _memory_mb("VmHWM") - before)


def _memory_mb(what: str) -> float:
    """Return the present or the peak resident memory."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    os.environ.setdefault("TICKLER_SIGNING_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    sys.stdout.write(msgspec.json.encode(asyncio.run(drained(sys.argv[1]))).decode())
