"""One claim of 1,000 due rows among millions of sleeping ones, compared with the same among 10,000.

Every round makes another 1,000 rows due, anywhere in the table, untouched since they were written.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncpg

from measure import Result, Stopwatch
from postgres import bench_server
from postgres_server import PostgresServer
from tickler import Tickler, connect
from tickler.index.advance import ROW_FORMAT
from workload import NOW_MS, expressions

DUE = 1_000
FEW, MORE, MANY = 10_000, 1_000_000, 5_000_000
MEASURED, CHURN = 9, 50
ROUNDS = MEASURED + CHURN + MEASURED
ROUND_MS = 60_000
FAR_MS = 400 * 86_400_000

COLUMNS = ("owner", "key", "when_text", "tz", "next_fire_at", "ends_at", "offset_ms", "managed", "format")
TARGETS = {"PostgreSQL": 3.0, "SQLite": 5.0}


async def run(say: Callable[[str], None]) -> list[Result]:
    return [*await on_sqlite(say), *await on_postgres(say)]


def rows(number: int) -> Iterator[tuple[object, ...]]:
    """Yield yearly rows that sleep, except 1,000 per round that become due, at random places."""
    rng = random.Random(number)
    whens = [(str(when), when.tz) for when in expressions(3000)]
    due_in = {place: n % ROUNDS for n, place in enumerate(rng.sample(range(number), min(DUE * ROUNDS, number)))}
    for n in range(number):
        text, tz = whens[n % 3000]
        at = NOW_MS + due_in[n] * ROUND_MS if n in due_in else NOW_MS + FAR_MS + rng.randrange(FAR_MS)
        yield (f"user-{n // 3:07}", f"schedule-{n % 3}", text, tz, at, None, 0, False, ROW_FORMAT)


async def on_sqlite(say: Callable[[str], None]) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        sizes: dict[int, tuple[Tickler, Callable[[int], Awaitable[None]]]] = {}
        for number in (FEW, MORE, MANY):
            say(f"SQLite: writing {number:,} rows")
            path = str(Path(folder, f"{number}.db"))
            tickler = await connect(f"sqlite:///{path}").open()
            raw = sqlite3.connect(path, isolation_level=None)
            raw.execute("BEGIN")
            raw.executemany(f"INSERT INTO tickler_index ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * 9)})", rows(number))
            raw.execute("COMMIT")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sizes[number] = tickler, _make_due_sqlite(raw, number)
        results = await _measure("SQLite", sizes, say)
        for tickler, _ in sizes.values():
            await tickler.close()
    return results


async def on_postgres(say: Callable[[str], None]) -> list[Result]:
    with bench_server() as server:
        raw = await asyncpg.connect(server.dsn)
        sizes: dict[int, tuple[Tickler, Callable[[int], Awaitable[None]]]] = {}
        for number in (FEW, MORE, MANY):
            say(f"PostgreSQL: writing {number:,} rows")
            sizes[number] = await _load_postgres(server, raw, number)
        results = await _measure("PostgreSQL", sizes, say)
        for tickler, _ in sizes.values():
            await tickler.close()
        await raw.close()
    return results


async def _load_postgres(
    server: PostgresServer, raw: asyncpg.Connection, number: int
) -> tuple[Tickler, Callable[[int], Awaitable[None]]]:
    schema = f"rows_{number}"
    tickler = await connect(server.url(schema)).open()
    await raw.execute(f"ALTER TABLE {schema}.tickler_index SET (autovacuum_enabled = false)")
    await raw.copy_records_to_table("tickler_index", schema_name=schema, columns=COLUMNS, records=rows(number), timeout=1200)
    await raw.execute(f"VACUUM ANALYZE {schema}.tickler_index")
    await raw.execute("CHECKPOINT")

    async def make_due(round_number: int) -> None:
        places = random.Random(round_number).sample(range(number), DUE)
        ids = [(f"user-{n // 3:07}", f"schedule-{n % 3}") for n in places]
        at = NOW_MS + round_number * ROUND_MS
        await raw.executemany(f"UPDATE {schema}.tickler_index SET next_fire_at = {at} WHERE owner = $1 AND key = $2", ids)

    return tickler, make_due


def _make_due_sqlite(raw: sqlite3.Connection, number: int) -> Callable[[int], Awaitable[None]]:
    async def make_due(round_number: int) -> None:
        places = random.Random(round_number).sample(range(1, number + 1), DUE)
        at = NOW_MS + round_number * ROUND_MS
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany(f"UPDATE tickler_index SET next_fire_at = {at} WHERE id = ?", [(place,) for place in places])
        raw.execute("COMMIT")

    return make_due


async def _measure(
    store: str, sizes: dict[int, tuple[Tickler, Callable[[int], Awaitable[None]]]], say: Callable[[str], None]
) -> list[Result]:
    say(f"{store}: {ROUNDS} rounds of {DUE:,} due rows")
    seconds: dict[int, list[float]] = {number: [] for number in sizes}
    for round_number in range(ROUNDS):
        for number, (tickler, make_due) in sizes.items():
            if number < DUE * ROUNDS:  # too few for fresh ones every round; all in memory anyway
                await make_due(round_number)
            now_ms = NOW_MS + round_number * ROUND_MS
            with Stopwatch() as watch:
                claimed = len(await tickler.index.claim_due(now_ms, 2 * DUE))
            assert claimed >= DUE * 0.9, claimed
            seconds[number].append(watch.seconds / claimed * DUE)
    return [
        _result(store, number, state, seconds, part)
        for state, part in (("fresh", slice(0, MEASURED)), ("after 50 rounds", slice(MEASURED + CHURN, None)))
        for number in (MORE, MANY)
    ]


def _result(store: str, number: int, state: str, seconds: dict[int, list[float]], part: slice) -> Result:
    mine, few = seconds[number][part], seconds[FEW][part]
    ratio = statistics.median(a / b for a, b in zip(mine, few, strict=True))
    return Result(
        f"{store}: a claim among {number:,}, {state}",
        f"{statistics.median(mine) * 1000:.1f} ms",
        f"{statistics.median(few) * 1000:.1f} ms",
        "among 10,000",
        ratio,
        TARGETS[store],
        at_most=True,
    )
