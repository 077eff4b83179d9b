"""Runs work beside a block of code, as an `asyncio.TaskGroup` with one task would."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from typing import Any

from tickler.database.callers_thread import hand_over

log = logging.getLogger("tickler")


@asynccontextmanager
async def running_in_background(work: Coroutine[Any, Any, None], stop: Callable[[], None], name: str) -> AsyncIterator[None]:
    """Run `work` while the block runs. At its end, call `stop`, wait for the work, and raise its error.

    If the work fails earlier, the block is cancelled, and the error is raised in its place. A block that is cancelled waits for
    the work too; cancelled again, it cancels the work. The wrapper without `await` cannot interrupt its block, so there the error
    is logged at once, and raised at the end.
    """
    context = copy_context()
    context.run(hand_over.set, None)  # the call that began this block ends before the work does
    task = asyncio.create_task(work, context=context)
    block = _Block(name)
    task.add_done_callback(block.on_end)
    try:
        yield
    finally:
        block.is_ending = True
        stop()
        await _until_ended(task)
        await block.uncancel()
        if not task.cancelled():
            task.result()


class _Block:
    """The block that a background task runs beside."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._host = asyncio.current_task()
        self._was_cancelled = False  # by `on_end`
        self.is_ending = False

    def on_end(self, task: asyncio.Task[None]) -> None:
        """Log a failure, and cancel the block."""
        if not _has_failed(task):
            return
        log.error("%s has stopped: %r", self._name, task.exception())
        if not self.is_ending and self._host is not None:
            self._was_cancelled = self._host.cancel()  # False where the task that entered the block has ended

    async def uncancel(self) -> None:
        """Take back our cancellation, which may not have arrived yet. One by others still counts."""
        if self._was_cancelled and self._host is asyncio.current_task() and self._host is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            self._host.uncancel()


async def _until_ended(task: asyncio.Task[None]) -> None:
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        if not _has_failed(task):  # a failure is raised instead
            raise


def _has_failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def innermost(error: BaseException) -> BaseException:
    """Return the only error of a group, and of the groups in it; a group of several stays one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    return error
