"""The service in its own thread, for blocking clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from server.served import serving
from tickler import HttpTarget, LambdaTarget, SqsTarget, connect
from tickler.model.delivery import Delivery, Outcome
from tickler.server.settings import ServerSettings


class Nowhere:
    """Delivers nothing: generated targets must not be contacted."""

    async def open(self) -> None:
        """Start nothing."""

    async def deliver(self, delivery: Delivery, target: object) -> Outcome:
        return Outcome(verdict="delivered", status=200)

    async def close(self) -> None:
        """Close nothing."""


@contextmanager
def live_service() -> Iterator[tuple[str, str]]:
    """Yield its URL, and a token with all scopes."""
    ready, stop = threading.Event(), asyncio.Event()
    found: list[Any] = []

    async def serve() -> None:
        async with connect("sqlite://") as t:
            for kind in (HttpTarget, SqsTarget, LambdaTarget):
                t.deliver_with(kind, Nowhere())
            _, token = await t.tokens.create(["read", "write", "operate"])
            async with serving(t, ServerSettings(rate=1_000_000)) as api:
                found.extend((f"http://127.0.0.1:{api.port}", token, asyncio.get_running_loop()))
                ready.set()
                await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    url, token, loop = found
    try:
        yield url, token
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
