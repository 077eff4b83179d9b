"""Delivers to a Python function that is registered in this process."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec

from tickler.deliver.abandonable_task import mark_running
from tickler.deliver.exhaustion import NoThread
from tickler.deliver.handler_thread import on_own_thread
from tickler.deliver.missing_targets import missing_target
from tickler.errors import GiveUp, InvalidInput
from tickler.model.delivery import Delivery, Outcome
from tickler.model.fire import MAX_ANSWER_BYTES
from tickler.model.target import PythonTarget

Handler = Callable[[Delivery], Awaitable[object] | object]
H = TypeVar("H", bound=Handler)

ECHO = "echo"


async def echo(delivery: Delivery) -> object:
    """Return the payload. Every worker has this handler, to try things out."""
    if delivery.payload is not None:
        return delivery.payload
    return f"{delivery.owner}/{delivery.key} at {delivery.nominal:%H:%M:%S} UTC"


class Handlers:
    """Handlers by name. Nothing is ever imported from stored text."""

    def __init__(self) -> None:
        self._by_name: dict[str, Handler] = {ECHO: echo}

    @property
    def names(self) -> list[str]:
        return sorted(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def register(self, name: str, handler: Handler) -> None:
        PythonTarget(name)  # checks the name
        if not callable(handler):
            raise InvalidInput(f"handler {name!r} is a {type(handler).__name__}: pass a function that takes the delivery")
        if name in self._by_name:
            raise InvalidInput(f"handler {name!r} is registered already: choose another name")
        self._by_name[name] = handler

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def deliver(self, delivery: Delivery, target: PythonTarget) -> Outcome:
        """Call the handler. A plain function runs on a thread of its own, which nothing can stop after its timeout."""
        handler = self._by_name.get(target.handler)
        if handler is None:
            return missing_target(target)
        try:
            if inspect.iscoroutinefunction(handler):
                answer = await handler(delivery)
            else:
                has_ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                end = partial(has_ended.set_result, None)
                try:
                    answer = await on_own_thread(partial(handler, delivery), f"tickler-{delivery.id}", end)
                except asyncio.CancelledError as error:
                    mark_running(error, has_ended)
                    raise
                except NoThread as error:
                    return Outcome(verdict="release", detail=f"the worker is out of threads: {error}", obstacle="exhausted")
                if inspect.isawaitable(answer):
                    answer = await answer
        except GiveUp as error:
            return Outcome(verdict="give_up", detail=str(error) or "the handler gave up")
        return Outcome(verdict="delivered", answer=_shown(answer))


def _shown(answer: object) -> str | None:
    """Return what a handler returned as text for the history. Whatever it is, the fire is delivered."""
    if answer is None:
        return None
    text = f"a {type(answer).__name__}"
    for show in (_as_json, repr):
        try:
            text = show(answer)
            break
        except Exception:  # noqa: S112  # a user's object may raise anything
            continue
    return text[:MAX_ANSWER_BYTES]


def _as_json(answer: object) -> str:
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
