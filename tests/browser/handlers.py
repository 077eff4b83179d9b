"""Handlers for `tickler serve --setup browser.handlers:failing`."""

from __future__ import annotations

from tickler import Delivery, Tickler

WHY = "RuntimeError: the postman has slipped"


def failing(tickler: Tickler) -> None:
    """Register a handler that always fails."""

    @tickler.handler("failing")
    async def fail(fire: Delivery) -> None:
        raise RuntimeError("the postman has slipped")
