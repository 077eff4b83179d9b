"""An HTTP session for URLs that users gave to an application: with the address guard of deliveries, and limits on answers."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from tickler.deliver.address_guard import AddressGuard, GuardedResolver
from tickler.deliver.counted_tls import CountedTls, counted, is_counted
from tickler.deliver.dns_resolver import SystemResolver
from tickler.errors import AddressRefused, InvalidInput
from tickler.version import VERSION

if TYPE_CHECKING:
    from aiohttp.client import ClientTimeout
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader
    from aiohttp.tracing import Trace

CONNECT_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 100
MAX_CONNECTIONS_PER_HOST = 10
KEEP_ALIVE_S = 15.0
DNS_CACHE_S = 10
READ_AHEAD_BYTES = 16 * 1024  # unread bytes of an answer; at twice as many, the connection stops reading
MAX_HEAD_BYTES = 64 * 1024  # of headers and what comes before or with them
SLICE_BYTES = 1_024
ACCEPTED_CODINGS = ("gzip", "deflate")


def open_session(
    guard: AddressGuard, *, timeout_s: float, max_bytes: int, resolver: AbstractResolver | None = None
) -> aiohttp.ClientSession:
    """Return a session that connects only to what `guard` allows, whatever URL a request has or is redirected to."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise InvalidInput("http_session: aiohttp needs an event loop: call this in a coroutine") from None
    checks = aiohttp.TraceConfig()
    checks.on_request_start.append(partial(_check_url, guard))
    checks.on_request_redirect.append(partial(_check_redirect, guard))
    return aiohttp.ClientSession(
        connector=_GuardedConnector(guard, resolver or SystemResolver(), max_bytes),
        timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S),
        headers={"user-agent": f"Tickler/{VERSION}", "accept-encoding": ", ".join(ACCEPTED_CODINGS)},
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        trace_configs=[checks],
        read_bufsize=READ_AHEAD_BYTES,
    )


async def _check_url(
    guard: AddressGuard, session: aiohttp.ClientSession, context: SimpleNamespace, request: aiohttp.TraceRequestStartParams
) -> None:
    """Check a URL as it was given: later, its user name is a header."""
    guard.check_url(str(request.url))


async def _check_redirect(
    guard: AddressGuard, session: aiohttp.ClientSession, context: SimpleNamespace, request: aiohttp.TraceRequestRedirectParams
) -> None:
    location = request.response.headers.get("location") or request.response.headers.get("uri")
    if location is None:
        return
    try:
        url = str(request.response.url.join(URL(location)))
    except ValueError:
        return  # aiohttp refuses it
    guard.check_url(url)


class _GuardedConnector(aiohttp.TCPConnector):
    """Checks every URL again, every resolved address, and every address that is connected to."""

    def __init__(self, guard: AddressGuard, resolver: AbstractResolver, max_bytes: int) -> None:
        super().__init__(
            limit=MAX_CONNECTIONS,
            limit_per_host=MAX_CONNECTIONS_PER_HOST,
            resolver=GuardedResolver(guard, resolver),
            ttl_dns_cache=DNS_CACHE_S,
            keepalive_timeout=KEEP_ALIVE_S,
            socket_factory=guard.socket_to,
        )
        self._guard = guard
        self._factory = partial(_response_handler, max_bytes, loop=self._loop)

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
        if req.proxy is not None:
            raise InvalidInput("proxy: this session uses none, since a proxy would connect to any address: leave it out")
        self._guard.check_url(str(req.url))
        try:
            connection = await super().connect(req, traces, timeout)
        except aiohttp.ClientConnectorError as error:
            refused = error.os_error.__cause__
            if isinstance(refused, AddressRefused):
                raise refused from None
            raise
        if req.is_ssl() and connection.transport is not None and not is_counted(connection.transport):
            connection.close()
            raise RuntimeError("nothing counts what TLS consumes: install a version of aiohttp that this Tickler supports")
        return connection

    def _get_ssl_context(self, req: ClientRequest) -> ssl.SSLContext | None:
        return counted(super()._get_ssl_context(req))


class _LimitedResponseHandler(ResponseHandler):
    """Fails an answer whose body is longer than `max_bytes`, as it was sent or decompressed, or whose head is endless.

    It accepts no other compression than it asks for: some libraries make gigabytes of a few bytes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_bytes: int) -> None:
        super().__init__(loop)
        self._max_bytes = max_bytes
        self._left = self._head_left = 0  # bytes that may still arrive for this request
        self._has_head = self._has_failed = False
        self._tls: CountedTls | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._tls = transport.get_extra_info("ssl_object")

    def set_response_params(self, **params: Any) -> None:
        """Reset the limits. aiohttp calls this once for each request, before it is sent."""
        self._left, self._head_left = self._max_bytes + MAX_HEAD_BYTES, MAX_HEAD_BYTES
        self._has_head = False
        if self._tls is not None:
            self._tls.left = self._left + MAX_HEAD_BYTES  # what TLS adds
        super().set_response_params(**params)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take the head of an answer, before anything of its body is decompressed."""
        message = data[0]
        self._has_head = self._has_head or message.code >= HTTPStatus.OK
        if message.compression not in (None, *ACCEPTED_CODINGS):
            self._fail(f"the answer is compressed as {message.compression}, which was not asked for: ask for another URL")
            return
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        """Pass on a little at a time, and look each time what that became: a kilobyte may become a megabyte."""
        self._left -= len(data)
        if self._left < 0:
            self._fail(f"the answer is longer than {self._max_bytes:,} bytes: pass max_bytes= to allow more")
            return
        start = 0
        while True:
            end = start + SLICE_BYTES if self._has_head else self._end_of_line(data, start)
            if self._has_failed:
                return
            super().data_received(data[start:end])  # without data, it resumes what waits
            if self._payload is not None and self._payload.total_bytes > self._max_bytes:
                self._fail(f"the answer is longer than {self._max_bytes:,} bytes: pass max_bytes= to allow more")
            start = end
            if start >= len(data):
                return

    def _end_of_line(self, data: bytes, start: int) -> int:
        """Return where a line of the head ends: so its last line never comes together with the body."""
        end = data.find(b"\n", start) + 1 or len(data)
        self._head_left -= end - start
        if self._head_left < 0:
            self._fail(f"the head of the answer is longer than {MAX_HEAD_BYTES // 1024} KB: ask for another URL")
        return end

    def _fail(self, why: str) -> None:
        self._has_failed = True
        error = aiohttp.ClientPayloadError(why)
        if self._payload is not None:
            self._payload.set_exception(error)
        self.set_exception(error)
        if self.transport is not None:
            self.transport.abort()


def _response_handler(max_bytes: int, *, loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return _LimitedResponseHandler(loop, max_bytes)
