"""Connections for HTTP deliveries, which limit what a receiver can make a worker read."""

from __future__ import annotations

import errno
import socket
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from tickler.deliver.address_guard import AddressGuard, GuardedResolver

if TYPE_CHECKING:
    import asyncio

    from _typeshed import WriteableBuffer
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader

READ_AHEAD_BYTES = 16 * 1024  # unread bytes of an answer; at twice as many, the connection stops reading
MAX_RESPONSE_BYTES = 64 * 1024  # of headers and what comes before or with them; only the beginning of a body is read
# Shorter than servers keep idle connections (2 s and more): a POST on a closing connection would fail and is not repeated.
KEEP_ALIVE_S = 1.5

_END_OF_HEADERS = b"\r\n\r\n"
_OK, _SWITCHING_PROTOCOLS = HTTPStatus.OK.value, HTTPStatus.SWITCHING_PROTOCOLS.value  # ints compare faster than enum members


class BoundedConnector(aiohttp.TCPConnector):
    """Connects only to what `guard` allows. With `limit` at 0 the callers limit the number of connections."""

    def __init__(self, guard: AddressGuard, resolver: AbstractResolver, *, limit: int, dns_cache_s: int) -> None:
        super().__init__(
            limit=limit,
            resolver=GuardedResolver(guard, resolver),
            ttl_dns_cache=dns_cache_s,
            keepalive_timeout=KEEP_ALIVE_S,
            socket_factory=partial(guard.socket_to, make=_CountingSocket),
        )
        self._factory = partial(_response_handler, loop=self._loop)

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """Return a connection to the pool. Bytes that arrive meanwhile would be taken for the next answer: allow none."""
        if isinstance(protocol, _BoundedResponseHandler):
            protocol.left = 0
        super()._release(key, protocol, should_close=should_close)


class _CountingSocket(socket.socket):
    """Counts the bytes that arrive for one request, also those that TLS consumes itself, such as endless key updates.

    (uvloop bypasses it: there, only the timeout of the attempt limits what TLS consumes.)
    """

    left = MAX_RESPONSE_BYTES  # first for the handshake

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        data = super().recv(min(bufsize, READ_AHEAD_BYTES), flags)
        self._count(len(data))
        return data

    def recv_into(self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int:
        size = super().recv_into(buffer, min(nbytes or len(memoryview(buffer)), READ_AHEAD_BYTES), flags)
        self._count(size)
        return size

    def _count(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _too_much()


class _BoundedResponseHandler(ResponseHandler):
    """Reads no more than `MAX_RESPONSE_BYTES` for each request: a receiver that sends `100 Continue` for ever, or anything else
    that is cheap to send and expensive to parse, must not keep this worker busy.

    A status with complete headers counts, whatever follows. The parser forgets it if garbage follows in the same write: then the
    head is parsed again, alone.
    """

    left = MAX_RESPONSE_BYTES
    _head: bytearray | None = None  # the answer until its status is known; None from then on
    _params: dict[str, Any]
    _socket: _CountingSocket | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        counting = getattr(transport.get_extra_info("socket"), "_sock", None)
        self._socket = counting if isinstance(counting, _CountingSocket) else None

    def set_response_params(self, **params: Any) -> None:
        """Reset the limit. aiohttp calls this once for each request, before it is sent."""
        self.left = MAX_RESPONSE_BYTES
        if self._socket is not None:
            self._socket.left = MAX_RESPONSE_BYTES
        self._head, self._params = bytearray(), params
        super().set_response_params(**params)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        code = data[0].code
        if code >= _OK or code == _SWITCHING_PROTOCOLS:
            self._head = None
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *exc_cause: BaseException) -> None:
        head, self._head = self._head, bytearray()
        if head and isinstance(exc, HttpProcessingError):
            self._parse_again(bytes(head))
        super().set_exception(exc, *exc_cause)

    def _parse_again(self, head: bytes) -> None:
        """Parse up to the end of the first final headers, and no further."""
        super().set_response_params(**self._params)
        for part in head.split(_END_OF_HEADERS)[:-1]:
            super().data_received(part + _END_OF_HEADERS)
            if self._head is None or self.exception() is not None:
                return

    def data_received(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left >= 0:
            if self._head is not None:
                self._head.extend(data)
            return super().data_received(data)
        fits, self.left = data[: self.left], 0  # may contain a status
        if fits:
            if self._head is not None:
                self._head.extend(fits)
            super().data_received(fits)
        self.set_exception(_too_much())
        if self.transport is not None:
            self.transport.abort()
        return None


def _response_handler(loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return _BoundedResponseHandler(loop)


def _too_much() -> OSError:
    return OSError(errno.EMSGSIZE, "the answer is too long")
