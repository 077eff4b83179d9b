"""The service in a thread of its own, for clients that wait for their answers."""

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
    """Delivers to nobody: what is made up here must not leave this machine."""

    async def open(self) -> None:
        """Nothing is needed."""

    async def deliver(self, delivery: Delivery, target: object) -> Outcome:
        return Outcome(verdict="delivered", status=200)

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def live_service() -> Iterator[tuple[str, str]]:
    """Its URL, and a token that may do everything."""
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
