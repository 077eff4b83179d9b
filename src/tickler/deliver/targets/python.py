"""Delivers to a Python function that this worker registered."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

import msgspec

from tickler.delivery import Delivery, Outcome
from tickler.errors import GiveUp, InvalidInput
from tickler.fires import LONGEST_ANSWER_BYTES
from tickler.target import PythonTarget

Handler = Callable[[Delivery], Awaitable[object] | object]
H = TypeVar("H", bound=Handler)


class Handlers:
    """Handlers by the name that targets have. Nothing is ever imported from stored text."""

    def __init__(self) -> None:
        self._by_name: dict[str, Handler] = {}

    def register(self, name: str, handler: Handler) -> None:
        PythonTarget(name)  # checks the name
        if not callable(handler):
            raise InvalidInput(f"handler {name!r}: is a {type(handler).__name__}: pass a function that takes the delivery")
        if name in self._by_name:
            raise InvalidInput(f"handler {name!r} is registered already: choose another name")
        self._by_name[name] = handler

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def deliver(self, delivery: Delivery, target: PythonTarget) -> Outcome:
        """A plain function runs on a thread of its own: it is not waited for after its timeout, and cannot be stopped."""
        handler = self._by_name.get(target.handler)
        if handler is None:
            known = ", ".join(sorted(self._by_name)) or "none"
            return Outcome(verdict="retry", detail=f"this worker has no handler {target.handler!r}: it has {known}; register it")
        try:
            if inspect.iscoroutinefunction(handler):
                answer = await handler(delivery)
            else:
                answer = await _on_a_thread(handler, delivery)
                if inspect.isawaitable(answer):
                    answer = await answer
        except GiveUp as error:
            return Outcome(verdict="give_up", detail=str(error) or "the handler gave up")
        return Outcome(verdict="delivered", answer=_shown(answer))


async def _on_a_thread(handler: Handler, delivery: Delivery) -> object:
    """One for each, and no pool: those that never return would fill it, and the process could not end before them."""
    loop, context = asyncio.get_running_loop(), copy_context()
    ended: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def end(answer: object, raised: BaseException | None) -> None:
        if not ended.done():  # it was not waited for any more
            ended.set_result((answer, raised))

    def work() -> None:
        answer: object = None
        raised: BaseException | None = None
        try:
            answer = context.run(handler, delivery)
        except BaseException as error:
            raised = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(end, answer, raised)

    threading.Thread(target=work, name=f"tickler-{delivery.id}", daemon=True).start()
    answer, raised = await ended
    if raised is not None:
        raise raised
    return answer


def _shown(answer: object) -> str | None:
    """What a handler returned, for the history. It was delivered, whatever this makes of it."""
    if answer is None:
        return None
    text = f"a {type(answer).__name__}"
    for show in (_as_json, repr):
        try:
            text = show(answer)
            break
        except Exception:  # noqa: S112  # it is somebody else's object
            continue
    return text[:LONGEST_ANSWER_BYTES]


def _as_json(answer: object) -> str:
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
