"""The style and the scripts of the page."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get

from tickler.web.assets import Assets
from tickler.web.problems import Refused

ASSETS = Assets("tickler.server.pages", shared=True)


@get("/static/{name:path}", opt={"scope": "nothing"})
async def asset(request: Request[Any, Any, Any]) -> Response[bytes]:
    found = ASSETS.find(request.path_params["name"].removeprefix("/"))
    if found is None:
        raise Refused(404, "no such file")
    return Response(found.body, headers=found.headers_for(request.scope["query_string"]))
