"""Whether the process answers, for whoever restarts it."""

from __future__ import annotations

from litestar import Response, get
from litestar.enums import MediaType

from slothpost.web.pages.rendering import EVERYBODY


@get("/health/live", opt=EVERYBODY)
async def live() -> Response[str]:
    return Response("live", media_type=MediaType.TEXT)


HANDLERS = [live]
