"""Threads for what takes long to work out, such as the next instants of an expression: nobody else needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Previews:
    """One at a time for each caller, so that many of one do not hold up those of another."""

    def __init__(self, name: str, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def work_out(self, caller: str, work: Callable[[], T]) -> T:
        turn = self._turns.setdefault(caller, asyncio.Lock())
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
