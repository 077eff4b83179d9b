"""One connection, over which requests are sent one after the other."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress
from typing import Protocol, cast

from tickler.deliver.http_client.endpoint import Origin
from tickler.deliver.http_client.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidResponse,
    RequestFailed,
    ResponseTooLong,
    Unsent,
)
from tickler.deliver.http_client.response import ResponseReader
from tickler.deliver.http_client.tls import TlsSession

MAX_RESPONSE_BYTES = 64 * 1024  # that arrive for one request, encrypted or not; of a body, only the beginning is read
_MAX_JOINED_BYTES = 64 * 1024


class ConnectionOwner(Protocol):
    """Knows which connections have a socket."""

    def made(self, connection: Connection) -> None: ...

    def lost(self, connection: Connection) -> None: ...


class Connection(asyncio.Protocol):
    """Reads no more than `MAX_RESPONSE_BYTES` for each request, and as many for a TLS handshake: a receiver that sends
    `100 Continue` for ever, or anything else that is cheap to send and expensive to read, must not keep this worker busy.
    """

    def __init__(self, origin: Origin, sock: socket.socket, owner: ConnectionOwner, tls: TlsSession | None = None) -> None:
        self.origin = origin
        self.idle_since = 0.0  # on the loop's clock
        self.response = ResponseReader()
        self._socket = sock
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._tls = tls
        self._left = MAX_RESPONSE_BYTES
        self._unsent: tuple[bytes, bytes] | None = None  # a request that waits in the outbox
        self._is_busy = False  # with a request that was sent
        self._error: RequestFailed | None = None
        self._waiter: asyncio.Future[None] | None = None

    # Used by the client.

    async def handshake(self) -> None:
        """Wait until TLS is ready, if it is used."""
        while self._tls is not None and not self._tls.is_ready:
            await self.change()

    def prepare(self, request: bytes, body: bytes) -> None:
        """Take a request, which `send_request` sends."""
        self._unsent = request, body
        self.response = ResponseReader()

    def send_request(self) -> None:
        """Send the request, unless it was given up or the connection ended meanwhile."""
        if self._unsent is None or not self.is_open:
            return
        (request, body), self._unsent = self._unsent, None
        self._left, self._is_busy = MAX_RESPONSE_BYTES, True
        try:
            self._send(request, body)
        except RequestFailed as error:
            self._fail(error)
            self._wake()

    def refuse_request(self) -> None:
        """Send nothing: the receiver has ended the connection."""
        self._fail(ConnectionClosed())
        self._wake()

    def change(self) -> asyncio.Future[None]:
        """Return a future that is done when something has arrived. Raises the error that ended the connection, or `Unsent` if
        it ended before anything of the request was sent.
        """
        if self._error is not None:
            raise self._error if self._unsent is None else Unsent from self._error
        waiter = self._waiter = self._loop.create_future()
        return waiter

    async def read_rest(self, until_s: float) -> None:
        """Wait for the rest of the response, as far as it is of use and arrives in time. Raises nothing: the status is known."""
        with suppress(TimeoutError, RequestFailed):
            async with asyncio.timeout_at(until_s):
                while not self.response.is_settled:
                    await self.change()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._error is None and not self._transport.is_closing()

    @property
    def descriptor(self) -> int:
        """That of the socket; -1 if it is closed."""
        return -1 if self._transport is None else self._socket.fileno()

    def has_news(self) -> bool:
        """Return whether anything has arrived, or the connection has ended, and the event loop may not have seen it yet."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            pass
        return True

    def finish(self, now_s: float) -> bool:
        """End the exchange; return whether the connection can be kept. A request that was not fully sent makes it useless."""
        self._is_busy, self.idle_since = False, now_s
        transport = self._transport
        if not self.response.reusable or not self.response.ended or self._error is not None or transport is None:
            return False
        return not transport.is_closing() and not transport.get_write_buffer_size()

    def close(self) -> None:
        """Close an idle connection."""
        if self._tls is not None and self._transport is not None and self._error is None:
            self._tls.close()
            self._send_encrypted()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # which that of uvloop is not by name
        self._owner.made(self)
        if self._tls is not None:
            self._tls.handshake()
            self._send_encrypted()

    def data_received(self, data: bytes) -> None:
        if self._error is not None:
            return
        self._left -= len(data)
        is_too_much = self._left < 0
        if is_too_much:
            data = data[: self._left]  # what is within the limit may contain a status
        try:
            self._receive(data)
        except RequestFailed as error:
            self._fail(error)
        else:
            if is_too_much:
                self._fail(ResponseTooLong())
        self._wake()

    def eof_received(self) -> None:
        self._fail(ConnectionClosed())
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionClosed() if exc is None else ConnectionLost(_os_error(exc)))
        self._wake()
        self._transport = None
        self._owner.lost(self)

    # Inside.

    def _receive(self, data: bytes) -> None:
        tls = self._tls
        if tls is None:
            self._feed(data)
            return
        if not tls.is_ready:
            tls.handshake(data)
            data = b""
        plain = tls.decrypt(data) if tls.is_ready else b""
        self._send_encrypted()
        if plain:
            self._feed(plain)
        if tls.ended_by is not None:
            raise tls.ended_by

    def _feed(self, data: bytes) -> None:
        if not self._is_busy:  # nobody asked: it would be taken for the next response
            raise InvalidResponse
        self.response.feed(data)

    def _send(self, request: bytes, body: bytes) -> None:
        if self._transport is None:
            raise self._error or ConnectionClosed()
        if self._tls is not None:
            self._tls.encrypt(request)
            self._tls.encrypt(body)
            self._send_encrypted()
        elif len(body) <= _MAX_JOINED_BYTES:
            self._transport.write(request + body)
        else:
            self._transport.writelines((request, body))

    def _send_encrypted(self) -> None:
        if self._tls is not None and self._transport is not None and (data := self._tls.outgoing()):
            self._transport.write(data)

    def _fail(self, error: RequestFailed) -> None:
        """End the connection for this reason. A status that came before counts."""
        self.response.end()
        if self._error is None:
            self._error = error
            self.abort()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) else OSError(errno.ECONNRESET, "the connection was lost")
