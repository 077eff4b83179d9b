"""`schedules.put_many`, compared with the fastest raw way to write the same rows into the same tables."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import asyncpg

from measure import Result, Stopwatch, pairs
from postgres import bench_server
from tickler import Schedule, connect
from tickler.database.sqlite.connection import PRAGMAS
from tickler.stores.postgres import rows as postgres_rows
from tickler.stores.postgres import schedules as postgres_schedules
from workload import due_rows

SCHEDULES = 100_000
PAIRS = 7
TABLES = ("tickler_schedules", "tickler_index")


def schedules() -> list[Schedule]:
    return [
        Schedule(owner=row.owner, key=row.key, when=row.when, target="https://example.org/hook", payload={"n": n})
        for n, row in enumerate(due_rows(SCHEDULES))
    ]


async def run(say: Callable[[str], None]) -> list[Result]:
    return [await on_sqlite(say), await on_postgres(say)]


async def on_sqlite(say: Callable[[str], None]) -> Result:
    say(f"SQLite: put_many of {SCHEDULES:,} schedules")
    declared = schedules()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "put.db"))
        async with connect(f"sqlite:///{path}") as tickler:
            await tickler.schedules.put_many(declared)
            raw = sqlite3.connect(path, isolation_level=None)
            for pragma in PRAGMAS:
                raw.execute(pragma)
            columns = [row[1] for row in raw.execute("PRAGMA table_info(tickler_index)")][1:]
            written = {
                "tickler_schedules": raw.execute("SELECT * FROM tickler_schedules").fetchall(),
                f"tickler_index ({', '.join(columns)})": raw.execute(
                    f"SELECT {', '.join(columns)} FROM tickler_index"
                ).fetchall(),
            }

            def empty() -> None:
                for table in TABLES:
                    raw.execute(f"DELETE FROM {table}")
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

            async def ours() -> float:
                empty()
                with Stopwatch() as watch:
                    await tickler.schedules.put_many(declared)
                return watch.seconds

            async def theirs() -> float:
                empty()
                with Stopwatch() as watch:
                    raw.execute("BEGIN IMMEDIATE")
                    for table, rows in written.items():
                        raw.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
                    raw.execute("COMMIT")
                return watch.seconds

            mine, other, ratio = await pairs(ours, theirs, PAIRS)
            raw.close()
    return _result("SQLite", "executemany", mine, other, ratio)


async def on_postgres(say: Callable[[str], None]) -> Result:
    say(f"PostgreSQL: put_many of {SCHEDULES:,} schedules")
    declared = schedules()
    with bench_server() as server:
        raw = await asyncpg.connect(server.dsn)
        async with connect(server.url("put_bench")) as tickler:
            await tickler.schedules.put_many(declared)
            columns = {TABLES[0]: postgres_schedules.TABLE_COLUMNS, TABLES[1]: postgres_rows.COLUMNS}
            written = {
                table: [tuple(row) for row in await raw.fetch(f"SELECT {', '.join(names)} FROM put_bench.{table}")]
                for table, names in columns.items()
            }

            async def empty() -> None:
                await raw.execute(f"TRUNCATE {', '.join(f'put_bench.{table}' for table in TABLES)}; CHECKPOINT")

            async def ours() -> float:
                await empty()
                with Stopwatch() as watch:
                    await tickler.schedules.put_many(declared)
                return watch.seconds

            async def theirs() -> float:
                await empty()
                with Stopwatch() as watch:
                    async with raw.transaction():
                        for table, rows in written.items():
                            await raw.copy_records_to_table(table, schema_name="put_bench", columns=columns[table], records=rows)
                return watch.seconds

            mine, other, ratio = await pairs(ours, theirs, PAIRS)
        await raw.close()
    return _result("PostgreSQL", "COPY", mine, other, ratio)


def _result(store: str, way: str, mine: float, other: float, ratio: float) -> Result:
    return Result(
        f"{store}: put_many of {SCHEDULES:,}", f"{SCHEDULES / mine:,.0f}/s", f"{SCHEDULES / other:,.0f}/s", way, ratio, 0.4
    )
