"""Those who ask while an answer is on its way are answered together by the next: they share its round trips and its commit.

Whoever asks alone is answered at once, and an answer that is long in coming is not waited for by others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")

MAX_BATCH = 100
MAX_WAIT_S = 0.1  # so long an answer may take before the next are asked for beside it


class RequestBatcher(Generic[A, B]):
    """`answer` gets what several ask for, and gives an answer for each, in order. What it raises is raised for all of them.

    No two that `apart` gives the same key are asked for together.
    """

    def __init__(
        self, answer: Callable[[Sequence[A]], Awaitable[Sequence[B]]], apart: Callable[[A], Hashable] | None = None
    ) -> None:
        self._answer = answer
        self._apart = apart
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._serving: asyncio.Task[None] | None = None
        self._slow: set[asyncio.Task[None]] = set()

    async def ask(self, asked: A) -> B:
        future: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, future))
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        return await future

    async def _serve(self) -> None:
        try:
            while batch := self._next():
                settling = asyncio.create_task(self._settle(batch))
                _end_with(settling, [future for _, future in batch])
                await asyncio.wait([settling], timeout=MAX_WAIT_S)
                if not settling.done():
                    self._slow.add(settling)
                    settling.add_done_callback(self._slow.discard)
        finally:
            self._serving = None

    def _next(self) -> list[tuple[A, asyncio.Future[B]]]:
        batch: list[tuple[A, asyncio.Future[B]]] = []
        later: list[tuple[A, asyncio.Future[B]]] = []
        keys: set[Hashable] = set()
        for asked, future in self._waiting:
            if future.done():
                continue  # whoever asked has gone
            key = self._apart(asked) if self._apart is not None else len(batch)
            if key in keys or len(batch) == MAX_BATCH:
                later.append((asked, future))
            else:
                keys.add(key)
                batch.append((asked, future))
        self._waiting = later
        return batch

    async def _settle(self, batch: Sequence[tuple[A, asyncio.Future[B]]]) -> None:
        try:
            answers = await self._answer([asked for asked, _ in batch])
        except asyncio.CancelledError:  # nobody waits any more, or the loop is being closed
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)


def _end_with(settling: asyncio.Task[None], futures: Sequence[asyncio.Future[B]]) -> None:
    """Nothing goes on for nobody: once all who asked have gone, what is under way is undone."""
    left = len(futures)

    def count(future: asyncio.Future[B]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            settling.cancel()

    for future in futures:
        future.add_done_callback(count)
