"""Many deadlines with one timer, and a timeout that behaves as asyncio's own does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest

from tickler.deliver.deadlines import Deadlines, Timeout, timeouts


async def timers() -> int:
    """Return how many timers the event loop has."""
    loop: Any = asyncio.get_running_loop()
    return sum(not handle.cancelled() for handle in loop._scheduled)


async def test_each_passes_at_its_own_time_with_one_timer_for_all() -> None:
    loop = asyncio.get_running_loop()
    passed: list[tuple[str, float]] = []
    deadlines: Deadlines[str] = Deadlines(lambda what: passed.append((what, loop.time())))
    before, now_s = await timers(), loop.time()
    at = {"third": now_s + 0.06, "first": now_s + 0.02, "second": now_s + 0.04}
    for what, when in at.items():
        deadlines.add(what, when, loop)
    assert await timers() == before + 1
    await asyncio.sleep(0.1)
    assert [what for what, _ in passed] == ["first", "second", "third"]
    assert all(when >= at[what] for what, when in passed)
    assert await timers() == before


async def test_what_is_removed_never_passes_and_the_others_do() -> None:
    loop = asyncio.get_running_loop()
    passed: list[str] = []
    deadlines: Deadlines[str] = Deadlines(passed.append)
    deadlines.add("removed", loop.time() + 0.01, loop)
    deadlines.add("left", loop.time() + 0.02, loop)
    deadlines.remove("removed")
    deadlines.remove("removed")
    await asyncio.sleep(0.05)
    assert passed == ["left"]


async def test_nothing_passes_once_they_are_closed() -> None:
    loop = asyncio.get_running_loop()
    passed: list[str] = []
    deadlines: Deadlines[str] = Deadlines(passed.append)
    before = await timers()
    deadlines.add("late", loop.time() + 0.01, loop)
    deadlines.close()
    assert await timers() == before
    await asyncio.sleep(0.03)
    assert not passed
    deadlines.add("after", loop.time(), loop)  # it can be opened again
    await asyncio.sleep(0.01)
    assert "after" in passed


def cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


@asynccontextmanager
async def ours(seconds: float) -> Any:
    deadlines = timeouts()
    with Timeout(deadlines, seconds) as limit:
        yield limit
    deadlines.close()


BOTH = pytest.mark.parametrize("timeout", [ours, asyncio.timeout], ids=["ours", "asyncio"])
MakeTimeout = Callable[[float], AbstractAsyncContextManager[Any]]


@BOTH
async def test_what_takes_too_long_raises_a_timeout_error_and_the_task_goes_on(timeout: MakeTimeout) -> None:
    with pytest.raises(TimeoutError):
        async with timeout(0.01):
            await asyncio.sleep(30)
    assert not cancellations()
    await asyncio.sleep(0)


@BOTH
async def test_what_ends_in_time_is_left_alone(timeout: MakeTimeout) -> None:
    async with timeout(0.02):
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    assert not cancellations()


@BOTH
async def test_an_error_of_what_is_awaited_passes(timeout: MakeTimeout) -> None:
    with pytest.raises(LookupError):
        async with timeout(30):
            raise LookupError


@BOTH
async def test_who_is_cancelled_from_outside_is_cancelled_even_at_the_deadline(timeout: MakeTimeout) -> None:
    async def work() -> None:
        async with timeout(0.01):
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                task.cancel()  # by somebody else, at the same moment
                raise

    task = asyncio.create_task(work())
    with pytest.raises(asyncio.CancelledError):
        await task


@BOTH
async def test_a_deadline_that_was_swallowed_leaves_no_cancellation_behind(timeout: MakeTimeout) -> None:
    async with timeout(0.01):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(30)
    assert not cancellations()
