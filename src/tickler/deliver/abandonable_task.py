"""Runs work that may ignore its cancellation on a task of its own, and abandons the task if it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

from tickler.deliver.deadlines import Deadlines

GRACE_S = 5.0  # for cancelled work to clean up

T = TypeVar("T")
OnAbandoned = Callable[["asyncio.Future[Any]"], None]


class TaskResult(NamedTuple, Generic[T]):
    """The return value of the work, or its error. `late`: it exceeded its timeout and was cancelled."""

    answer: T | None
    raised: BaseException | None
    late: bool = False


def mark_running(cancelled: asyncio.CancelledError, until: asyncio.Future[Any]) -> None:
    """Mark cancelled work that keeps running elsewhere, as a thread does, until this future is done."""
    cancelled.running_until = until  # type: ignore[attr-defined]  # a subclass would not do: `asyncio.timeout` compares classes


class AbandonableTasks:
    def __init__(self) -> None:
        self._deadlines: Deadlines[asyncio.Future[Any]] = Deadlines(_time_out)

    async def run(self, work: Callable[[], Awaitable[T]], timeout_s: float, on_abandoned: OnAbandoned) -> TaskResult[T]:
        """Cancel the work after its timeout. If it does not end soon after, abandon it; `on_abandoned` gets a future that is
        done when it ends.

        Raises only the caller's own cancellation, after the work has ended. A second cancellation abandons the work.
        """
        loop = asyncio.get_running_loop()
        over: asyncio.Future[TaskResult[T] | None] = loop.create_future()  # None after the timeout
        task = loop.create_task(_caught(work, over))
        self._deadlines.add(over, loop.time() + timeout_s, loop)
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
                _result(task, on_abandoned)
            raise
        finally:
            self._deadlines.remove(over)
        return _result(task, on_abandoned)

    def close(self) -> None:
        self._deadlines.close()


def _time_out(over: asyncio.Future[Any]) -> None:
    if not over.done():
        over.set_result(None)


async def _caught(work: Callable[[], Awaitable[T]], over: asyncio.Future[TaskResult[T] | None]) -> TaskResult[T]:
    """Catch everything: a SystemExit that leaves a task would end the event loop."""
    try:
        ended = TaskResult(await work(), None)
    except BaseException as error:
        ended = TaskResult(None, error)
    if not over.done():
        over.set_result(ended)
    return ended


def _result(task: asyncio.Task[TaskResult[T]], on_abandoned: OnAbandoned) -> TaskResult[T]:
    """Return the result of cancelled work, whether it has ended or not."""
    if not task.done():
        on_abandoned(task)
        return TaskResult(None, None, late=True)
    if task.cancelled():  # before it began
        return TaskResult(None, asyncio.CancelledError(), late=True)
    ended = task.result()
    if (until := getattr(ended.raised, "running_until", None)) is not None and not until.done():
        on_abandoned(until)
    return ended._replace(late=True)
