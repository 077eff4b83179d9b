"""Consumers that are stopped, cancelled or crashed, that lose their store, or share their work with others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.errors import GiveUp, InvalidInput, StoreUnavailable
from tickler.table import Attr, Consumer, Entity, ItemChange, Key, Table, attr, created
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.engines.metadata import Entry, EntryWrite, Metadata
from tickler.table.open_table import OpenTable
from tickler.table.streams.progress import all_states
from tickler.testing.consumer_contract import caught_up, ids_of, record, until, until_async
from tickler.testing.stream_fixtures import NOW, STREAMED, Remark, Task, task

silent = Table("silent")


class Note(Entity, table=silent):
    id: Attr[str] = attr()
    key = Key("NOTE" / id, "NOTE")


class FaultyMetadata:
    """Metadata of a store that is away while `is_away`."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self.is_away = False
        self.refused = 0

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        self._check()
        return await self._metadata.read(prefix, after=after, limit=limit, keys_only=keys_only)

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        self._check()
        return await self._metadata.write(writes)

    def _check(self) -> None:
        if self.is_away:
            self.refused += 1
            raise StoreUnavailable("the store is away")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def db(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenTable]:
    monkeypatch.setattr("tickler.table.streams.delivery.FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("tickler.table.streams.consumer.FIRST_PAUSE_S", 0.005)
    engine = MemoryEngine(STREAMED, MemoryDatabase())
    engine.metadata = FaultyMetadata(engine.metadata)  # type: ignore[assignment]  # of the same contract
    async with OpenTable(STREAMED, engine, clock, create=True) as opened:
        yield opened


@pytest.fixture
def faults(db: OpenTable) -> FaultyMetadata:
    assert isinstance(db.engine.metadata, FaultyMetadata)
    return db.engine.metadata


# The end of a consumer.


async def test_cancelling_run_waits_for_handlers_and_saves_what_they_did(db: OpenTable) -> None:
    begun, ended = asyncio.Event(), []
    consumer = db.consumer("it")

    @consumer.on(created(Task))
    async def handle(change: ItemChange[None, Task]) -> None:
        begun.set()
        await asyncio.sleep(0.02)
        ended.append(change.new.id)

    await db.put(task(1))
    running = asyncio.create_task(consumer.run())
    await asyncio.wait_for(begun.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["t001"]
    again = ids_of(other := db.consumer("it"))
    await caught_up(other)
    assert again == []


async def test_cancelling_run_twice_interrupts_handlers(db: OpenTable) -> None:
    begun, hang = asyncio.Event(), asyncio.Event()
    consumer = db.consumer("it")

    @consumer.on(created(Task))
    async def handle(change: ItemChange[None, Task]) -> None:
        begun.set()
        await hang.wait()

    await db.put(task(1))
    running = asyncio.create_task(consumer.run())
    await asyncio.wait_for(begun.wait(), 10)
    for _ in range(2):
        running.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)
    assert await consumer.parked() == [], "an interrupted handler has not failed"
    hang.set()
    assert (await consumer.consume(budget_ms=50)).parked == 0, "the object can run again"


async def test_a_block_that_ends_at_once_does_not_hang(db: OpenTable) -> None:
    consumer = db.consumer("it")
    async with asyncio.timeout(10):
        with pytest.raises(ZeroDivisionError):
            async with consumer.running():
                raise ZeroDivisionError
        async with consumer.running():
            pass


async def test_a_crash_is_raised_where_the_block_ends(db: OpenTable, caplog: pytest.LogCaptureFixture) -> None:
    consumer = db.consumer("it")
    consumer._context.changes.shards = broken("no shards")  # type: ignore[method-assign, assignment]  # as a bug would
    with pytest.raises(RuntimeError, match="no shards"):
        async with consumer.running():
            await until(lambda: "consumer it has stopped" in caplog.text)


async def test_a_crash_cancels_the_block(db: OpenTable) -> None:
    consumer = db.consumer("it")
    consumer._context.changes.shards = broken("no shards")  # type: ignore[method-assign, assignment]  # as a bug would
    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError, match="no shards"):
            async with consumer.running():
                await asyncio.Event().wait()


async def test_a_crash_of_a_delivery_is_raised_though_the_block_ends_at_the_same_moment(db: OpenTable) -> None:
    consumer = db.consumer("it", attempts=1)
    begun, hang = asyncio.Event(), asyncio.Event()

    @consumer.on(created(Task))
    async def handle(change: ItemChange[None, Task]) -> None:
        begun.set()
        await hang.wait()
        raise ValueError

    consumer._parking.park = broken("cannot park")  # type: ignore[method-assign, assignment]  # as a bug would
    await db.put(task(1))

    async def run() -> None:
        async with consumer.running():
            await begun.wait()
            hang.set()

    with pytest.raises(RuntimeError, match="cannot park"):
        await asyncio.wait_for(run(), 10)


async def test_one_object_runs_once_at_a_time(db: OpenTable) -> None:
    consumer = db.consumer("it")
    async with consumer.running():
        for again in (consumer.run(), consumer.consume(), consumer.running().__aenter__()):
            with pytest.raises(InvalidInput, match="runs already"):
                await again
    await caught_up(consumer)


async def test_a_table_without_a_stream_has_no_consumers() -> None:
    async with silent.connect("memory://") as quiet:
        with pytest.raises(InvalidInput, match=r"keeps no changes: define it with stream=True, and run `tickler table create`"):
            quiet.consumer("it")


async def test_events_of_two_entities_need_two_handlers(db: OpenTable) -> None:
    with pytest.raises(InvalidInput, match="pass events of one entity"):
        db.consumer("it").on(created(Task), created(Remark))
    with pytest.raises(InvalidInput, match="Note is not an entity of the table 'kit_stream'"):
        db.consumer("it").on(created(Note))


# A store that is away.


async def test_a_store_that_is_away_for_a_while_does_not_end_a_consumer(
    db: OpenTable, faults: FaultyMetadata, caplog: pytest.LogCaptureFixture
) -> None:
    seen = ids_of(consumer := db.consumer("it", lease=timedelta(milliseconds=100)))
    async with consumer.running():
        await db.put(task(1))
        await until(lambda: seen == ["t001"])
        faults.is_away = True
        await until(lambda: faults.refused > 3)
        await db.put(task(2))
        faults.is_away = False
        await until(lambda: seen == ["t001", "t002"])
    assert "the store is away" in caplog.text


async def test_a_store_that_is_away_when_a_block_ends_does_not_fail_the_block(
    db: OpenTable, faults: FaultyMetadata, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    seen = ids_of(consumer := db.consumer("it"))
    async with consumer.running():
        await db.put(task(1))
        await until(lambda: seen == ["t001"])
        faults.is_away = True
    assert "others have its shards once its leases expire" in caplog.text
    faults.is_away = False
    clock.advance(timedelta(seconds=31))
    await db.put(task(2))
    await caught_up(consumer)
    assert seen[-1] == "t002"


def broken(message: str) -> Callable[..., Awaitable[Any]]:
    async def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(message)

    return function


# Several processes.


async def holders(db: OpenTable) -> list[int]:
    """Return how many shards each process holds, smallest first."""
    states = (await all_states(db.engine.metadata)).get("it", {})
    by = [state.holder for state in states.values() if state.holder]
    return sorted(by.count(each) for each in set(by))


async def test_shards_are_divided_anew_when_a_third_process_joins_and_leaves(db: OpenTable) -> None:
    delivered: list[str] = []
    number = 0

    def process() -> Consumer:
        consumer = db.consumer("it", lease=timedelta(milliseconds=150))
        record(consumer, created(Task), lambda change: delivered.append(change.new.id))
        return consumer

    async def shared(shares: list[int]) -> None:
        nonlocal number

        async def are_shared() -> bool:
            nonlocal number
            number += 1
            await db.put(task(number))
            return await holders(db) == shares

        await until_async(are_shared)

    async with process().running(), process().running():
        await shared([4, 4])
        async with process().running():
            await shared([2, 3, 3])
        await shared([4, 4])
        await until(lambda: len(delivered) >= number)
    assert sorted(delivered) == sorted(f"t{n:03}" for n in range(1, number + 1))


async def test_a_retry_that_takes_longer_than_a_lease_is_made_by_one_process(db: OpenTable, clock: ManualClock) -> None:
    running, most, calls = 0, 0, 0
    is_down, hang = True, asyncio.Event()

    def process() -> Consumer:
        consumer = db.consumer("it", attempts=1, lease=timedelta(milliseconds=150))

        @consumer.on(created(Task))
        async def handle(change: ItemChange[None, Task]) -> None:
            nonlocal running, most, calls
            if is_down:
                raise GiveUp("down")
            running, calls = running + 1, calls + 1
            most = max(most, running)
            await hang.wait()
            running -= 1

        return consumer

    await db.put(task(1))
    async with (one := process()).running(), process().running():
        await until_async(one.parked)
        is_down = False
        await one.retry()
        await until(lambda: calls == 1)
        for _ in range(12):
            clock.advance(timedelta(milliseconds=30))
            await asyncio.sleep(0.06)
        assert (calls, most) == (1, 1)
        hang.set()
        await until_async(lambda: nothing_parked(one))
    assert calls == 1


async def test_a_retry_that_is_interrupted_by_the_end_goes_on_elsewhere_at_once(db: OpenTable) -> None:
    """The clock stands still, so that no claim expires."""
    failing, calls = True, asyncio.Event()
    one = db.consumer("it", attempts=5)

    @one.on(created(Task))
    async def fail(change: ItemChange[None, Task]) -> None:
        if failing:
            raise GiveUp("down")
        calls.set()
        raise ValueError("still down")

    await db.put(task(1))
    await caught_up(one)
    await one.retry()
    failing = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tickler.table.streams.delivery.FIRST_PAUSE_S", 60.0)  # it ends while it waits for the next attempt
        async with one.running():
            await asyncio.wait_for(calls.wait(), 10)
    seen = ids_of(other := db.consumer("it"))
    await caught_up(other)
    assert seen == ["t001"]
    assert await other.parked() == []


async def nothing_parked(consumer: Consumer) -> bool:
    return not await consumer.parked()


@pytest.fixture(autouse=True)
def log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "tickler.table")
