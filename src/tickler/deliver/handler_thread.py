"""Work that blocks, on a thread of its own: what never returns would fill a pool, and keep the process from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

from tickler.deliver.exhaustion import NoThread

T = TypeVar("T")


async def on_own_thread(work: Callable[[], T], name: str, ended: Callable[[], None] | None = None) -> T:
    """What it returns or raises. Who is cancelled waits no more, but it cannot be stopped; `ended` is called, by the event
    loop, when it really has.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    result: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def end(answer: T | None, raised: BaseException | None) -> None:
        if ended is not None:
            ended()
        if not result.done():  # it was not waited for any more
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
    except RuntimeError:  # the system has no more of them
        if ended is not None:
            ended()
        raise NoThread from None
    answer, raised = await result
    if raised is not None:
        raise raised
    return answer  # type: ignore[return-value]  # it was returned: None only where T has it
