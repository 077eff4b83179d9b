"""The service on uvicorn in the test's event loop, and a client that sends requests exactly as given."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

import aiohttp
from multidict import CIMultiDictProxy
from uvicorn.server import ServerState
from yarl import URL

from server.described import check_described
from tickler import Tickler
from tickler.server.app import make_app
from tickler.server.middleware.uvicorn_protocol import PROTOCOLS, uvicorn_config
from tickler.server.settings import ServerSettings

PROBLEM = "application/problem+json"
NDJSON = "application/x-ndjson"


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def is_problem(self) -> bool:
        return self.headers.get("content-type") == PROBLEM and self.json["status"] == self.status

    @property
    def field(self) -> str | None:
        """The field at fault."""
        assert self.is_problem, self
        found: str | None = self.json.get("field")
        return found


class Api:
    """A client. Responses must match the OpenAPI document, and are never a 5xx."""

    def __init__(self, port: int, session: aiohttp.ClientSession, headers: Mapping[str, str] | None = None) -> None:
        self.port = port
        self.session = session
        self.headers = dict(headers or {})

    def bearing(self, token: str) -> Self:
        """Return a client of the same service with a token."""
        return type(self)(self.port, self.session, {"authorization": f"Bearer {token}"})

    def url(self, path: str) -> URL:
        """Return the URL of a path without encoding or normalizing it."""
        return URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)

    async def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, check: bool = True
    ) -> Answer:
        """Send a request; `body` is sent unchanged if it is bytes or a stream, else as JSON."""
        sent = dict(self.headers)
        if body is not None and not isinstance(body, bytes) and not hasattr(body, "__aiter__"):
            body = json.dumps(body).encode()
            sent["content-type"] = "application/json"
        given = {**sent, **(headers or {})}
        skip = () if "content-type" in {name.lower() for name in given} else ("content-type",)
        async with self.session.request(
            method, self.url(path), data=body, headers=given, skip_auto_headers=skip, allow_redirects=False
        ) as response:
            answer = Answer(response.status, response.headers, await response.read())
        if check:
            assert answer.status < 500, answer
            check_described(method, path, answer.status, answer.headers.get("content-type", ""), answer.body)
        return answer

    async def get(self, path: str, **headers: str) -> Answer:
        return await self("GET", path, headers=_dashed(headers))

    async def put(self, path: str, body: Any, **headers: str) -> Answer:
        return await self("PUT", path, body, headers=_dashed(headers))

    async def patch(self, path: str, body: Any, **headers: str) -> Answer:
        return await self("PATCH", path, body, headers=_dashed(headers))

    async def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return await self("POST", path, body, headers=_dashed(headers))

    async def delete(self, path: str, **headers: str) -> Answer:
        return await self("DELETE", path, headers=_dashed(headers))

    async def bytes_for(self, sent: bytes, *, half_close: bool = False, within_s: float = 20.0) -> bytes:
        """Send raw bytes, and return all that comes back until the service closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(within_s):
                writer.write(sent)
                if half_close:
                    writer.write_eof()
                return await reader.read()
        finally:
            writer.transport.abort()


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@asynccontextmanager
async def serving(
    tickler: Tickler, settings: ServerSettings | None = None, *, protocol: type[asyncio.Protocol] = PROTOCOLS[0], app: Any = None
) -> AsyncIterator[Api]:
    """Serve without uvicorn's main loop, which takes a tenth of a second to start and to stop."""
    settings = settings or ServerSettings(port=0)
    config = uvicorn_config(app or make_app(tickler, settings), settings, protocol)
    config.load()
    state = ServerState()
    made: Any = config.http_protocol_class
    listening = socket.create_server(("127.0.0.1", 0))
    server = await asyncio.get_running_loop().create_server(
        lambda: made(config=config, server_state=state, app_state={}), sock=listening
    )
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
            yield Api(listening.getsockname()[1], session)
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=2)
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
