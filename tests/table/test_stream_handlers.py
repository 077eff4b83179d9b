"""Handlers that are slow, fail, or are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.errors import GiveUp
from tickler.table import Consumer, ItemChange, created
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.open_table import OpenTable
from tickler.testing.consumer_contract import caught_up, record
from tickler.testing.stream_fixtures import NOW, STREAMED, Task, task


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def db(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenTable]:
    monkeypatch.setattr("tickler.table.streams.delivery.FIRST_PAUSE_S", 0.0)
    engine = MemoryEngine(STREAMED, MemoryDatabase())
    async with OpenTable(STREAMED, engine, clock, create=True) as opened:
        yield opened


def failing(consumer: Consumer, error: Callable[[], BaseException]) -> list[str]:
    """Let a consumer fail at each created task. Returns a list to which their ids will be added."""
    seen: list[str] = []

    def fail(change: ItemChange[None, Task]) -> None:
        seen.append(change.new.id)
        raise error()

    record(consumer, created(Task), fail)
    return seen


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_no_more_handlers_run_at_a_time_than_allowed(db: OpenTable, concurrency: int) -> None:
    running, most = 0, 0
    consumer = db.consumer("it", concurrency=concurrency)

    @consumer.on(created(Task))
    async def handle(change: ItemChange[None, Task]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await db.put_many([task(n) for n in range(60)])
    await caught_up(consumer)
    assert most == concurrency


async def test_a_change_has_each_of_its_handlers_once_though_another_fails(db: OpenTable) -> None:
    calls: list[str] = []
    consumer = db.consumer("it", attempts=3)

    @consumer.on(created(Task))
    async def first(change: ItemChange[None, Task]) -> None:
        calls.append("first")

    @consumer.on(created(Task))
    async def second(change: ItemChange[None, Task]) -> None:
        calls.append("second")
        if len(calls) < 4:
            raise ValueError("not yet")

    await db.put(task(1))
    await caught_up(consumer)
    assert calls == ["first", "second", "second", "second"]
    assert await consumer.parked() == []


async def test_a_handler_that_takes_too_long_has_failed(db: OpenTable) -> None:
    calls = 0
    consumer = db.consumer("it", attempts=2, timeout=timedelta(milliseconds=5))

    @consumer.on(created(Task))
    async def hang(change: ItemChange[None, Task]) -> None:
        nonlocal calls
        calls += 1
        await asyncio.Event().wait()

    await db.put(task(1))
    await caught_up(consumer)
    (parked,) = await consumer.parked()
    assert (calls, parked.attempts, parked.error) == (2, 2, "TimeoutError: the handler took longer than 0:00:00.005000")


async def test_giving_up_parks_the_change_at_once(db: OpenTable) -> None:
    seen = failing(consumer := db.consumer("it", attempts=5), lambda: GiveUp("never"))
    await db.put(task(1))
    assert (await consumer.consume()).parked == 1
    (parked,) = await consumer.parked()
    assert (seen, parked.attempts, parked.error) == (["t001"], 1, "GiveUp: never")


@pytest.mark.parametrize("error", [StopIteration, asyncio.CancelledError])
async def test_a_plain_handler_that_raises_what_a_thread_cannot_carry_has_failed(
    db: OpenTable, error: type[BaseException]
) -> None:
    consumer = db.consumer("it", attempts=1)

    @consumer.on(created(Task))
    def handle(change: ItemChange[None, Task]) -> None:
        raise error

    await db.put(task(1))
    async with asyncio.timeout(10):
        await caught_up(consumer)
    assert (await consumer.parked())[0].error.startswith("RuntimeError: the handler")


async def test_a_plain_handler_that_returns_a_coroutine_is_awaited(db: OpenTable) -> None:
    seen: list[str] = []

    async def handle(change: ItemChange[None, Task]) -> None:
        seen.append(change.new.id)

    consumer = db.consumer("it")
    consumer.on(created(Task))(lambda change: handle(change))
    await db.put(task(1))
    await caught_up(consumer)
    assert seen == ["t001"]


async def test_an_error_without_a_message_is_named(db: OpenTable) -> None:
    failing(consumer := db.consumer("it", attempts=1), RuntimeError)
    await db.put(task(1))
    await caught_up(consumer)
    assert (await consumer.parked())[0].error == "RuntimeError: no message"
