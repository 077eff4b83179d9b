"""Processor share of an idle worker over 100,000 sleeping schedules, in a separate process."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path

from measure import Result
from postgres import bench_server
from tickler import Cron, Schedule, connect

SLEEPING = 100_000
SECONDS = 20
MOST = 0.01


async def run(say: Callable[[str], None]) -> list[Result]:
    with bench_server() as server, tempfile.TemporaryDirectory() as folder:
        urls = {"PostgreSQL": server.url("idle"), "SQLite": f"sqlite:///{folder}/idle.db"}
        return [await _idle(store, url, say) for store, url in urls.items()]


async def _idle(store: str, url: str, say: Callable[[str], None]) -> Result:
    say(f"{store}: an idle runner over {SLEEPING:,} sleeping schedules, for {SECONDS} s")
    async with connect(url) as tickler:
        await tickler.schedules.put_many(
            Schedule(owner=f"u{n}", key="yearly", when=Cron("0 0 1 1 *"), target="https://example.org/") for n in range(SLEEPING)
        )
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, url, stdout=PIPE)
    output, _ = await process.communicate()
    share = float(output)
    return Result(f"{store}: an idle runner", f"{share:.2%}", "100%", "a core; ratio: its share", share, MOST, at_most=True)


async def measured(url: str) -> float:
    async with connect(url) as tickler:
        running = asyncio.create_task(tickler.run())
        await asyncio.sleep(3)
        used = time.process_time()
        await asyncio.sleep(SECONDS)
        used = time.process_time() - used
        tickler.stop()
        await running
    return used / SECONDS


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.stdout.write(f"{asyncio.run(measured(sys.argv[1]))}\n")
