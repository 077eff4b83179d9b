"""What AWS Lambda calls. The store stays open between calls of a process, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec
from mangum import Mangum

from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.app.handlers import begin_sweeps
from pricebook.web.app import create_app
from tickler import Clock, RunOptions

RESERVE_MS = 10_000  # of a call, for attempts that go on when the budget is spent
MIN_BUDGET_MS = 1_000
MAX_BUDGET_MS = 50_000  # the next beat comes each minute

R = TypeVar("R")


class LambdaContext(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


class Functions:
    """Opens the store when it is first needed. `close` is for tests: Lambda ends processes without a word."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._loop = asyncio.new_event_loop()
        self._opened = AsyncExitStack()
        self._book: Pricebook | None = None
        self._adapter: Mangum | None = None

    def web(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answer a request of API Gateway, or of the URL of a function."""
        asyncio.set_event_loop(self._loop)  # the adapter runs the application on it
        if self._adapter is None:
            book = self.run(_itself)
            self._adapter = Mangum(_with_raw_path(create_app(book).asgi), lifespan="off")
        return self._adapter(event, context)

    def stream(self, event: Mapping[str, Any], context: object) -> dict[str, Any]:
        """Follow the changes of a batch of the table's stream, and say from which on Lambda has to repeat them."""
        return self.run(lambda book: book.settling.consume_event(event))

    def tick(self, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Deliver what is due; or settle one store, if the event names it: `{"store": "12345"}`."""
        store = event.get("store")
        if isinstance(store, str):
            return {"result": self.run(lambda book: book.settling.settle(store))}
        left_ms = context.get_remaining_time_in_millis() - RESERVE_MS
        budget_ms = min(MAX_BUDGET_MS, max(MIN_BUDGET_MS, left_ms))
        return self.run(lambda book: _tick(book, budget_ms))

    def run(self, work: Callable[[Pricebook], Awaitable[R]]) -> R:
        """Do something with the open pricebook."""
        return self._loop.run_until_complete(self._run(work))

    def close(self) -> None:
        self._loop.run_until_complete(self._opened.aclose())
        self._loop.close()

    async def _run(self, work: Callable[[Pricebook], Awaitable[R]]) -> R:
        if self._book is None:
            self._book = await self._opened.enter_async_context(open_pricebook(self._settings, clock=self._clock))
        return await work(self._book)


async def _itself(book: Pricebook) -> Pricebook:
    return book


async def _tick(book: Pricebook, budget_ms: int) -> dict[str, Any]:
    await begin_sweeps(book)
    summary: dict[str, Any] = msgspec.to_builtins(await book.t.tick(budget_ms, RunOptions(drain=RESERVE_MS / 2_000)))
    return summary


def _with_raw_path(app: Any) -> Any:
    """Return an ASGI application for scopes without the path as it was sent, which the adapter leaves out."""

    async def adapted(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await app({**scope, "raw_path": quote(scope["path"]).encode()}, receive, send)

    return adapted
