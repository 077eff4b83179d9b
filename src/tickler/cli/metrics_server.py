"""The HTTP endpoint for metrics of `tickler work`, which has no other server. It listens on the loopback address by default."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from errno import EADDRINUSE
from importlib import import_module
from typing import Protocol

from tickler.client import Tickler
from tickler.distribution import install_command
from tickler.errors import InvalidInput

HOST = "127.0.0.1"
REQUEST_TIMEOUT_S = 5.0
MAX_HEAD_BYTES = 16 * 1024


class RendersMetrics(Protocol):
    media_type: str

    async def render(self) -> bytes: ...


@asynccontextmanager
async def serving_metrics(tickler: Tickler, port: int | None, host: str = HOST) -> AsyncIterator[None]:
    """Answer `GET /metrics` at this port inside the context; without a port, do nothing."""
    if port is None:
        yield
        return
    metrics = _metrics(tickler)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await _answer(head, metrics))
            await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=MAX_HEAD_BYTES)
    except OSError as error:
        remedy = "choose another port" if error.errno == EADDRINUSE else "choose another --metrics-host or port"
        raise InvalidInput(f"--metrics: cannot listen on {host}:{port} ({error.strerror}): {remedy}") from None
    async with server:
        yield


def _metrics(tickler: Tickler) -> RendersMetrics:
    try:
        metrics: RendersMetrics = import_module("tickler.observe.metrics").Metrics(tickler)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"--metrics: {error.name} is not installed: {install_command('server')}") from None
    return metrics


async def _answer(head: bytes, metrics: RendersMetrics) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if (method, path) != (b"GET", b"/metrics"):
        return _response("404 Not Found", "text/plain; charset=utf-8", b"not found: use GET /metrics\n")
    return _response("200 OK", metrics.media_type, await metrics.render())


def _response(status: str, media_type: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body
