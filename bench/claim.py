"""Claims per second, compared with the same SQL without cron: the limit of the database."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg

from measure import PAIRS, Result, Stopwatch, pairs
from postgres import bench_server
from tickler import Tickler, connect
from tickler.database.postgres.pool import BEGIN_CLAIM
from tickler.database.sqlite.connection import PRAGMAS
from tickler.index.advance import ROW_FORMAT
from tickler.stores.postgres import index as postgres_index
from tickler.stores.sqlite import index as sqlite_index
from tickler.stores.sqlite.rows import as_json
from workload import NOW_MS, due_rows

ROWS = 200_000
CLAIMS = {100: 30, 1000: 8, 5000: 3}  # claims per measurement, by batch size
TARGETS = {100: 0.0, 1000: 0.65, 5000: 0.65}
HOUR_MS = 3_600_000

Claim = Callable[[int, int], Awaitable[int]]  # now_ms, limit -> rows


async def run(say: Callable[[str], None]) -> list[Result]:
    return [*await on_sqlite(say), *await on_postgres(say)]


async def on_sqlite(say: Callable[[str], None]) -> list[Result]:
    say(f"SQLite: claims over {ROWS:,} due rows")
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for batch in CLAIMS:
            urls = [f"sqlite:///{Path(folder, f'{name}-{batch}.db')}" for name in ("ours", "raw")]
            await _load(urls)
            raw = sqlite3.connect(urls[1].removeprefix("sqlite:///"), isolation_level=None)
            for pragma in PRAGMAS:
                raw.execute(pragma)
            async with connect(urls[0]) as tickler:
                results.append(await _compare("SQLite", batch, _ours(tickler), _raw_sqlite(raw)))
            raw.close()
        return results


async def on_postgres(say: Callable[[str], None]) -> list[Result]:
    say(f"PostgreSQL: claims over {ROWS:,} due rows")
    results = []
    with bench_server() as server:
        for batch in CLAIMS:
            await _load([server.url(f"ours_{batch}"), server.url(f"raw_{batch}")])
            raw = await asyncpg.connect(server.dsn)
            async with connect(server.url(f"ours_{batch}")) as tickler:
                await raw.execute("VACUUM ANALYZE")
                results.append(await _compare("PostgreSQL", batch, _ours(tickler), _raw_postgres(raw, f"raw_{batch}")))
            await raw.close()
    return results


async def _load(urls: list[str]) -> None:
    rows = due_rows(ROWS)
    for url in urls:
        async with connect(url) as tickler:
            await tickler.index.upsert_many(rows)


async def _compare(store: str, batch: int, ours: Claim, raw: Claim) -> Result:
    def timed(claim: Claim) -> Callable[[], Awaitable[float]]:
        now_ms = NOW_MS

        async def measure() -> float:
            nonlocal now_ms
            with Stopwatch() as watch:
                for _ in range(CLAIMS[batch]):
                    now_ms += 1000
                    assert await claim(now_ms, batch) == batch
            return watch.seconds

        return measure

    ours_timed, raw_timed = timed(ours), timed(raw)
    await ours_timed(), await raw_timed()  # warm up
    mine, other, ratio = await pairs(ours_timed, raw_timed, PAIRS)
    rows = CLAIMS[batch] * batch
    return Result(
        f"{store}: claims at batch {batch:,}", f"{rows / mine:,.0f}/s", f"{rows / other:,.0f}/s", "the same SQL without cron",
        ratio, TARGETS[batch],
    )  # fmt: skip


def _ours(tickler: Tickler) -> Claim:
    async def claim(now_ms: int, limit: int) -> int:
        return len(await tickler.index.claim_due(now_ms, limit))

    return claim


def _raw_sqlite(connection: sqlite3.Connection) -> Claim:
    async def claim(now_ms: int, limit: int) -> int:
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute(sqlite_index.SELECT_DUE, (now_ms, ROW_FORMAT, limit)).fetchall()
        connection.execute(sqlite_index.ADVANCE, (as_json([(row[5] + HOUR_MS, row[0]) for row in rows]),))
        connection.execute("COMMIT")
        return len(rows)

    return claim


def _raw_postgres(connection: asyncpg.Connection, schema: str) -> Claim:
    select = postgres_index.SELECT_DUE.replace("{schema}", schema)
    advance = postgres_index.ADVANCE.replace("{schema}", schema)

    async def claim(now_ms: int, limit: int) -> int:
        await connection.execute(BEGIN_CLAIM)
        rows = await connection.fetch(select, now_ms, ROW_FORMAT, limit)
        await connection.execute(advance, [row[0] for row in rows], [row[5] + HOUR_MS for row in rows])
        await connection.execute("COMMIT")
        return len(rows)

    return claim
