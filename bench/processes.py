"""Claims of four processes from one PostgreSQL, compared with one process."""

from __future__ import annotations

from collections.abc import Callable

import asyncpg

from measure import Result, Stopwatch, pairs
from postgres import bench_server
from postgres_server import PostgresServer
from tickler import connect
from tickler.testing.claimers import Claimers
from workload import NOW_MS, due_rows

ROWS = 60_000
BATCH = 500
PAIRS = 7


async def run(say: Callable[[str], None]) -> list[Result]:
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
