"""Runs blocking work on a daemon thread of its own: in a pool, work that never returns would block the others and the exit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

from tickler.deliver.exhaustion import NoThread

T = TypeVar("T")


async def on_own_thread(work: Callable[[], T], name: str, on_ended: Callable[[], None] | None = None) -> T:
    """Return or raise what the work does. A cancelled caller no longer waits, but the work cannot be stopped: the event loop
    calls `on_ended` when it has really ended.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    result: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def end(answer: T | None, raised: BaseException | None) -> None:
        if on_ended is not None:
            on_ended()
        if not result.done():  # the caller was cancelled
            result.set_result((answer, raised))

    def run() -> None:
        answer: T | None = None
        raised: BaseException | None = None
        try:
            answer = context.run(work)
        except BaseException as error:
            raised = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(end, answer, raised)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError:  # the system refused
        if on_ended is not None:
            on_ended()
        raise NoThread from None
    answer, raised = await result
    if raised is not None:
        raise raised
    return answer  # type: ignore[return-value]  # None only if T includes it
