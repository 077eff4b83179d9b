"""uvicorn protocols with limits on connections, header size and time, which answer malformed requests with problem+json."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tickler.deliver.log_throttle import ThrottledLog
from tickler.process.file_limit import file_limit
from tickler.server.middleware.connection_limit import ConnectionLimit, connection_limits
from tickler.server.problems import problem_of
from tickler.server.settings import ServerSettings
from tickler.web.addresses import caller_address, is_within, networks_of
from tickler.web.problems import MEDIA_TYPE, Refused

HEAD_TIMEOUT_S = 10.0  # for the head of a request to arrive
LINGER_S = 2.0  # for the client to finish sending a refused request
STALL_TIMEOUT_S = 30.0  # for a client that stopped reading its response
MAX_HEAD_BYTES = 65_536
MAX_DISCARDED_BYTES = 64 * 1024 * 1024  # of a body answered early; discarded, so that the client reads the answer
SHUTDOWN_TIMEOUT_S = 2  # for responses in progress
QUEUED_CONNECTIONS = 2_048  # that the operating system holds until they are accepted

log = logging.getLogger("tickler.server")

if TYPE_CHECKING:
    _Protocol = H11Protocol
else:
    _Protocol = object


class ServiceConfig(uvicorn.Config):
    """uvicorn's configuration, with the state that all connections share."""

    def __init__(self, app: Any, settings: ServerSettings, protocol: type[asyncio.Protocol]) -> None:
        limits = connection_limits(file_limit(), settings.max_connections, settings.max_address_connections)
        self.connection_limit = ConnectionLimit(limits)
        self.proxies = networks_of(settings.proxies)
        self.limit_log = ThrottledLog(log, logging.WARNING, "%d more connections closed or refused: connection limit reached")
        super().__init__(
            app,
            http=protocol,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            backlog=limits.burst,  # the loop may accept this many before it counts the first
            forwarded_allow_ips=list(settings.proxies),
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        )


class _Bounded(_Protocol):
    """Mixin for uvicorn's protocols that limits connections, header size and waiting times."""

    config: ServiceConfig
    _received = 0
    _refused = False
    _answered: Any = None  # the request being answered; `cycle` may be a pipelined one behind it
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        _set_no_delay(transport)
        self._await_head()
        if not self.config.connection_limit.add(self, self._counted_address()):
            self.config.limit_log.log("refused a connection from %s: connection limit reached, and none is idle", self._peer)
            self._refused = True
            transport.write(_answer(503, "too many connections: close some, or try again in a moment"))
            transport.close()  # at once: it is above the limit

    def connection_lost(self, exc: Exception | None) -> None:
        self.config.connection_limit.remove(self)
        self._cancel_head_timer()
        self._cancel_stall_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._refused:
            if self._received > MAX_DISCARDED_BYTES:
                self.transport.abort()
            return
        super().data_received(data)
        if self._refused or self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_head_timer()
            self.config.connection_limit.answering(self)
            return
        self._await_head()
        self._head_bytes += len(data)
        is_discarded = self.cycle is not None and self.cycle.more_body
        if self._head_bytes > (MAX_DISCARDED_BYTES if is_discarded else MAX_HEAD_BYTES):
            self._refuse(431, f"the head of the request is longer than {MAX_HEAD_BYTES} bytes: shorten it")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        self._cancel_stall_timer()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self.config.connection_limit.idle(self)

    def evict(self) -> None:
        self.config.limit_log.log("closed an idle connection from %s for a new one: connection limit reached", self._peer)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "malformed HTTP request: send HTTP/1.1")

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else "an unknown address"

    def _counted_address(self) -> str | None:
        """Return the address for the limit; None for a proxy, which connects for many."""
        if self.client is None or is_within(self.client[0], self.config.proxies):
            return None
        return caller_address(self.client[0])

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _cancel_head_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _await_reader(self) -> None:
        self._stall_timer = self.loop.call_later(STALL_TIMEOUT_S, self._on_stall, self._received)

    def _on_stall(self, received: int) -> None:
        """Abort, unless the client is still sending: it may read later."""
        if self._received > received:
            self._await_reader()
        else:
            self.transport.abort()

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _refuse(self, status: int, detail: str) -> None:
        """Send a problem, unless a response has started. Discard input for a while: some clients send all before they read."""
        self._refused = True
        self._cancel_head_timer()
        cycle = self._answered or self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_answer(status, detail))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # tells the app that nothing more is read or written
            cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._head_timer = self.loop.call_later(LINGER_S, self.transport.close)


class BoundedH11(_Bounded, H11Protocol):
    """Used if httptools is not installed."""


try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    PROTOCOLS: tuple[type[asyncio.Protocol], ...] = (BoundedH11,)
else:

    class BoundedHttpTools(_Bounded, HttpToolsProtocol):  # type: ignore[misc]  # both have the attributes used here
        """Used if httptools is installed: faster."""

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            self._answered = cycle
            super()._start_asgi_task(cycle, app)

    PROTOCOLS = (BoundedHttpTools, BoundedH11)


class ServiceServer(uvicorn.Server):
    """Accepts few connections at a time, while the operating system queues many."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(QUEUED_CONNECTIONS)


def uvicorn_config(app: Any, settings: ServerSettings, protocol: type[asyncio.Protocol] = PROTOCOLS[0]) -> uvicorn.Config:
    """Return uvicorn's configuration for the service."""
    return ServiceConfig(app, settings, protocol)


def _set_no_delay(transport: asyncio.Transport) -> None:
    """Set TCP_NODELAY, which asyncio does only if the listening socket names its protocol. Without it, the body lags by 40 ms."""
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _answer(status: int, detail: str) -> bytes:
    problem = problem_of(Refused(status, detail))
    body = msgspec.json.encode(problem)
    lines = [
        f"HTTP/1.1 {status} {problem.title}",
        f"content-type: {MEDIA_TYPE}",
        f"content-length: {len(body)}",
        "x-content-type-options: nosniff",
        "connection: close",
    ]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body
