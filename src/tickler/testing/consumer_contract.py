"""Conformance kit of consumers: what they get, in which order, and what happens when they fail or die."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tickler.clock import ManualClock
from tickler.errors import GiveUp
from tickler.table import Consumer, ItemChange, changed, created, entered, left, removed
from tickler.table.engines.engine import Engine
from tickler.table.engines.metadata import EntryWrite
from tickler.table.open_table import OpenTable
from tickler.table.streams.parking import PARKED
from tickler.table.streams.progress import all_states
from tickler.testing.stream_fixtures import NOW, Remark, StreamFixtures, Task, later, task

WAIT_S = 20.0


class ConsumerContract(StreamFixtures):
    """Requirements on consumers. Part of `StreamContract`."""

    async def test_handlers_get_what_a_change_means(self, db: OpenTable) -> None:
        seen: list[tuple[str, Any, Any]] = []
        consumer = db.consumer("all")

        def remember(name: str, change: ItemChange[Any, Any]) -> None:
            seen.append((name, change.old, change.new))

        for name, event in (
            ("created", created(Task)), ("removed", removed(Task)), ("changed", changed(Task)), ("size", changed(Task.size)),
            ("entered open", entered(Task.open)), ("left open", left(Task.open)),
            ("entered due", entered(Task.due)), ("left due", left(Task.due)),
        ):  # fmt: skip
            record(consumer, event, partial(remember, name))
        one = await db.put(task(1))
        two = await db.update(one.key, Task.status.set("done"), Task.due_at.set(NOW))
        three = await db.update(one.key, Task.size.set(5), Task.due_at.set(later(hours=1)))
        await db.delete(one.key)
        await db.put(Remark(task="t001", n=1))
        await caught_up(consumer)
        assert seen == [
            ("created", None, one),
            ("entered open", None, one),
            ("changed", one, two),
            ("left open", one, two),
            ("entered due", one, two),
            ("changed", two, three),
            ("size", two, three),
            ("removed", three, None),
            ("left due", three, None),
        ]

    async def test_each_consumer_gets_each_change(self, db: OpenTable) -> None:
        one, other = db.consumer("one"), db.consumer("other")
        seen_by_one, seen_by_other = ids_of(one), ids_of(other)
        await caught_up(other)  # it is known from now on, so that what it has not read is kept
        await db.put_many([task(n) for n in range(5)])
        await caught_up(one)
        await db.put_many([task(n) for n in range(5, 8)])
        await caught_up(one)
        await caught_up(other)
        assert sorted(seen_by_one) == sorted(seen_by_other) == [f"t{n:03}" for n in range(8)]

    async def test_a_consumer_goes_on_where_it_was(self, db: OpenTable) -> None:
        seen = ids_of(first := db.consumer("it"))
        await db.put_many([task(n) for n in range(5)])
        await caught_up(first)
        again = ids_of(second := db.consumer("it"))
        await db.put(task(9))
        await caught_up(second)
        assert sorted(seen) == [f"t{n:03}" for n in range(5)]
        assert again == ["t009"]

    async def test_a_new_consumer_may_begin_now(self, db: OpenTable) -> None:
        await db.put_many([task(n) for n in range(5)])
        seen = ids_of(consumer := db.consumer("it", start="now"))
        await caught_up(consumer)
        await db.put(task(9))
        await caught_up(consumer)
        assert seen == ["t009"]

    async def test_a_running_consumer_gets_changes_soon(self, db: OpenTable) -> None:
        seen = ids_of(consumer := db.consumer("it"))
        async with consumer.running():
            for n in range(3):
                await db.put(task(n))
                await until(lambda: len(seen) > n)  # noqa: B023  # awaited here
        assert seen == ["t000", "t001", "t002"]

    async def test_a_plain_function_is_a_handler_too(self, db: OpenTable) -> None:
        seen: list[str] = []
        consumer = db.consumer("it")

        @consumer.on(created(Task))
        def handle(change: ItemChange[None, Task]) -> None:
            seen.append(change.new.id)

        await db.put(task(1))
        await caught_up(consumer)
        assert seen == ["t001"]

    async def test_a_change_that_fails_is_tried_again_and_then_parked(self, db: OpenTable) -> None:
        seen: list[str] = []
        consumer = db.consumer("it", attempts=3)

        @consumer.on(created(Task))
        async def handle(change: ItemChange[None, Task]) -> None:
            seen.append(change.new.id)
            if change.new.size:
                raise ValueError("too large")

        await db.put_many([task(1), task(2, size=9), task(3)])
        await caught_up(consumer)
        assert sorted(seen) == ["t001", "t002", "t002", "t002", "t003"]
        (parked,) = await consumer.parked()
        assert (parked.record.pk, parked.attempts, parked.error) == ("TASK#t002", 3, "ValueError: too large")
        assert parked.parked_at == NOW
        await db.put(task(4))
        await caught_up(consumer)
        assert len(seen) == 6

    async def test_later_changes_of_an_item_wait_behind_a_parked_one(self, db: OpenTable) -> None:
        seen: list[int] = []
        fails = True
        consumer = db.consumer("it", attempts=1)

        @consumer.on(created(Task), changed(Task))
        async def handle(change: ItemChange[Task | None, Task]) -> None:
            if fails and change.new.id == "t001":
                raise GiveUp("not now")
            seen.append(change.new.size)

        for size in range(3):
            await db.put(task(1, size=size))
        await db.put(task(2, size=10))
        await caught_up(consumer)
        await db.put(task(1, size=3))
        await caught_up(consumer)
        assert seen == [10]
        parked = await consumer.parked()
        assert [each.attempts for each in parked] == [1, 0, 0, 0]
        assert "GiveUp: not now" in parked[0].error
        assert "waits" in parked[1].error
        fails = False
        assert await consumer.retry(parked[0].id) == 1
        await caught_up(consumer)
        assert seen == [10, 0, 1, 2, 3]
        assert await consumer.parked() == []
        await db.put(task(1, size=4))
        await caught_up(consumer)
        assert seen[-1] == 4

    async def test_in_steps_that_are_too_short_for_all_attempts_a_change_is_parked_and_goes_on(
        self, db: OpenTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tickler.table.streams.delivery.FIRST_PAUSE_S", 60.0)
        calls: list[str] = []
        consumer = db.consumer("it", attempts=3)

        @consumer.on(created(Task), changed(Task))
        async def handle(change: ItemChange[Task | None, Task]) -> None:
            calls.append(change.new.id)
            if change.new.id == "t001":
                raise ValueError("no")

        await db.put_many([task(n) for n in range(20)])
        await db.put(task(1, size=2))
        for attempt in (1, 2):
            assert not (await consumer.consume(budget_ms=500)).caught_up
            assert [each.attempts for each in await consumer.parked()] == [attempt, 0]
        await caught_up(consumer)
        await caught_up(consumer)
        assert [each.attempts for each in await consumer.parked()] == [3, 0]
        assert calls.count("t001") == 3
        assert sorted({each for each in calls if each != "t001"}) == [f"t{n:03}" for n in range(20) if n != 1]
        assert len(calls) == 22  # nothing else was delivered twice

    async def test_a_retry_that_fails_leaves_the_change_parked(self, db: OpenTable) -> None:
        calls = 0
        consumer = db.consumer("it", attempts=2)

        @consumer.on(created(Task))
        async def handle(change: ItemChange[None, Task]) -> None:
            nonlocal calls
            calls += 1
            raise ValueError(f"call {calls}")

        await db.put(task(1))
        await caught_up(consumer)
        assert await consumer.retry() == 1
        await caught_up(consumer)
        await caught_up(consumer)
        (parked,) = await consumer.parked()
        assert (calls, parked.attempts, parked.error) == (4, 4, "ValueError: call 4")
        assert await consumer.discard(parked.id) == 1
        assert await consumer.parked() == []

    async def test_a_consumer_stops_when_too_much_is_parked(self, db: OpenTable) -> None:
        fails = True
        seen: list[str] = []
        consumer = db.consumer("it", attempts=1, max_parked=2)

        @consumer.on(created(Task))
        async def handle(change: ItemChange[None, Task]) -> None:
            if fails:
                raise ValueError("no")
            seen.append(change.new.id)

        await db.put_many([task(n) for n in range(4)])
        async with consumer.running():
            await until_async(lambda: has_parked(consumer, 2))
            await asyncio.sleep(0.05)
        assert len(await consumer.parked()) == 2
        fails = False
        await consumer.retry()
        await caught_up(consumer)
        assert sorted(seen) == [f"t{n:03}" for n in range(4)]

    async def test_changes_that_an_earlier_version_parked_are_read_and_delivered_again(
        self, db: OpenTable, engine: Engine
    ) -> None:
        fails = True
        seen: list[str] = []
        consumer = db.consumer("it", attempts=1)

        @consumer.on(created(Task))
        async def handle(change: ItemChange[None, Task]) -> None:
            if fails:
                raise ValueError("no")
            seen.append(change.new.id)

        await db.put_many([task(n) for n in range(3)])
        await caught_up(consumer)
        parked = await consumer.parked()
        assert await parked_uncompressed(engine) == len(parked) == 3
        assert await consumer.parked() == parked
        assert await consumer.retry() == 3
        await caught_up(consumer)
        assert {each.attempts for each in await consumer.parked()} == {2}
        assert await parked_uncompressed(engine) == 3
        fails = False
        assert await consumer.retry() == 3
        await caught_up(consumer)
        assert sorted(seen) == ["t000", "t001", "t002"]
        assert await consumer.parked() == []

    async def test_processes_of_a_consumer_share_its_shards(self, db: OpenTable) -> None:
        one, other = db.consumer("it"), db.consumer("it")
        seen_by_one, seen_by_other = ids_of(one), ids_of(other)
        async with one.running():
            await until_async(lambda: holders(db, 1))
            async with other.running():
                await until_async(lambda: members(db, 2))
                await db.put_many([task(n) for n in range(60)])
                await until(lambda: len(seen_by_one) + len(seen_by_other) >= 60)
        assert sorted(seen_by_one + seen_by_other) == [f"t{n:03}" for n in range(60)]

    async def test_another_process_takes_over_from_one_that_died(self, db: OpenTable, clock: ManualClock) -> None:
        started = asyncio.Event()
        dead = db.consumer("it", lease=timedelta(seconds=30))

        @dead.on(created(Task))
        async def hang(change: ItemChange[None, Task]) -> None:
            started.set()
            await asyncio.Event().wait()

        await db.put(task(1))
        session = dead._begin()
        await session.step()
        await asyncio.wait_for(started.wait(), WAIT_S)
        seen = ids_of(heir := db.consumer("it", lease=timedelta(seconds=30)))
        await caught_up(heir)
        assert seen == []
        clock.advance(timedelta(seconds=31))
        await caught_up(heir)
        assert seen == ["t001"]
        for running in session._tasks:
            running.cancel()
        await asyncio.gather(*session._tasks, return_exceptions=True)

    async def test_one_that_lost_its_lease_starts_no_handler_and_saves_nothing(self, db: OpenTable, clock: ManualClock) -> None:
        gate = asyncio.Event()
        seen: list[int] = []
        slow = db.consumer("it")

        @slow.on(created(Task), changed(Task))
        async def handle(change: ItemChange[Task | None, Task]) -> None:
            seen.append(change.new.size)
            await gate.wait()

        await db.put(task(1, size=1))
        await db.put(task(1, size=2))
        session = slow._begin()
        await session.step()
        await until(lambda: seen == [1])
        clock.advance(timedelta(seconds=31))
        heir = db.consumer("it")
        sizes: list[int] = []
        record(heir, created(Task), lambda change: sizes.append(change.new.size))
        record(heir, changed(Task), lambda change: sizes.append(change.new.size))
        await caught_up(heir)
        session._renew_at = 0.0
        await session.step()
        gate.set()
        await slow._end(session)
        assert seen == [1]
        assert sizes == [1, 2]
        sizes.clear()
        await caught_up(heir)
        assert sizes == []

    async def test_at_the_end_handlers_that_have_begun_are_waited_for(self, db: OpenTable) -> None:
        begun, ended = asyncio.Event(), []
        consumer = db.consumer("it")

        @consumer.on(created(Task))
        async def handle(change: ItemChange[None, Task]) -> None:
            begun.set()
            await asyncio.sleep(0.02)
            ended.append(change.new.id)

        await db.put(task(1))
        async with consumer.running():
            await asyncio.wait_for(begun.wait(), WAIT_S)
        assert ended == ["t001"]
        again = ids_of(other := db.consumer("it"))
        await caught_up(other)
        assert again == []


def record(consumer: Consumer, event: Any, remember: Callable[[ItemChange[Any, Any]], None]) -> None:
    @consumer.on(event)
    async def handle(change: ItemChange[Any, Any]) -> None:
        remember(change)


def ids_of(consumer: Consumer) -> list[str]:
    """Return a list to which the ids of created tasks will be added."""
    seen: list[str] = []
    record(consumer, created(Task), lambda change: seen.append(change.new.id))
    return seen


async def caught_up(consumer: Consumer) -> None:
    assert (await consumer.consume(budget_ms=int(WAIT_S * 1000))).caught_up


async def parked_uncompressed(engine: Engine) -> int:
    """Write parked changes as the first version did: as they are. Returns how many there are."""
    entries = await engine.metadata.read(PARKED)
    await engine.metadata.write([EntryWrite(entry.key, zlib.decompress(entry.value)) for entry in entries])
    return len(entries)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.002)


async def until_async(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await condition():
            await asyncio.sleep(0.005)


async def has_parked(consumer: Consumer, number: int) -> bool:
    return len(await consumer.parked()) == number


async def holders(db: OpenTable, number: int) -> bool:
    """Tell whether so many processes hold shards."""
    states = (await all_states(db.engine.metadata)).get("it", {})
    return len({state.holder for state in states.values() if state.holder}) == number


async def members(db: OpenTable, number: int) -> bool:
    return len(await db.engine.metadata.read("stream/it/members/")) == number
