"""Runs a function on the caller's thread, even while the caller waits for an event loop in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Set by the blocking wrapper while its caller waits: passes a function to the caller's thread.
hand_over: ContextVar[Callable[[Callable[[], None]], None] | None] = ContextVar("hand_over", default=None)


async def on_callers_thread(function: Callable[[], T]) -> T:
    """Call `function` and return its result. It may use objects bound to that thread, such as a sqlite3 connection."""
    give = hand_over.get()
    if give is None:
        return function()
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = function()
        except Exception as error:
            loop.call_soon_threadsafe(done.set_exception, error)
        except BaseException:  # such as Ctrl-C: it belongs to the caller and not to the loop
            loop.call_soon_threadsafe(done.cancel)
            raise
        else:
            loop.call_soon_threadsafe(done.set_result, result)

    give(run)
    return await done
