"""Batches requests that arrive while another is in progress, so that they share round trips and a commit.

A single request is sent at once, and later requests do not wait for a slow batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")

MAX_BATCH = 100
MAX_WAIT_S = 0.1  # how long a batch may take before the next one starts beside it


class RequestBatcher(Generic[A, B]):
    """Calls `answer` with a batch of requests; it returns their answers in order, and an error of it goes to all of them.

    Requests for which `apart` returns the same key are never in one batch.
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
                continue  # the caller was cancelled
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
        except asyncio.CancelledError:  # all callers were cancelled, or the loop closes
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
    """Cancel a batch once all its callers were cancelled."""
    left = len(futures)

    def count(future: asyncio.Future[B]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            settling.cancel()

    for future in futures:
        future.add_done_callback(count)
