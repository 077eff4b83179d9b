"""`/settle`: a schedule of a store calls here, where no worker has its handler, or a managed scheduler keeps the time."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, post

from pricebook.web.context import HttpRequest, book_of, web_of
from tickler.errors import InvalidSignature
from tickler.web import Refused


@post("/settle", status_code=200)
async def settle(request: HttpRequest) -> Response[bytes]:
    """Settle the store of a signed delivery, and say what was done. It needs no token, and may come late, or twice."""
    try:
        result = await book_of(request).settling.receive(await request.body(), dict(request.headers))
    except InvalidSignature as error:
        web_of(request).count_failure(request.scope)
        raise Refused(401, str(error)) from None
    return Response(msgspec.json.encode({"result": result}), media_type="application/json")


SETTLE_ROUTES: list[Any] = [settle]
