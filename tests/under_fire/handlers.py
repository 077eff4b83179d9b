"""What `tickler work --setup under_fire.handlers:…` registers."""

from __future__ import annotations

import asyncio
import time

from tickler import Delivery, Tickler


def never_ending(tickler: Tickler) -> None:
    """Handlers that wait for ever: one can be cancelled, one cannot."""

    @tickler.handler("async")
    async def wait(fire: Delivery) -> None:
        await asyncio.Event().wait()

    @tickler.handler("plain")
    def sleep(fire: Delivery) -> None:
        while True:
            time.sleep(60)


def quick(tickler: Tickler) -> None:
    """The same names, and nothing to do."""
    for name in ("async", "plain"):
        tickler.handler(name)(lambda fire: None)


def looking(tickler: Tickler) -> None:
    """A handler that looks at its payload, and keeps it for a while."""

    @tickler.handler("look")
    async def look(fire: Delivery) -> str:
        payload = fire.payload
        await asyncio.sleep(0.1)
        return type(payload).__name__
