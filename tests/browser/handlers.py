"""What `tickler serve --setup browser.handlers:failing` registers."""

from __future__ import annotations

from tickler import Delivery, Tickler

WHY = "RuntimeError: the postman has slipped"


def failing(tickler: Tickler) -> None:
    """A handler that every schedule can be broken with."""

    @tickler.handler("failing")
    async def fail(fire: Delivery) -> None:
        raise RuntimeError("the postman has slipped")
