"""1,000 due schedules on one PostgreSQL, compared with other libraries, from the start until the last handler has run.

Libraries without stored schedules get 1,000 jobs that are ready to run, which is less work. Missing libraries are skipped:
install them with `pip install --group peers`.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from measure import Result, Stopwatch
from postgres import PostgresServer, bench_server
from tickler import Cron, ManualClock, PythonTarget, Schedule, connect
from workload import NOW_MS

FIRES = 1_000
TIMEOUT_S = 120

done = 0  # handlers that have run
all_done = asyncio.Event()


async def handler(*args: object) -> None:
    """The handler of every library."""
    global done
    done += 1
    if done == FIRES:
        all_done.set()


async def run(say: Callable[[str], None]) -> list[Result]:
    peers: list[tuple[str, str, float, Callable[[PostgresServer], Awaitable[float]]]] = [
        ("APScheduler 4 (alpha)", "apscheduler", 20.0, _apscheduler),
        ("procrastinate, ready jobs", "procrastinate", 0.0, _procrastinate),
        ("pgqueuer, ready jobs", "pgqueuer", 0.0, _pgqueuer),
    ]
    results: list[Result] = []
    with bench_server() as server:
        for name, package, target, peer in peers:
            if importlib.util.find_spec(package) is None:
                say(f"{name} is not installed, and passed over")
                continue
            say(f"1,000 due: ours and {name}")
            mine = [await _timed(_tickler, server) for _ in range(3)]
            theirs = await _timed(peer, server)
            ours = sorted(mine)[1]
            results.append(
                Result(
                    f"1,000 due on PostgreSQL, beside {name}",
                    f"{FIRES / ours:,.0f}/s",
                    f"{FIRES / theirs:,.0f}/s",
                    name,
                    theirs / ours,
                    target,
                )
            )
    return results


async def _timed(work: Callable[[PostgresServer], Awaitable[float]], server: PostgresServer) -> float:
    global done
    done = 0
    all_done.clear()
    async with asyncio.timeout(TIMEOUT_S):
        return await work(server)


_schemas = iter(range(1_000))


async def _tickler(server: PostgresServer) -> float:
    clock = ManualClock(NOW_MS)
    async with connect(server.url(f"ours_{next(_schemas)}"), clock=clock) as tickler:
        tickler.handler("count")(handler)
        await tickler.schedules.put_many(
            Schedule(owner=f"u{n}", key="digest", when=Cron("0 * * * *"), target=PythonTarget("count")) for n in range(FIRES)
        )
        clock.advance(timedelta(hours=1))
        with Stopwatch() as watch:
            running = asyncio.create_task(tickler.run())
            await all_done.wait()
            tickler.stop()
            await running  # until the last outcome is recorded
    return watch.seconds


async def _apscheduler(server: PostgresServer) -> float:
    from apscheduler import AsyncScheduler
    from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
    from apscheduler.triggers.date import DateTrigger
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(server.dsn.replace("postgresql://", "postgresql+asyncpg://", 1))
    due_at = datetime.now(UTC) - timedelta(seconds=1)
    async with AsyncScheduler(SQLAlchemyDataStore(engine, schema="public"), max_concurrent_jobs=100) as scheduler:
        await scheduler.configure_task("count", func=handler, misfire_grace_time=None, max_running_jobs=100)
        for n in range(FIRES):
            await scheduler.add_schedule("count", DateTrigger(due_at), id=f"u{n}")
        with Stopwatch() as watch:
            await scheduler.start_in_background()
            await all_done.wait()
            await scheduler.stop()
            await scheduler.wait_until_stopped()
    await engine.dispose()
    return watch.seconds


async def _procrastinate(server: PostgresServer) -> float:
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=server.dsn, max_size=10))
    task = app.task(name="count")(handler)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await task.batch_defer_async(*({} for _ in range(FIRES)))
        with Stopwatch() as watch:
            worker = asyncio.create_task(
                app.run_worker_async(concurrency=100, install_signal_handlers=False, wait=False, listen_notify=False)
            )
            await all_done.wait()
            await worker
    return watch.seconds


async def _pgqueuer(server: PostgresServer) -> float:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgPoolDriver
    from pgqueuer.queries import Queries

    async with asyncpg.create_pool(server.dsn, min_size=2, max_size=10) as pool:
        driver: Any = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await queries.install()
        await queries.enqueue(["count"] * FIRES, [None] * FIRES, [0] * FIRES)
        queuer = PgQueuer(driver)
        queuer.entrypoint("count")(handler)
        with Stopwatch() as watch:
            running = asyncio.create_task(queuer.run(batch_size=100))
            await all_done.wait()
            queuer.shutdown.set()
            await running
    return watch.seconds
