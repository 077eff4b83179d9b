"""Work that may not end when it is cancelled, on a task of its own: whoever waits for it goes on without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

from tickler.deliver.deadlines import Deadlines

GRACE_S = 5.0  # for work to end that was cancelled: it may have something to put away

T = TypeVar("T")
OnAbandoned = Callable[["asyncio.Future[Any]"], None]


class TaskResult(NamedTuple, Generic[T]):
    """What work returned, or what it raised. `late`: its time was over, and it was cancelled."""

    answer: T | None
    raised: BaseException | None
    late: bool = False


def goes_on(cancelled: asyncio.CancelledError, until: asyncio.Future[Any]) -> None:
    """Say of work that it ends as it was cancelled, and goes on elsewhere all the same, as a thread does, until that is done."""
    cancelled.goes_on_until = until  # type: ignore[attr-defined]  # `asyncio.timeout` knows that very class, and none derived


class AbandonableTasks:
    """Runs work on tasks of its own."""

    def __init__(self) -> None:
        self._deadlines: Deadlines[asyncio.Future[Any]] = Deadlines(_time_is_over)

    async def run(self, work: Callable[[], Awaitable[T]], seconds: float, left: OnAbandoned) -> TaskResult[T]:
        """Cancels the work after so many seconds. If it goes on for a while, it is not waited for, and `left` gets what is done
        when it has ended.

        Raises nothing but the caller's own cancellation, after the work has ended. A caller that is cancelled again leaves it.
        """
        loop = asyncio.get_running_loop()
        over: asyncio.Future[TaskResult[T] | None] = loop.create_future()  # None when the time is
        task = loop.create_task(_caught(work, over))
        self._deadlines.add(over, loop.time() + seconds, loop)
        try:
            ended = await over
            if ended is not None:
                return ended
            task.cancel()
            await asyncio.wait((task,), timeout=GRACE_S)
        except asyncio.CancelledError:
            task.cancel()
            try:
                await asyncio.wait((task,))
            finally:
                _ended(task, left)
            raise
        finally:
            self._deadlines.remove(over)
        return _ended(task, left)

    def close(self) -> None:
        self._deadlines.close()


def _time_is_over(over: asyncio.Future[Any]) -> None:
    if not over.done():
        over.set_result(None)


async def _caught(work: Callable[[], Awaitable[T]], over: asyncio.Future[TaskResult[T] | None]) -> TaskResult[T]:
    """Raised from a task of its own, a SystemExit would end the event loop."""
    try:
        ended = TaskResult(await work(), None)
    except BaseException as error:
        ended = TaskResult(None, error)
    if not over.done():
        over.set_result(ended)
    return ended


def _ended(task: asyncio.Task[TaskResult[T]], left: OnAbandoned) -> TaskResult[T]:
    """Of work that was cancelled, whether it has ended or not."""
    if not task.done():
        left(task)
        return TaskResult(None, None, late=True)
    if task.cancelled():  # before it began
        return TaskResult(None, asyncio.CancelledError(), late=True)
    ended = task.result()
    if (until := getattr(ended.raised, "goes_on_until", None)) is not None and not until.done():
        left(until)
    return ended._replace(late=True)
