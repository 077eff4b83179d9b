"""Work that may not end when it is cancelled, on a task of its own: whoever waits for it goes on without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

GRACE_S = 5.0  # for work to end that was cancelled: it may have something to put away

T = TypeVar("T")
Left = Callable[["asyncio.Future[Any]"], None]


class Ended(NamedTuple, Generic[T]):
    """What work returned, or what it raised. `late`: its time was over, and it was cancelled."""

    answer: T | None
    raised: BaseException | None
    late: bool = False


def goes_on(cancelled: asyncio.CancelledError, until: asyncio.Future[Any]) -> None:
    """Say of work that it ends as it was cancelled, and goes on elsewhere all the same, as a thread does, until that is done."""
    cancelled.goes_on_until = until  # type: ignore[attr-defined]  # `asyncio.timeout` knows that very class, and none derived


class OwnTasks:
    """Runs work on tasks of its own. One timer serves all of them: to set and cancel one for each costs as much as the task."""

    def __init__(self) -> None:
        self._ends_at: dict[asyncio.Future[Any], float] = {}  # on the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, work: Callable[[], Awaitable[T]], seconds: float, left: Left) -> Ended[T]:
        """Cancels the work after so many seconds. If it goes on for a while, it is not waited for, and `left` gets what is done
        when it has ended.

        Raises nothing but the caller's own cancellation, after the work has ended. A caller that is cancelled again leaves it.
        """
        loop = asyncio.get_running_loop()
        over: asyncio.Future[Ended[T] | None] = loop.create_future()  # None when the time is
        task = loop.create_task(_caught(work, over))
        self._end_at(loop.time() + seconds, over, loop)
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
            del self._ends_at[over]
        return _ended(task, left)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end_at(self, at: float, over: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._ends_at[over] = at
        if self._timer is None or at < self._timer.when():
            self._set_timer(at, loop)

    def _set_timer(self, at: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(at, self._end_late, loop)

    def _end_late(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now_s = loop.time()
        for over, at in self._ends_at.items():
            if at <= now_s and not over.done():
                over.set_result(None)
        if later := [at for over, at in self._ends_at.items() if not over.done()]:
            self._set_timer(min(later), loop)


async def _caught(work: Callable[[], Awaitable[T]], over: asyncio.Future[Ended[T] | None]) -> Ended[T]:
    """Raised from a task of its own, a SystemExit would end the event loop."""
    try:
        ended = Ended(await work(), None)
    except BaseException as error:
        ended = Ended(None, error)
    if not over.done():
        over.set_result(ended)
    return ended


def _ended(task: asyncio.Task[Ended[T]], left: Left) -> Ended[T]:
    """Of work that was cancelled, whether it has ended or not."""
    if not task.done():
        left(task)
        return Ended(None, None, late=True)
    if task.cancelled():  # before it began
        return Ended(None, asyncio.CancelledError(), late=True)
    ended = task.result()
    if (until := getattr(ended.raised, "goes_on_until", None)) is not None and not until.done():
        left(until)
    return ended._replace(late=True)
