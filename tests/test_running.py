"""A worker beside a block of code: what the block's end, a crash, and cancellations do to both."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from deliver.at_work import Bench, after, schedule
from deliver.virtual_time import in_virtual_time

import tickler
from tickler import Delivery, PythonTarget, RunOptions, Schedule, Tickler
from tickler.database.blocking import Blocking
from tickler.database.callers_thread import on_callers_thread
from tickler.errors import InvalidInput

HANG_S = 1_000.0


def broken(bench: Bench, message: str = "a bug", *, after_claims: int = 0) -> None:
    """Make the worker crash as a bug would, when it claims for the next time."""
    fires, left = bench.tickler.store.fires, [after_claims]
    real = fires.claim

    async def claim(request: Any) -> Any:
        if left[0] == 0:
            raise RuntimeError(message)
        left[0] -= 1
        return await real(request)

    fires.claim = claim  # type: ignore[method-assign]


@in_virtual_time
async def test_a_worker_delivers_while_the_block_runs_and_not_before_or_after() -> None:
    bench = Bench()
    async with bench.tickler as t:
        await bench.put(schedule("one", 10.0), schedule("two", 50.0))
        async with t.running() as same:
            assert same is t
            await asyncio.sleep(20)
            assert len(t.own_workers) == 1
        assert t.own_workers == []
        await asyncio.sleep(60)
        assert bench.keys == ["one"]


@in_virtual_time
async def test_the_end_of_the_block_waits_for_attempts_and_releases_what_has_not_begun() -> None:
    bench = Bench()
    bench.behave = after(20.0)
    async with bench.tickler as t:
        await bench.put(schedule("begun", 1.0), schedule("queued", 1.0))
        async with t.running(RunOptions(in_flight=1, per_owner=1)):
            await bench.until_arrived(1)
        assert [entry.happened for key in ("begun", "queued") for entry in await bench.history(key)] == ["delivered"]
        (left,) = await bench.fires()
        assert (left.worker, left.attempt) == (None, 0)


@in_virtual_time
async def test_a_crash_cancels_the_block_and_is_raised_in_its_place() -> None:
    bench = Bench()
    broken(bench)
    async with bench.tickler as t:
        with pytest.raises(RuntimeError, match="a bug"):
            async with t.running():
                await asyncio.sleep(HANG_S)
        assert asyncio.get_running_loop().time() < HANG_S
        assert _cancelling() == 0
        await asyncio.sleep(0)  # nothing is left of the cancellation


@in_virtual_time
async def test_a_crash_is_raised_though_the_block_catches_the_cancellation() -> None:
    bench = Bench()
    broken(bench)
    async with bench.tickler as t:

        async def catch_it() -> None:
            async with t.running():
                try:
                    await asyncio.sleep(HANG_S)
                except asyncio.CancelledError:
                    await asyncio.sleep(1)

        with pytest.raises(RuntimeError, match="a bug"):
            await catch_it()
        assert _cancelling() == 0


@in_virtual_time
async def test_a_crash_has_the_error_of_the_block_as_its_context() -> None:
    bench = Bench()
    broken(bench)

    async def fail_with_it() -> None:
        async with bench.tickler.running():
            try:
                await asyncio.sleep(HANG_S)
            finally:
                raise LookupError("mine")

    async with bench.tickler:
        with pytest.raises(RuntimeError, match="a bug") as crash:
            await fail_with_it()
    assert isinstance(crash.value.__context__, LookupError)


@in_virtual_time
async def test_a_crash_at_the_end_of_the_block_is_raised_and_leaves_no_cancellation(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    broken(bench)
    async with bench.tickler as t:

        async def run(turns: int) -> None:
            async with t.running():
                for _ in range(turns):
                    await asyncio.sleep(0)

        for turns in range(12):  # at each of which the worker may crash, before and after the block has ended
            with pytest.raises(RuntimeError, match="a bug"):
                await run(turns)
            await asyncio.sleep(0)
            assert _cancelling() == 0
    assert "has stopped: RuntimeError('a bug')" in caplog.text


@in_virtual_time
async def test_an_error_of_the_block_ends_it_as_usual() -> None:
    bench = Bench()
    bench.behave = after(20.0)
    async with bench.tickler as t:
        await bench.put(schedule("one", 1.0))

        async def fail() -> None:
            async with t.running():
                await bench.until_arrived(1)
                raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            await fail()
        assert await bench.happened("one") == ["delivered"]


@in_virtual_time
async def test_a_cancelled_block_finishes_its_attempts() -> None:
    bench = Bench()
    bench.behave = after(20.0)
    async with bench.tickler as t:
        await bench.put(schedule("one", 1.0))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5), t.running():
                await asyncio.sleep(HANG_S)
        assert await bench.happened("one") == ["delivered"]
        assert _cancelling() == 0


@in_virtual_time
async def test_a_block_that_is_cancelled_twice_does_not_wait_for_its_attempts() -> None:
    bench = Bench()
    bench.behave = after(HANG_S)

    async def run() -> None:
        async with bench.tickler.running(RunOptions(drain=HANG_S)):
            await asyncio.sleep(HANG_S)

    async with bench.tickler:
        await bench.put(schedule("one", 1.0))
        task = asyncio.create_task(run())
        await bench.until_arrived(1)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(1)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.get_running_loop().time() < 30
        assert bench.tickler.own_workers == []


@in_virtual_time
async def test_each_of_several_blocks_ends_its_own_worker() -> None:
    bench = Bench()
    async with bench.tickler as t:
        await bench.put(schedule("one", 10.0), schedule("two", 30.0))
        async with t.running():
            async with t.running(), t.running():
                assert len(t.own_workers) == 3
                await bench.until_arrived(1)
            assert len(t.own_workers) == 1
            await bench.until_arrived(2)
        assert bench.keys == ["one", "two"]


@in_virtual_time
async def test_stop_ends_the_worker_and_not_the_block() -> None:
    bench = Bench()
    async with bench.tickler as t:
        async with t.running():
            await asyncio.sleep(1)
            t.stop()
            await asyncio.sleep(10)
            assert t.own_workers == []
        assert _cancelling() == 0


async def test_a_block_may_be_left_in_another_task_than_it_was_entered_in() -> None:
    """As where a test framework runs the two halves of a fixture."""
    bench = Bench()
    async with bench.tickler as t:
        running = t.running()
        await asyncio.create_task(_await(running.__aenter__()))
        assert len(t.own_workers) == 1
        await asyncio.create_task(_await(running.__aexit__(None, None, None)))
        assert t.own_workers == []


async def test_settings_that_no_worker_could_use_are_refused_before_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKLER_ALLOW_NETWORKS", "everything")
    async with tickler.connect("memory://") as t:
        with pytest.raises(InvalidInput, match="TICKLER_ALLOW_NETWORKS"):
            async with t.running():
                pytest.fail("the block began")


def test_ctrl_c_in_the_block_finishes_its_attempts() -> None:
    ended: list[str] = []

    async def main() -> None:
        async with tickler.connect("memory://") as t:
            begun = asyncio.Event()

            @t.handler("slow")
            async def slow(delivery: Delivery) -> None:
                begun.set()
                await asyncio.sleep(0.05)
                ended.append(delivery.key)

            await _put_and_trigger(t)
            async with t.running():
                await asyncio.wait_for(begun.wait(), 10)
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert ended == ["digest"]


# Without await.


@pytest.fixture
def t(sqlite_url: str) -> Blocking:
    return tickler.connect_sync(sqlite_url)


def test_a_worker_runs_beside_a_block_without_await(t: Blocking) -> None:
    before = set(threading.enumerate())
    ended: list[tuple[str, object]] = []
    with t:
        begun = threading.Event()

        def slow(delivery: Delivery) -> None:
            begun.set()
            time.sleep(0.05)
            ended.append((delivery.key, t.schedules.get("u1", "digest").payload))  # it may call too

        t.handler("slow")(slow)
        t.schedules.put(_slow())
        with t.running(RunOptions(lease=5)) as same:
            same.trigger("u1", "digest")
            assert begun.wait(10)
            assert len(t.own_workers) == 1
        assert ended == [("digest", {"n": 1})]
        assert t.own_workers == []
        assert [entry.happened for entry in t.fires.history("u1", "digest").items] == ["delivered"]
    for thread in set(threading.enumerate()) - before:
        thread.join(10)  # that of SQLite ends by itself
        assert not thread.is_alive()


def test_a_crash_without_await_is_logged_at_once_and_raised_at_the_end(t: Blocking, caplog: pytest.LogCaptureFixture) -> None:
    async def claim(request: object) -> Any:
        raise RuntimeError("a bug")

    with t:
        t.store.fires._wrapped.claim = claim
        with pytest.raises(RuntimeError, match="a bug"), t.running():
            _wait_for(lambda: "has stopped: RuntimeError('a bug')" in caplog.text and t.own_workers == [])
        assert t.index.count() == 0, "it still answers"


def test_an_interrupted_block_without_await_finishes_its_attempts(t: Blocking) -> None:
    ended: list[str] = []
    with t:
        begun = threading.Event()

        async def slow(delivery: Delivery) -> None:
            begun.set()
            await asyncio.sleep(0.05)
            ended.append(delivery.key)

        t.handler("slow")(slow)

        def run() -> None:
            with t.running():
                t.trigger("u1", "digest")
                begun.wait(10)
                raise KeyboardInterrupt

        t.schedules.put(_slow())
        with pytest.raises(KeyboardInterrupt):
            run()
    assert ended == ["digest"]


def test_a_handler_does_not_wait_for_the_call_that_began_the_block(t: Blocking) -> None:
    """That call has ended, and runs nothing on its thread any more."""
    ran: list[str] = []
    with t:

        async def slow(delivery: Delivery) -> None:
            ran.append(await on_callers_thread(lambda: delivery.key))

        t.handler("slow")(slow)
        t.schedules.put(_slow())
        with t.running():
            t.trigger("u1", "digest")
            _wait_for(lambda: ran == ["digest"])


def _slow() -> Schedule:
    return Schedule(owner="u1", key="digest", when="@yearly", target=PythonTarget("slow"), payload={"n": 1})


async def _put_and_trigger(t: Tickler) -> None:
    await t.schedules.put(_slow())
    await t.trigger("u1", "digest")


def _cancelling() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)
