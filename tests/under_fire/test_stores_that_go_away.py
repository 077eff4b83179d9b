"""A store that is not there for some seconds, under load: nothing is lost, no worker ends, and all go on by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

from dynamodb_proxy import FaultProxy
from tickler import Tickler, connect
from under_fire.accounts import Accounts, RecordProperty, all_entries, tell
from under_fire.load import SOON_MS, Load, nothing_is_owed, put_one_shots
from under_fire.processes import TIMEOUT_S, until
from under_fire.servers import CrashingPostgres, Locker
from under_fire.sink import Sink
from under_fire.target_windows import Run, check_windows
from under_fire.worker import Options
from under_fire.workers import Workers

NUMBER = 60  # due before, during and after, each

Fault = Callable[[Workers], Awaitable[None]]


async def live_through(tickler: Tickler, url: str, fault: Fault, record_property: RecordProperty) -> None:
    """Some are due before the fault, some while it lasts, some after it; two workers are there all the time."""
    async with Sink() as sink, Workers(url, Options(in_flight=10)) as workers:
        target = sink.hook(fails=10, takes_ms=50)
        await workers.start(2)
        load = Load()
        load += await put_one_shots(tickler, "before", NUMBER, target)
        load += await put_one_shots(tickler, "during", NUMBER, target, in_ms=SOON_MS + 1_000)
        await until("deliveries are under way", lambda: any(worker.held for worker in workers.living))

        await fault(workers)
        load += await put_one_shots(tickler, "after", NUMBER, target)

        await until("nothing is owed", lambda: nothing_is_owed(tickler))
        assert workers.all_alive()
        await workers.stop()
        arrivals, entries = await sink.arrivals(), await all_entries(tickler, load.due)
        late, until_ms = workers.late, tickler.now_ms()
    accounts = Accounts(load.due, arrivals, entries)
    accounts.check_all_delivered()
    accounts.check_arrivals_against_history()
    accounts.check_every_repetition_has_its_reason()
    check_windows(
        Run(declared=load.declared, arrivals=arrivals, entries=entries, until=until_ms, lateness_ms=round(TIMEOUT_S * 1000))
    )
    # A claim whose answer was lost on the way is held by no worker, and expires.
    held = {(each.id, each.attempt) for worker in workers.living for each in worker.claimed}
    expired = {(entry.fire_id, entry.attempt) for entry in entries if entry.happened == "expired"}
    assert not expired & held, "a fire was taken over from a live worker"
    tell(
        record_property,
        {
            "fires": len(load),
            "outages": 1,
            "duplicates": accounts.duplicates,
            "losses": len(accounts.missing),
            "expired leases": accounts.number("expired"),
            "races lost": late,
        },
    )


def all_noticed(workers: Workers) -> bool:
    """Return whether each worker has logged that the store was away."""
    return all(any("claiming failed" in text for text in worker.said) for worker in workers.living)


async def test_a_postgresql_that_crashes_and_comes_back_loses_nothing(
    tmp_path: Path, soak: bool, record_property: RecordProperty
) -> None:
    with CrashingPostgres(tmp_path / "data") as server:

        async def crash(workers: Workers) -> None:
            for _ in range(5 if soak else 1):
                await server.crash()
                await until("all workers have noticed", lambda: all_noticed(workers))
                await server.come_back()
                for worker in workers.living:
                    worker.said.clear()

        url = server.url("going")
        async with connect(url) as tickler:
            await live_through(tickler, url, crash, record_property)


async def test_an_sqlite_file_that_another_process_keeps_locked_loses_nothing(
    sqlite_url: str, soak: bool, record_property: RecordProperty
) -> None:
    async def lock(workers: Workers) -> None:
        async with Locker(sqlite_url.removeprefix("sqlite:///")):
            await asyncio.sleep(10 if soak else 3)
            await until("all workers have noticed", lambda: all_noticed(workers))

    async with connect(sqlite_url) as tickler:
        await live_through(tickler, f"{sqlite_url}?timeout=0.5", lock, record_property)


async def test_a_dynamodb_that_throttles_loses_nothing(
    dynamodb_url: str, dynamodb_endpoint: str, seed: int, soak: bool, record_property: RecordProperty
) -> None:
    async with FaultProxy(dynamodb_endpoint, Random(seed)) as proxy, connect(dynamodb_url) as tickler:

        async def throttle(workers: Workers) -> None:
            proxy.throttle = proxy.throttle_statements = proxy.unprocessed = 0.7
            await asyncio.sleep(2)
            if soak:  # until clients that try again and again have no more patience
                proxy.throttle = 1.0
                await until("all workers have noticed", lambda: all_noticed(workers))
            proxy.throttle = proxy.throttle_statements = proxy.unprocessed = 0.05
            assert proxy.served["throttle"] > 0
            assert proxy.served["throttle_statements"] > 0

        url = dynamodb_url.replace(dynamodb_endpoint, proxy.endpoint)
        await live_through(tickler, url, throttle, record_property)
