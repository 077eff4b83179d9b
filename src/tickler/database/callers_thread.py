"""Running something on the thread that the caller is on, also when the caller waits in another one for an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Set by the blocking wrapper while its caller waits: hands a function over to be run there.
hand_over: ContextVar[Callable[[Callable[[], None]], None] | None] = ContextVar("hand_over", default=None)


async def on_callers_thread(function: Callable[[], T]) -> T:
    """What `function` returns. An object that is bound to its thread, such as a sqlite3 connection, can be used in it."""
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
        except BaseException:  # such as Ctrl-C: the caller's own, and no business of the loop's
            loop.call_soon_threadsafe(done.cancel)
            raise
        else:
            loop.call_soon_threadsafe(done.set_result, result)

    give(run)
    return await done
