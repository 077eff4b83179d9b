"""Shares one computation among concurrent requests for the same value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Caches results by key for a short time. An error reaches all who wait for it, and is not cached."""

    def __init__(self) -> None:
        self._running: dict[str | None, tuple[float, asyncio.Task[T]]] = {}  # by key: start time, result

    async def get(self, key: str | None, make: Callable[[], Coroutine[Any, Any, T]], fresh_s: float) -> T:
        """Return the result of a `make` that started less than `fresh_s` ago, or else of a new one.

        Cancelling one waiter does not cancel `make` for the others.
        """
        now = asyncio.get_running_loop().time()
        began, task = self._running.get(key, (now, None))
        if task is None or now - began >= fresh_s or _has_failed(task):
            self._running = {other: each for other, each in self._running.items() if now - each[0] < fresh_s}
            task = asyncio.create_task(make())
            task.add_done_callback(_has_failed)  # retrieves the exception even if nobody awaits it
            self._running[key] = (now, task)
        return await asyncio.shield(task)


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
