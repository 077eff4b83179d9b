"""What many ask for at once, worked out once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Answers by key. An error is for all who wait for it, and is not kept."""

    def __init__(self) -> None:
        self._begun: dict[str | None, tuple[float, asyncio.Task[T]]] = {}  # by key: when, and what

    async def get(self, key: str | None, make: Callable[[], Coroutine[Any, Any, T]], fresh_s: float) -> T:
        """What `make` gave, or gives yet, where it began less than `fresh_s` ago; or else what it gives now.

        Whoever goes away while it is made leaves it to the others.
        """
        now = asyncio.get_running_loop().time()
        began, task = self._begun.get(key, (now, None))
        if task is None or now - began >= fresh_s or _has_failed(task):
            self._begun = {other: each for other, each in self._begun.items() if now - each[0] < fresh_s}
            task = asyncio.create_task(make())
            task.add_done_callback(_has_failed)  # looked at, also where nobody waits any more
            self._begun[key] = (now, task)
        return await asyncio.shield(task)


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
