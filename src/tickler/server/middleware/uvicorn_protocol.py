"""The wire: bytes before they are a request. What never becomes one is answered with a problem; nobody is waited for long."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tickler.deliver.log_throttle import ThrottledLog
from tickler.file_limit import file_limit
from tickler.server.middleware.addresses import caller_address, is_within, networks_of
from tickler.server.middleware.connection_limit import ConnectionLimit, connection_limits
from tickler.server.problems import MEDIA_TYPE, Refused, problem_of
from tickler.server.settings import ServerSettings

HEAD_S = 10.0  # for the head of a request to arrive in
LINGER_S = 2.0  # for what is refused to be sent to its end
STALLED_S = 30.0  # for somebody to go on reading what they asked for
MAX_HEAD_BYTES = 65_536
MAX_LEFT_OVER_BYTES = 64 * 1024 * 1024  # of a body that was answered before it was there: thrown away, so that the answer is read
GOODBYE_S = 2  # for answers that are on their way when it stops
QUEUED_CONNECTIONS = 2_048  # that the system holds until they are accepted

log = logging.getLogger("tickler.server")

if TYPE_CHECKING:
    _Protocol = H11Protocol
else:
    _Protocol = object


class ServiceConfig(uvicorn.Config):
    """How the service is served, and what its connections share."""

    def __init__(self, app: Any, settings: ServerSettings, protocol: type[asyncio.Protocol]) -> None:
        limits = connection_limits(file_limit(), settings.max_connections, settings.max_address_connections)
        self.connection_limit = ConnectionLimit(limits)
        self.proxies = networks_of(settings.proxies)
        self.crowded = ThrottledLog(log, logging.WARNING, "%d more connections were closed or refused to keep within the limits")
        super().__init__(
            app,
            http=protocol,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            backlog=limits.burst,  # so many are accepted before the first of them is counted
            forwarded_allow_ips=list(settings.proxies),
            timeout_graceful_shutdown=GOODBYE_S,
        )


class _Bounded(_Protocol):
    """Beside one of uvicorn's protocols: bounds in number, size and time what that waits for."""

    config: ServiceConfig
    _received = 0
    _refused = False
    _answered: Any = None  # the request that is answered now; `cycle` may be one that waits behind it
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _stalled_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        _send_at_once(transport)
        self._await_head()
        if not self.config.connection_limit.add(self, self._counted_address()):
            self.config.crowded.log("refused a connection from %s: all that may be open are in use", self._peer)
            self._refused = True
            transport.write(_answer(503, "too many connections are open: close some, or come back in a moment"))
            transport.close()  # at once: it is one more than may be open

    def connection_lost(self, exc: Exception | None) -> None:
        self.config.connection_limit.remove(self)
        self._head_came()
        self._goes_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._refused:
            if self._received > MAX_LEFT_OVER_BYTES:
                self.transport.abort()
            return
        super().data_received(data)
        if self._refused or self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._head_came()
            self.config.connection_limit.answering(self)
            return
        self._await_head()
        self._head_bytes += len(data)
        is_left_over = self.cycle is not None and self.cycle.more_body
        if self._head_bytes > (MAX_LEFT_OVER_BYTES if is_left_over else MAX_HEAD_BYTES):
            self._refuse(431, f"the head of the request is longer than {MAX_HEAD_BYTES} bytes: send less in it")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        self._goes_on()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self.config.connection_limit.idle(self)

    def give_way(self) -> None:
        self.config.crowded.log("closed an idle connection from %s for another: as many are open as may be", self._peer)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is no HTTP request: nothing could be read of it")

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else "an unknown address"

    def _counted_address(self) -> str | None:
        """None for a proxy, which connects for many."""
        if self.client is None or is_within(self.client[0], self.config.proxies):
            return None
        return caller_address(self.client[0])

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _head_came(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _await_reader(self) -> None:
        self._stalled_timer = self.loop.call_later(STALLED_S, self._stalled, self._received)

    def _stalled(self, received: int) -> None:
        """Whoever still sends may read later."""
        if self._received > received:
            self._await_reader()
        else:
            self.transport.abort()

    def _goes_on(self) -> None:
        if self._stalled_timer is not None:
            self._stalled_timer.cancel()
            self._stalled_timer = None

    def _refuse(self, status: int, detail: str) -> None:
        """Unless an answer is on its way already. What still comes is thrown away for a while: whoever sends reads only then."""
        self._refused = True
        self._head_came()
        cycle = self._answered or self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_answer(status, detail))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # for whoever works on it: nothing more is read or written
            cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._head_timer = self.loop.call_later(LINGER_S, self.transport.close)


class BoundedH11(_Bounded, H11Protocol):
    """Where httptools is not installed."""


try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    PROTOCOLS: tuple[type[asyncio.Protocol], ...] = (BoundedH11,)
else:

    class BoundedHttpTools(_Bounded, HttpToolsProtocol):  # type: ignore[misc]  # both have what is used here
        """The faster one."""

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            self._answered = cycle
            super()._start_asgi_task(cycle, app)

    PROTOCOLS = (BoundedHttpTools, BoundedH11)


class ServiceServer(uvicorn.Server):
    """Accepts a few connections at a time, while the system holds many more for it."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(QUEUED_CONNECTIONS)


def uvicorn_config(app: Any, settings: ServerSettings, protocol: type[asyncio.Protocol] = PROTOCOLS[0]) -> uvicorn.Config:
    """How the service is served."""
    return ServiceConfig(app, settings, protocol)


def _send_at_once(transport: asyncio.Transport) -> None:
    """asyncio sees to it only where the listening socket names its protocol; head and body are then 40 ms apart."""
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
