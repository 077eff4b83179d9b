"""Deliveries per second with history, compared with a bare aiohttp loop that posts the same bodies; and claims with fires.

`python bench/deliveries.py uvloop` (or asyncio) measures the deliveries on that event loop.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg

from measure import Result, Stopwatch, pairs
from postgres import bench_server
from sink import SinkProcess
from tickler import Cron, ManualClock, Policy, RunOptions, Schedule, Tickler, connect, new_secret
from tickler.database.postgres.pool import BEGIN_CLAIM
from tickler.database.sqlite.connection import PRAGMAS
from tickler.index.advance import ROW_FORMAT
from tickler.model.delivery import Delivery
from tickler.model.fire import MAX_CLAIM_BYTES, fire_id
from tickler.process.event_loop import loop_factory
from tickler.process.gc_tuning import tune_gc
from tickler.stores.postgres import fires as postgres_fires
from tickler.stores.sqlite import fires as sqlite_fires
from tickler.stores.sqlite import index as sqlite_index
from tickler.stores.sqlite.due import SELECT_DUE
from tickler.stores.sqlite.rows import as_json
from tickler.webhooks.envelope import envelope
from workload import NOW_MS, expressions

FIRES = 24_000  # start and stop, about 30 ms, are a fortieth
AT_ONCE = 100
PAIRS = 5
BATCH = 500
CLAIMS = 8
HOUR_MS = 3_600_000
OPTIONS = RunOptions(in_flight=AT_ONCE, per_owner=AT_ONCE, per_host=AT_ONCE)
TARGETS = {"at-most-once": 1.0, "at-least-once": 0.95}  # on uvloop, on which workers run; on asyncio's own loop they are shown
LOOPS = ("uvloop", "asyncio")
POLICIES = {"at-most-once": Policy(delivery="at-most-once"), "at-least-once": Policy()}


async def run(say: Callable[[str], None]) -> list[Result]:
    results: list[Result] = []
    for loop in LOOPS:
        results += await _in_own_process(loop, say)
    with bench_server() as server, tempfile.TemporaryDirectory() as folder:
        say("claims that open fires")
        results.append(await _claims_on_postgres(server.url("ours"), server.url("raw"), server.dsn))
        results.append(await _claims_on_sqlite(Path(folder)))
    return results


async def _in_own_process(loop: str, say: Callable[[str], None]) -> list[Result]:
    """Measure both sides on this event loop, in a process of its own."""
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, loop, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    results: list[Result] = []
    async for line in process.stdout:
        said = json.loads(line)
        if isinstance(said, str):
            say(said)
        else:
            results.append(Result(*said))
    assert await process.wait() == 0
    return results


async def _all_deliveries(loop: str) -> None:
    """Print, as lines of JSON, texts of progress and results."""
    os.environ.setdefault("TICKLER_SIGNING_SECRET", new_secret())
    with bench_server() as server, tempfile.TemporaryDirectory() as folder, SinkProcess() as sink:
        for store, url in (("PostgreSQL", server.url("{}")), ("SQLite", f"sqlite:///{folder}/{{}}.db")):
            for kind in POLICIES:
                _print(f"{store}, {loop}: {FIRES:,} deliveries, {kind}")
                for result in await _deliveries(store, kind, url.format(kind.replace("-", "_")), sink, loop):
                    _print(result)


def _print(said: object) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


async def _deliveries(store: str, kind: str, url: str, sink: SinkProcess, loop: str) -> list[Result]:
    clock = ManualClock(NOW_MS)
    async with connect(url, clock=clock, allow_networks=("127.0.0.0/8",)) as tickler:
        await tickler.schedules.put_many(
            Schedule(owner=f"user-{n % 500}", key=f"digest-{n}", when=Cron("0 * * * *"), target=sink.url, payload={"n": n},
                     policy=POLICIES[kind])
            for n in range(FIRES)
        )  # fmt: skip
        ours, bare = MainThread(_runner(tickler, clock, sink)), MainThread(_bare_loop(sink))
        await ours(), await bare()  # warm up
        usual = gc.get_threshold()
        tune_gc()  # as `tickler work` does; both sides benefit
        for warm in (ours, bare):
            warm.seconds.clear()
        mine, other, ratio = await pairs(ours, bare, PAIRS)
        gc.unfreeze()
        gc.set_threshold(*usual)
    name, beside = f"{store}, {loop}: deliveries, {kind}", f"a bare aiohttp loop on {loop}"
    is_bound = loop == "uvloop"
    busy = statistics.median(a / b for a, b in zip(ours.seconds, bare.seconds, strict=True))
    my_time, their_time = (f"{statistics.median(each.seconds) / FIRES * 1e6:.0f} µs" for each in (ours, bare))
    return [
        Result(name, f"{FIRES / mine:,.0f}/s", f"{FIRES / other:,.0f}/s", beside, ratio, TARGETS[kind] if is_bound else 0),
        Result(f"{name}: time of the main thread", my_time, their_time, beside, busy, 1.0 if is_bound else 0, at_most=is_bound),
    ]


class MainThread:
    """Notes the processor time of the main thread at each call."""

    def __init__(self, measure: Callable[[], Awaitable[float]]) -> None:
        self._measure = measure
        self.seconds: list[float] = []

    async def __call__(self) -> float:
        before = time.thread_time()
        seconds = await self._measure()
        self.seconds.append(time.thread_time() - before)
        return seconds


def _runner(tickler: Tickler, clock: ManualClock, sink: SinkProcess) -> Callable[[], Awaitable[float]]:
    dispatched = 0
    all_dispatched = asyncio.Event()

    @tickler.on_dispatch
    def count(delivery: object, outcome: object) -> None:
        nonlocal dispatched
        dispatched += 1
        if dispatched == FIRES:
            all_dispatched.set()

    async def measure() -> float:
        """Measure from the start of the worker until the last outcome is recorded."""
        nonlocal dispatched
        dispatched = 0
        all_dispatched.clear()
        clock.advance(timedelta(hours=1))
        with Stopwatch() as watch:
            running = asyncio.create_task(tickler.run(OPTIONS))
            await all_dispatched.wait()
            tickler.stop()
            await running
        assert len({id for id, _, _ in sink.arrived()}) == FIRES
        assert not (await tickler.fires.list()).items
        return watch.seconds

    return measure


def _bare_loop(sink: SinkProcess) -> Callable[[], Awaitable[float]]:
    bodies = [
        envelope(
            Delivery(
                id=fire_id("user", f"digest-{n}", NOW_MS),
                owner=f"user-{n % 500}",
                key=f"digest-{n}",
                nominal_at=NOW_MS,
                attempt=1,
                payload={"n": n},
                target=None,
                timeout_s=30,
                started_at=NOW_MS,
            )
        )
        for n in range(FIRES)
    ]

    async def measure() -> float:
        """Measure from the start, like the worker: both open all their connections."""
        left = iter(bodies)

        async def worker(session: aiohttp.ClientSession) -> None:
            for body in left:
                async with session.post(sink.url, data=body, headers={"content-type": "application/json"}) as response:
                    await response.read()

        with Stopwatch() as watch:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                await asyncio.gather(*(worker(session) for _ in range(AT_ONCE)))
        assert len(sink.arrived()) == FIRES
        return watch.seconds

    return measure


# Claims.


async def _load(url: str) -> None:
    async with connect(url, clock=ManualClock(NOW_MS)) as tickler:
        whens = expressions(3_000)
        await tickler.schedules.put_many(
            Schedule(owner=f"user-{n % 7_000:05}", key=f"digest-{n}", when=whens[n % 3_000], target="https://example.org/hook",
                     payload={"n": n})
            for n in range(100_000)
        )  # fmt: skip


Claim = Callable[[int], Awaitable[int]]
Due = Callable[[], Awaitable[int]]  # the instant at which a whole batch is due


async def _compare(store: str, ours: tuple[Claim, Due], raw: tuple[Claim, Due]) -> Result:
    """Claim in time on both sides: only ours would skip and record late fires."""

    def timed(claim: Claim, due: Due) -> Callable[[], Awaitable[float]]:
        async def measure() -> float:
            seconds = 0.0
            for _ in range(CLAIMS):
                now_ms = await due()
                with Stopwatch() as watch:
                    assert await claim(now_ms) == BATCH
                seconds += watch.seconds
            return seconds

        return measure

    ours_timed, raw_timed = timed(*ours), timed(*raw)
    await ours_timed(), await raw_timed()
    mine, other, ratio = await pairs(ours_timed, raw_timed, 9)
    rows = CLAIMS * BATCH
    return Result(
        f"{store}: fires.claim at batch {BATCH}", f"{rows / mine:,.0f}/s", f"{rows / other:,.0f}/s", "the same SQL without cron",
        ratio, 0.6,
    )  # fmt: skip


def _ours(tickler: Tickler) -> Claim:
    async def claim(now_ms: int) -> int:
        return len(await tickler.fires.claim(now_ms, BATCH, worker="bench"))

    return claim


def _fires(rows: Iterable[Any], now_ms: int) -> list[tuple[object, ...]]:
    """Return fires as the raw side opens them, with ids that cost nothing."""
    return [(f"fire_{now_ms}_{owner}_{key}", owner, key, at) for _, owner, key, _, _, at, *_ in rows]


def _in_common(now_ms: int) -> tuple[object, ...]:
    return now_ms, 1, "open", now_ms + 60_000, "bench", None


async def _claims_on_postgres(ours: str, raw: str, dsn: str) -> Result:
    await _load(ours)
    await _load(raw)
    connection = await asyncpg.connect(dsn)
    select, open_ = (text.replace("{schema}", "raw") for text in (postgres_fires.SELECT_DUE, postgres_fires.ADVANCE_AND_OPEN))

    async def claim(now_ms: int) -> int:
        await connection.execute(BEGIN_CLAIM)
        rows = await connection.fetch(select, now_ms, ROW_FORMAT, BATCH, [], MAX_CLAIM_BYTES, True)
        moved = ([row[0] for row in rows], [row[5] + HOUR_MS for row in rows])
        columns = [list(column) for column in zip(*_fires(rows, now_ms), strict=True)]
        await connection.fetch(open_, *columns, *_in_common(now_ms), *moved)
        await connection.execute("COMMIT")
        return len(rows)

    def due(schema: str) -> Due:
        text = f"SELECT next_fire_at FROM {schema}.tickler_index ORDER BY next_fire_at OFFSET {BATCH - 1} LIMIT 1"

        async def find() -> int:
            at: int = await connection.fetchval(text)
            return at

        return find

    async with connect(ours) as tickler:
        await connection.execute("VACUUM ANALYZE")
        result = await _compare("PostgreSQL", (_ours(tickler), due("ours")), (claim, due("raw")))
    await connection.close()
    return result


async def _claims_on_sqlite(folder: Path) -> Result:
    ours, raw = (f"sqlite:///{folder / name}.db" for name in ("ours", "raw"))
    await _load(ours)
    await _load(raw)
    connections = {
        url: sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False) for url in (ours, raw)
    }
    connection = connections[raw]
    for pragma in PRAGMAS:
        connection.execute(pragma)

    async def claim(now_ms: int) -> int:
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute(SELECT_DUE.format(others=""), (now_ms, ROW_FORMAT, BATCH)).fetchall()
        connection.execute(sqlite_index.ADVANCE, (as_json([(row[5] + HOUR_MS, row[0]) for row in rows]),))
        connection.execute(sqlite_fires.OPEN, (*_in_common(now_ms), as_json(_fires(rows, now_ms))))
        connection.execute("COMMIT")
        return len(rows)

    def due(url: str) -> Due:
        text = f"SELECT next_fire_at FROM tickler_index ORDER BY next_fire_at LIMIT 1 OFFSET {BATCH - 1}"

        async def find() -> int:
            at: int = connections[url].execute(text).fetchone()[0]
            return at

        return find

    async with connect(ours) as tickler:
        result = await _compare("SQLite", (_ours(tickler), due(ours)), (claim, due(raw)))
    for each in connections.values():
        each.close()
    return result


if __name__ == "__main__":
    asyncio.Runner(loop_factory=loop_factory({"TICKLER_UVLOOP": "01"[sys.argv[1] == "uvloop"]})).run(_all_deliveries(sys.argv[1]))
