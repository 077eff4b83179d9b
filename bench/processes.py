"""Several processes on one PostgreSQL, compared with one: how fast four claim, and the processor time of two that deliver."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg

from measure import Result, Stopwatch, pairs
from postgres import bench_server
from postgres_server import PostgresServer
from sink import SinkProcess
from tickler import Cron, ManualClock, Schedule, connect, new_secret
from tickler.testing.claimers import Claimers
from workload import NOW_MS, due_rows

ROWS = 60_000
BATCH = 500
PAIRS = 7
FIRES = 8_000
DELIVERING_PAIRS = 5
HOUR_MS = 3_600_000
WORKER = Path(__file__).with_name("delivering_worker.py")


async def run(say: Callable[[str], None]) -> list[Result]:
    return [*await _claiming(say), *await _delivering(say)]


async def _claiming(say: Callable[[str], None]) -> list[Result]:
    say(f"PostgreSQL: four processes and one, over {ROWS:,} due rows")
    with bench_server() as server:
        rows = due_rows(ROWS)
        async with connect(server.url("many")) as tickler:
            await tickler.index.upsert_many(rows)
        raw = await asyncpg.connect(server.dsn)
        await raw.execute("CREATE TABLE many.fresh AS SELECT * FROM many.tickler_index")

        async def four() -> float:
            return await _drain(server, raw, 4)

        async def one() -> float:
            return await _drain(server, raw, 1)

        mine, other, ratio = await pairs(four, one, PAIRS)
        await raw.close()
    return [
        Result(
            "PostgreSQL: four processes", f"{ROWS / mine:,.0f}/s", f"{ROWS / other:,.0f}/s", "one process", ratio, 1.0
        )
    ]  # fmt: skip


async def _drain(server: PostgresServer, raw: asyncpg.Connection, number: int) -> float:
    """Run once to warm up, since each process parses the expressions first, and once measured."""
    async with Claimers(server.url("many")) as claimers:
        await claimers.start(number, NOW_MS, BATCH)
        watch = Stopwatch()
        for _ in range(2):
            await raw.execute("TRUNCATE many.tickler_index; INSERT INTO many.tickler_index SELECT * FROM many.fresh")
            await raw.execute("VACUUM ANALYZE many.tickler_index")
            with watch:
                claimers.go()
                await claimers.settle()
        returned = await claimers.finish()
    assert len(returned) == ROWS, "every row"
    assert set(returned.values()) == {2}, "once a round"
    return watch.seconds


async def _delivering(say: Callable[[str], None]) -> list[Result]:
    say(f"PostgreSQL: {FIRES:,} deliveries by two processes and by one")
    os.environ.setdefault("TICKLER_SIGNING_SECRET", new_secret())
    now_ms = NOW_MS
    with bench_server() as server, SinkProcess() as sink:
        url = server.url("delivering")
        async with connect(url, clock=ManualClock(NOW_MS)) as tickler:
            await tickler.schedules.put_many(
                Schedule(owner=f"user-{n % 500}", key=f"digest-{n}", when=Cron("0 * * * *"), target=sink.url, payload={"n": n})
                for n in range(FIRES)
            )
        async with AsyncExitStack() as stack:
            workers = [await stack.enter_async_context(_worker(url)) for _ in range(2)]

            async def seconds(number: int) -> float:
                """Return the processor time of so many workers that deliver everything once."""
                nonlocal now_ms
                now_ms += HOUR_MS
                for worker in workers[:number]:
                    _tell(worker, str(now_ms))
                arrived = 0
                while arrived < FIRES:
                    await asyncio.sleep(0.05)
                    arrived += len(sink.arrived())
                for worker in workers[:number]:
                    _tell(worker, "stop")
                return sum([float(await _line(worker)) for worker in workers[:number]])

            async def one() -> float:
                return await seconds(1)

            async def two() -> float:
                return await seconds(2)

            await two(), await one()  # warm up
            mine, other, ratio = await pairs(two, one, DELIVERING_PAIRS)
    name, times = (
        "PostgreSQL: processor time a delivery, two processes",
        [f"{each / FIRES * 1e6:.0f} µs" for each in (mine, other)],
    )
    return [Result(name, times[0], times[1], "one process", 1 / ratio, 1.15, at_most=True)]


@asynccontextmanager
async def _worker(url: str) -> AsyncIterator[Process]:
    pipe = asyncio.subprocess.PIPE
    worker = await asyncio.create_subprocess_exec(sys.executable, str(WORKER), url, str(NOW_MS), stdin=pipe, stdout=pipe)
    try:
        await _line(worker)
        yield worker
    finally:
        assert worker.stdin is not None
        worker.stdin.close()
        await worker.wait()


def _tell(worker: Process, line: str) -> None:
    assert worker.stdin is not None
    worker.stdin.write(f"{line}\n".encode())


async def _line(worker: Process) -> str:
    assert worker.stdout is not None
    line = await worker.stdout.readline()
    assert line, "the worker ended"
    return line.decode().strip()
