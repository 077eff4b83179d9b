"""Handlers for `tickler serve --setup browser.handlers:failing`."""

from __future__ import annotations

from datetime import timedelta

from tickler import Delivery, RetryLater, Tickler

WHY = "RuntimeError: the postman has slipped"


def failing(tickler: Tickler) -> None:
    """Register a handler that always fails, and one that always postpones."""

    @tickler.handler("failing")
    async def fail(fire: Delivery) -> None:
        raise RuntimeError("the postman has slipped")

    @tickler.handler("postponing")
    async def postpone(fire: Delivery) -> None:
        raise RetryLater(after=timedelta(days=2), reason="the post office is closed")
