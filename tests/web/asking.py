"""Asks an ASGI app directly, with headers and bodies exactly as given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from tickler.web.asgi import App


class Got(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> Any:
        assert self.headers["content-type"] == "application/problem+json", self
        return json.loads(self.body)


async def ask(
    app: App,
    method: str = "GET",
    path: str = "/",
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    body: Sequence[bytes] = (b"",),
    *,
    client: str = "203.0.113.7",
    host: str = "localhost",
    kind: str = "http",
) -> Got:
    """Send one request; `body` comes in these pieces."""
    pairs = [("host", host), *(headers.items() if isinstance(headers, Mapping) else headers)]
    place, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": kind,
        "path": place,
        "raw_path": quote(place, safe="/%").encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs if value or name != "host"],
        "client": (client, 1234),
    }
    if kind == "http":
        scope["method"] = method
    pieces, sent, answered = list(body), [], asyncio.Event()

    async def receive() -> Any:
        if kind == "websocket":
            return {"type": "websocket.connect"}
        if not pieces:
            await answered.wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            answered.set()

    await app(scope, receive, send)
    if kind == "websocket":
        return Got(sent[0].get("code", 0), {}, sent[0]["type"].encode())
    (start,) = [message for message in sent if message["type"] == "http.response.start"]
    names = [name.decode() for name, _ in start["headers"]]
    assert len(names) == len(set(names)), names
    found = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    return Got(start["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))
