"""Deliveries per second with history, compared with a bare aiohttp loop that posts the same bodies; and claims with fires."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import aiohttp
import asyncpg

from measure import Result, Stopwatch, pairs
from postgres import bench_server
from sink import SinkProcess
from tickler import Cron, ManualClock, Policy, RunOptions, Schedule, Tickler, connect, new_secret
from tickler.cli.gc_tuning import tune_gc
from tickler.database.postgres.pool import BEGIN_CLAIM
from tickler.database.sqlite.connection import PRAGMAS
from tickler.index.advance import ROW_FORMAT
from tickler.model.delivery import Delivery
from tickler.model.fire import MAX_CLAIM_BYTES, fire_id
from tickler.stores.postgres import fires as postgres_fires
from tickler.stores.postgres import index as postgres_index
from tickler.stores.sqlite import fires as sqlite_fires
from tickler.stores.sqlite import index as sqlite_index
from tickler.stores.sqlite.rows import as_json
from tickler.webhooks.envelope import envelope
from workload import NOW_MS, expressions

FIRES = 16_000  # enough to make start and stop negligible
AT_ONCE = 100
PAIRS = 5
BATCH = 500
CLAIMS = 8
HOUR_MS = 3_600_000
OPTIONS = RunOptions(in_flight=AT_ONCE, per_owner=AT_ONCE, per_host=AT_ONCE)
TARGETS = {"at-most-once": {"PostgreSQL": 0.55, "SQLite": 0.45}, "at-least-once": {"PostgreSQL": 0.5, "SQLite": 0.45}}
POLICIES = {"at-most-once": Policy(delivery="at-most-once"), "at-least-once": Policy()}


async def run(say: Callable[[str], None]) -> list[Result]:
    results: list[Result] = []
    os.environ.setdefault("TICKLER_SIGNING_SECRET", new_secret())
    with bench_server() as server, tempfile.TemporaryDirectory() as folder, SinkProcess() as sink:
        for store, url in (("PostgreSQL", server.url("{}")), ("SQLite", f"sqlite:///{folder}/{{}}.db")):
            for kind in POLICIES:
                say(f"{store}: {FIRES:,} deliveries, {kind}")
                results.append(await _deliveries(store, kind, url.format(kind.replace("-", "_")), sink))
        say("claims that open fires")
        results.append(await _claims_on_postgres(server.url("ours"), server.url("raw"), server.dsn))
        results.append(await _claims_on_sqlite(Path(folder)))
    return results


async def _deliveries(store: str, kind: str, url: str, sink: SinkProcess) -> Result:
    clock = ManualClock(NOW_MS)
    async with connect(url, clock=clock, allow_networks=("127.0.0.0/8",)) as tickler:
        await tickler.schedules.put_many(
            Schedule(owner=f"user-{n % 500}", key=f"digest-{n}", when=Cron("0 * * * *"), target=sink.url, payload={"n": n},
                     policy=POLICIES[kind])
            for n in range(FIRES)
        )  # fmt: skip
        ours, bare = _runner(tickler, clock, sink), _bare_loop(sink)
        await ours(), await bare()  # warm up
        usual = gc.get_threshold()
        tune_gc()  # as `tickler work` does; both sides benefit
        mine, other, ratio = await pairs(ours, bare, PAIRS)
        gc.unfreeze()
        gc.set_threshold(*usual)
    return Result(
        f"{store}: deliveries, {kind}", f"{FIRES / mine:,.0f}/s", f"{FIRES / other:,.0f}/s", "a bare aiohttp loop",
        ratio, TARGETS[kind][store],
    )  # fmt: skip


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


def _fires(rows: list[tuple[str, str, int]], now_ms: int) -> list[tuple[object, ...]]:
    """Return a fire as the raw side opens it, with an id that costs nothing."""
    return [
        (f"fire_{now_ms}_{owner}_{key}", owner, key, at, now_ms, 1, "open", now_ms + 60_000, "bench", None)
        for owner, key, at in rows
    ]


async def _claims_on_postgres(ours: str, raw: str, dsn: str) -> Result:
    await _load(ours)
    await _load(raw)
    connection = await asyncpg.connect(dsn)
    select, advance, open_ = (
        text.replace("{schema}", "raw") for text in (postgres_fires.SELECT_DUE, postgres_index.ADVANCE, postgres_fires.OPEN)
    )

    async def claim(now_ms: int) -> int:
        await connection.execute(BEGIN_CLAIM)
        rows = await connection.fetch(select, now_ms, ROW_FORMAT, BATCH, [], MAX_CLAIM_BYTES, True)
        await connection.execute(advance, [row[0] for row in rows], [row[5] + HOUR_MS for row in rows])
        fires = _fires([(row[1], row[2], row[5]) for row in rows], now_ms)
        await connection.fetch(open_, *[list(column) for column in zip(*fires, strict=True)])
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
        rows = connection.execute(sqlite_fires.SELECT_DUE.format(others=""), (now_ms, ROW_FORMAT, BATCH)).fetchall()
        connection.executemany(sqlite_index.ADVANCE, [(row[5] + HOUR_MS, row[0]) for row in rows])
        connection.execute(sqlite_fires.OPEN, (as_json(_fires([(row[1], row[2], row[5]) for row in rows], now_ms)),))
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
