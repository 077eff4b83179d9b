"""Work that may not end when it is cancelled, on a task of its own: whoever waits for it goes on without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

GRACE_S = 5.0  # for work to end that was cancelled: it may have something to put away

T = TypeVar("T")


class Ended(NamedTuple, Generic[T]):
    """What work returned, or what it raised. `late`: its time was over, and it was cancelled; `left`: it goes on all the same."""

    answer: T | None
    raised: BaseException | None
    late: bool = False
    left: asyncio.Task[object] | None = None


async def on_own_task(work: Callable[[], Awaitable[T]], seconds: float) -> Ended[T]:
    """Cancels the work after so many seconds, and leaves it a little later. Raises nothing but the caller's own cancellation."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(_caught(work))
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _end, over)
    task.add_done_callback(lambda _: _end(over))
    late = False
    try:
        await over
        if not task.done():
            late = True
            task.cancel()
            await asyncio.wait((task,), timeout=GRACE_S)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait((task,))
        raise
    finally:
        timer.cancel()
    if not task.done():
        return Ended(None, None, late, task)
    if task.cancelled():  # before it began
        return Ended(None, asyncio.CancelledError(), late)
    return task.result()._replace(late=late)


async def _caught(work: Callable[[], Awaitable[T]]) -> Ended[T]:
    """Raised from a task of its own, a SystemExit would end the event loop."""
    try:
        return Ended(await work(), None)
    except BaseException as error:
        return Ended(None, error)


def _end(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
