"""What `tickler work --setup under_fire.handlers:…` registers."""

from __future__ import annotations

import asyncio
import os
import time

from tickler import Delivery, RetryLater, Tickler

POSTPONED_MS = 15_000


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


def postponing(tickler: Tickler) -> None:
    """A handler that postpones every fire until 15 seconds after its instant, and appends what it does to a file."""
    log = os.open(os.environ["UNDER_FIRE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @tickler.handler("early")
    async def early(fire: Delivery) -> None:
        begins = tickler.now_ms() >= fire.nominal_at + POSTPONED_MS
        os.write(log, f"{'begun' if begins else 'postponed'} {fire.id}\n".encode())
        await asyncio.sleep(0.05)
        if not begins:
            raise RetryLater(after=1, reason="too early")
