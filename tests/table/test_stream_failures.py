"""Consumers whose store, handlers or neighbours fail at a bad moment: nothing is lost, skipped or told too late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.errors import GiveUp, StoreUnavailable
from tickler.table import ItemChange, created
from tickler.table.engines.change_log import shard_of
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.engines.metadata import Entry, EntryWrite, Metadata
from tickler.table.open_table import OpenTable
from tickler.table.streams.context import StreamContext
from tickler.table.streams.pruner import Pruner, prune
from tickler.testing.consumer_contract import WAIT_S, caught_up, ids_of, until
from tickler.testing.stream_fixtures import NOW, STREAMED, Task, task

pytestmark = pytest.mark.asyncio


class FailingMetadata:
    """Metadata whose answers get lost while `fails` says so. What it was asked to write is written."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self.fails: Callable[[str], bool] = lambda key: False

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        self._answer(prefix)
        return await self._metadata.read(prefix, after=after, limit=limit, keys_only=keys_only)

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        done = await self._metadata.write(writes)
        for each in writes:
            self._answer(each.key)
        return done

    def _answer(self, key: str) -> None:
        if self.fails(key):
            raise StoreUnavailable("the answer was lost")

    def fail_once(self, fails: Callable[[str], bool]) -> None:
        """Fail the next time that a key is one of some."""

        def once(key: str) -> bool:
            if fails(key):
                self.fails = lambda key: False
                return True
            return False

        self.fails = once


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def engine() -> MemoryEngine:
    engine = MemoryEngine(STREAMED, MemoryDatabase())
    await engine.open(create=True)
    return engine


@pytest.fixture
def metadata(engine: MemoryEngine) -> FailingMetadata:
    failing = FailingMetadata(engine.metadata)
    engine.metadata = failing  # type: ignore[assignment]  # it has the same methods
    return failing


@pytest.fixture
def db(engine: MemoryEngine, clock: ManualClock) -> OpenTable:
    return OpenTable(STREAMED, engine, clock, create=True)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.table.streams.delivery.FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("tickler.table.streams.consumer.FIRST_PAUSE_S", 0.001)


async def test_changes_of_a_shard_that_nobody_has_taken_yet_are_not_pruned(db: OpenTable, clock: ManualClock) -> None:
    await db.put_many([task(n) for n in range(40)])
    consumer = db.consumer("it")
    seen = ids_of(consumer)
    key = "stream/it/members/a-process-that-died-as-it-started"
    until_ms = str(clock.now_ms() + 20_000).encode()
    await db.engine.metadata.write([EntryWrite(key, until_ms)])
    await caught_up(consumer)
    assert 0 < len(seen) < 40  # the rest is for the process that died
    await prune(consumer._context.changes, consumer._context.metadata)
    clock.advance(timedelta(seconds=60))
    await caught_up(consumer)
    assert sorted(seen) == [f"t{n:03}" for n in range(40)]


async def lose_everything(db: OpenTable, consumer: Any) -> None:
    """Let the changes that a consumer waits for be deleted, so that it finds none."""
    await caught_up(consumer)
    await db.put(task(1))
    context: StreamContext = consumer._context
    await context.changes.prune([], keep_ms=-1, limit=100)


async def test_a_loss_is_told_again_if_the_callback_failed(db: OpenTable) -> None:
    await lose_everything(db, db.consumer("it"))
    failing = db.consumer("it")

    @failing.on_lost
    async def fail() -> None:
        raise RuntimeError("the sweep failed")

    with pytest.raises(RuntimeError):
        await failing.consume()
    told: list[str] = []
    again = db.consumer("it")
    again.on_lost(lambda: told.append("lost"))
    await caught_up(again)
    assert told


async def test_a_loss_is_told_again_if_the_store_was_away(db: OpenTable) -> None:
    await lose_everything(db, db.consumer("it"))
    consumer = db.consumer("it")
    calls: list[str] = []

    @consumer.on_lost
    async def sweep() -> None:
        calls.append("begun")
        if len(calls) <= 8:  # as many shards are told
            raise StoreUnavailable("away")
        calls.append("ended")

    async with consumer.running():
        await until(lambda: calls.count("ended") == 8)


async def test_parked_changes_are_known_before_a_taken_shard_is_read(
    db: OpenTable, metadata: FailingMetadata, clock: ManualClock
) -> None:
    first = db.consumer("it")

    @first.on(created(Task))
    async def give_up(change: ItemChange[None, Task]) -> None:
        raise GiveUp("no")

    await db.put(task(1))
    await caught_up(first)
    await db.delete(task(1).key)
    await db.put(task(1))
    seen = ids_of(heir := db.consumer("it"))
    metadata.fail_once(lambda key: key.startswith("parked/"))
    async with heir.running():
        await asyncio.sleep(0)
        await until(lambda: heir._delivery.parked + heir._delivery.delivered >= 2)
    assert seen == []
    assert len(await heir.parked()) == 3


async def test_a_save_whose_answer_was_lost_does_not_cost_the_shard(db: OpenTable, metadata: FailingMetadata) -> None:
    consumer = db.consumer("it")
    seen = ids_of(consumer)
    async with consumer.running():
        await db.put(task(1))
        await until(lambda: seen == ["t001"])
        await asyncio.sleep(0)
        metadata.fail_once(lambda key: key.startswith("stream/it/shards/"))
        for n in range(2, 30):
            await db.put(task(n))
            await asyncio.sleep(0.001)
        await until(lambda: len(seen) >= 29)
    assert sorted(seen) == [f"t{n:03}" for n in range(1, 30)]


async def test_a_shard_is_given_up_at_the_end_even_if_the_answer_to_a_save_was_lost(
    db: OpenTable, metadata: FailingMetadata
) -> None:
    consumer = db.consumer("it")
    seen = ids_of(consumer)
    await db.put(task(1))
    session = consumer._begin()
    await session.step()
    await until(lambda: seen == ["t001"])
    metadata.fail_once(lambda key: key.startswith("stream/it/shards/"))
    with pytest.raises(StoreUnavailable):
        await session.step()
    await consumer._end(session)
    await db.delete(task(1).key)
    await db.put(task(1))
    again = ids_of(other := db.consumer("it"))
    await caught_up(other)
    assert again == ["t001"]


async def test_a_change_is_not_parked_by_a_process_that_has_lost_its_shard(db: OpenTable, clock: ManualClock) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()
    slow = db.consumer("it")

    @slow.on(created(Task))
    async def handle(change: ItemChange[None, Task]) -> None:
        begun.set()
        await gate.wait()
        raise GiveUp("too late")

    await db.put(task(1))
    session = slow._begin()
    await session.step()
    await asyncio.wait_for(begun.wait(), WAIT_S)
    clock.advance(timedelta(seconds=31))
    seen = ids_of(heir := db.consumer("it"))
    await caught_up(heir)
    assert seen == ["t001"]
    session._renew_at = 0.0
    await session.step()  # it notices
    gate.set()
    await slow._end(session)
    assert await heir.parked() == []


async def test_a_handler_that_cancels_itself_has_failed(db: OpenTable) -> None:
    consumer = db.consumer("it", attempts=2)

    @consumer.on(created(Task))
    async def handle(change: ItemChange[None, Task]) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    await db.put(task(1))
    outcome = await consumer.consume(budget_ms=2_000)
    assert (outcome.parked, outcome.caught_up) == (1, True)


async def test_an_object_that_is_called_with_await_is_a_handler(db: OpenTable) -> None:
    class Handler:
        def __init__(self) -> None:
            self.seen: list[str] = []

        async def __call__(self, change: ItemChange[None, Task]) -> None:
            await asyncio.sleep(0)
            self.seen.append(change.new.id)

    consumer, handler = db.consumer("it"), Handler()
    consumer.on(created(Task))(handler)
    await db.put(task(1))
    await caught_up(consumer)
    assert handler.seen == ["t001"]


async def test_a_store_that_cannot_park_is_not_asked_without_pause(db: OpenTable, metadata: FailingMetadata) -> None:
    consumer = db.consumer("it")

    @consumer.on(created(Task))
    async def handle(change: ItemChange[None, Task]) -> None:
        raise GiveUp("no")

    await caught_up(consumer)
    await db.put(task(1))
    metadata.fails = lambda key: key.startswith("parked/it/0")
    with pytest.raises(StoreUnavailable):
        await consumer.consume(budget_ms=2_000)
    metadata.fails = lambda key: False
    await caught_up(consumer)
    assert len(await consumer.parked()) == 1


async def test_a_consumer_has_not_caught_up_before_it_has_passed_what_is_not_its_own(tmp_path: Path, clock: ManualClock) -> None:
    async with STREAMED.connect(f"sqlite:///{tmp_path}/stream.db", clock=clock) as db:
        one, other = db.consumer("it"), db.consumer("it")
        idle, busy = one._begin(), other._begin()
        await idle.step()
        await busy.step()
        idle._renew_at = busy._renew_at = 0.0
        await idle.step()
        await busy.step()
        await one._end(idle)  # `busy` holds half of the shards
        held = set(busy._leases)
        theirs = next(n for n in range(100) if shard_of(task(n).key.pk) in held)
        ours = next(n for n in range(100) if shard_of(task(n).key.pk) not in held)
        for size in range(500):
            await db.put(task(theirs, size=size))
        await db.put(task(ours))
        late = db.consumer("it")
        seen = ids_of(late)
        await caught_up(late)
        assert seen == [f"t{ours:03}"]
        await other._end(busy)


async def test_what_on_returns_subscribes_several_handlers(db: OpenTable) -> None:
    consumer = db.consumer("it")
    seen: list[str] = []
    subscribe = consumer.on(created(Task))
    subscribe(lambda change: seen.append("one"))
    subscribe(lambda change: seen.append("two"))
    await db.put(task(1))
    await caught_up(consumer)
    assert seen == ["one", "two"]


async def test_a_callback_that_fails_at_the_end_is_not_passed_over(db: OpenTable) -> None:
    await lose_everything(db, db.consumer("it"))
    consumer, begun, gate = db.consumer("it"), asyncio.Event(), asyncio.Event()

    @consumer.on_lost
    async def fail() -> None:
        begun.set()
        await gate.wait()
        raise RuntimeError("the sweep failed")

    running = asyncio.create_task(consumer.run())
    await asyncio.wait_for(begun.wait(), WAIT_S)
    consumer.stop()
    gate.set()
    with pytest.raises(RuntimeError, match="sweep"):
        await running


async def test_a_loss_in_several_shards_is_told_one_at_a_time(db: OpenTable) -> None:
    await lose_everything(db, db.consumer("it"))
    consumer = db.consumer("it")
    running, most = 0, 0

    @consumer.on_lost
    async def sweep() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    await caught_up(consumer)
    assert most == 1


async def test_pruning_goes_on_while_there_is_more_to_delete(db: OpenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.table.streams.pruner.PRUNED_AT_A_TIME", 2)
    consumer = db.consumer("it")
    await db.put_many([task(n) for n in range(5)])
    session = consumer._begin()
    await session.step()
    await consumer._end(session)
    pruner = Pruner(consumer._context)
    for now in range(4):
        await pruner.prune_if_due(float(now))
    assert await db.engine.changes.waiting(dict.fromkeys(map(str, range(8))), limit=10) == 0
