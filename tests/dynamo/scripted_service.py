"""A loopback server that records requests, and gives responses that no engine would: refusals, pages of HTML, redirects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web

ERROR_TYPES = "com.amazon.coral.service#"


class Asked(msgspec.Struct, frozen=True):
    """A request as received."""

    method: str
    path: str
    headers: dict[str, str]  # with names in lower case
    body: bytes

    @property
    def key_id(self) -> str:
        """The access key id of its signature."""
        return self.headers["authorization"].partition("Credential=")[2].partition("/")[0]


class Answer(msgspec.Struct, frozen=True):
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = {}
    before: Callable[[], Awaitable[object]] | None = None  # awaited before it is sent


def refusal(name: str, message: str, status: int = 400) -> Answer:
    return Answer(status, json.dumps({"__type": ERROR_TYPES + name, "message": message}).encode())


class _Server(web.Server):
    """Tells when the last connection has ended."""

    def __init__(self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], empty: asyncio.Event) -> None:
        super().__init__(handle, access_log=None)
        self.connected = 0
        self._empty = empty

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self.connected += 1
        self._empty.clear()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self.connected -= 1
        if not self.connected:
            self._empty.set()


class ScriptedService:
    """Gives `answers` in order, and then empty ones."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[Asked] = []
        self.nobody_connected = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = _Server(self._handle, self.nobody_connected)
        self._sockets = await asyncio.get_running_loop().create_server(self._server, "127.0.0.1", 0)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._sockets.close()
        await self._server.shutdown(0.1)
        await self._sockets.wait_closed()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._sockets.sockets[0].getsockname()[1]}"

    @property
    def connections(self) -> int:
        return self._server.connected

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked(request.method, request.path_qs, headers, await request.read()))
        answer = self.answers.pop(0) if self.answers else Answer()
        if answer.before is not None:
            await answer.before()
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
