"""An id for each request: in the answer, in the audit and in the log, so that one leads to the others."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

HEADER = b"x-request-id"
REQUEST_ID = "pricebook.request_id"  # key in the ASGI scope

_USABLE = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """ASGI middleware. A client, or a proxy, may name its requests itself; an id that cannot be used is replaced."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == HEADER]
        is_usable = len(sent) == 1 and _USABLE.fullmatch(sent[0])
        id = sent[0] if is_usable else secrets.token_hex(8).encode()

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (HEADER, id)]}
            await send(message)

        named: Any = {**scope, REQUEST_ID: id.decode()}
        await self._app(named, receive, answer)


def request_id_of(scope: Mapping[str, Any]) -> str:
    return str(scope.get(REQUEST_ID, ""))
