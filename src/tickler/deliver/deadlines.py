"""Deadlines of many at once, with one timer of the event loop: to set and cancel one for each costs as much as a task does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Deadlines(Generic[T]):
    """Calls `passed` with each whose deadline passes before it is removed."""

    def __init__(self, passed: Callable[[T], None]) -> None:
        self._passed = passed
        self._at: dict[T, float] = {}  # on the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    def add(self, what: T, at: float, loop: asyncio.AbstractEventLoop) -> None:
        self._at[what] = at
        if self._timer is None or at < self._timer.when():
            self._set_timer(at, loop)

    def remove(self, what: T) -> None:
        self._at.pop(what, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, at: float, loop: asyncio.AbstractEventLoop) -> None:
        self.close()
        self._timer = loop.call_at(at, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """For what may have been removed meanwhile: the timer is not set back when something is."""
        self._timer = None
        now_s = loop.time()
        for what in [what for what, at in self._at.items() if at <= now_s]:
            del self._at[what]
            self._passed(what)
        if self._at:
            self._set_timer(min(self._at.values()), loop)


class Timeout:
    """As `asyncio.timeout` is: what is awaited inside is cancelled at the deadline, and raises a TimeoutError then."""

    __slots__ = ("_cancelling", "_deadlines", "_passed", "_task", "at")

    def __init__(self, deadlines: Deadlines[Timeout], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self.at = loop.time() + seconds
        self._deadlines = deadlines
        self._task = task
        self._cancelling = task.cancelling()
        self._passed = False
        deadlines.add(self, self.at, loop)

    def passed(self) -> None:
        self._passed = True
        self._task.cancel()

    def __enter__(self) -> Timeout:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._deadlines.remove(self)
        if self._passed and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error


def timeouts() -> Deadlines[Timeout]:
    return Deadlines(Timeout.passed)
