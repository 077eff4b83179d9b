"""Many deadlines on one timer of the event loop: a timer for each would cost as much as a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Deadlines(Generic[T]):
    """Calls `on_passed` with each item whose deadline passes before it is removed."""

    def __init__(self, on_passed: Callable[[T], None]) -> None:
        self._on_passed = on_passed
        self._at: dict[T, float] = {}  # on the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    def add(self, item: T, at: float, loop: asyncio.AbstractEventLoop) -> None:
        self._at[item] = at
        if self._timer is None or at < self._timer.when():
            self._set_timer(at, loop)

    def remove(self, item: T) -> None:
        self._at.pop(item, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, at: float, loop: asyncio.AbstractEventLoop) -> None:
        self.close()
        self._timer = loop.call_at(at, self._on_timer, loop)

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """The item of this deadline may be gone: removing an item does not reset the timer."""
        self._timer = None
        now_s = loop.time()
        for item in [item for item, at in self._at.items() if at <= now_s]:
            del self._at[item]
            self._on_passed(item)
        if self._at:
            self._set_timer(min(self._at.values()), loop)


class Timeout:
    """Works like `asyncio.timeout`: cancels the block at its deadline, and raises a TimeoutError."""

    __slots__ = ("_cancelling", "_deadlines", "_passed", "_task", "at")

    def __init__(self, deadlines: Deadlines[Timeout], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
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
