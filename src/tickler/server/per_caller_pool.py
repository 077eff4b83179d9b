"""A thread pool for long computations, shared fairly: one at a time per caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class PerCallerPool:
    """Runs work on a fixed number of threads. A caller's next work is queued only when the previous has ended."""

    def __init__(self, name: str, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        lock = self._locks.setdefault(caller, asyncio.Lock())
        async with lock:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
