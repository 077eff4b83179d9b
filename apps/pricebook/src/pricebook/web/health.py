"""Whether the process answers, for whoever restarts it, and whether its store does, for whoever sends it requests."""

from __future__ import annotations

import asyncio
from typing import Any

from litestar import Response, get
from litestar.enums import MediaType

from pricebook.model import Setting
from pricebook.web.context import HttpRequest, book_of
from tickler.errors import TicklerError
from tickler.web import Refused

READY_TIMEOUT_S = 5.0


@get("/health/live")
async def live() -> Response[str]:
    return Response("live", media_type=MediaType.TEXT)


@get("/health/ready")
async def ready(request: HttpRequest) -> Response[str]:
    """Read one small item, whether there is one or not."""
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await book_of(request).db.get(Setting.key.id("ready"))
    except (TicklerError, TimeoutError):
        raise Refused(503, "the store does not answer: try again in a moment", headers={"retry-after": "5"}) from None
    return Response("ready", media_type=MediaType.TEXT)


HEALTH_ROUTES: list[Any] = [live, ready]
