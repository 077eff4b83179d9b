"""Connections for HTTP deliveries: each reads little at a time, not much for one request, and nothing that was not asked for."""

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

READ_AHEAD_BYTES = 16 * 1024  # what may lie unread of an answer; twice that, and the connection is left to wait
MAX_RESPONSE_BYTES = 64 * 1024  # of headers and all that comes before them or with them; of the body only the beginning is read
# Shorter than servers wait before they close (2 s and more): a POST that meets a closing connection is not sent again unasked.
KEEP_ALIVE_S = 1.5

_END_OF_HEADERS = b"\r\n\r\n"
_OK, _SWITCHING_PROTOCOLS = HTTPStatus.OK.value, HTTPStatus.SWITCHING_PROTOCOLS.value  # numbers compare faster than members


class BoundedConnector(aiohttp.TCPConnector):
    """Connects to what `guard` allows and nothing else. With `limit` at 0 there is no limit but the callers'."""

    def __init__(self, guard: AddressGuard, resolver: AbstractResolver, *, limit: int, dns_cache_s: int) -> None:
        super().__init__(
            limit=limit,
            resolver=GuardedResolver(guard, resolver),
            ttl_dns_cache=dns_cache_s,
            keepalive_timeout=KEEP_ALIVE_S,
            socket_factory=partial(guard.socket_to, make=_CountingSocket),
        )
        self._factory = partial(_conversation, loop=self._loop)

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """Back to those that wait for the next request. Whatever comes meanwhile would pass for the answer to it."""
        if isinstance(protocol, _BoundedResponseHandler):
            protocol.left = 0
        super()._release(key, protocol, should_close=should_close)


class _CountingSocket(socket.socket):
    """Counts what comes for one request, whatever it is: also what TLS keeps to itself, such as new keys without end.

    (uvloop reads past it: there, what TLS keeps to itself is bounded by the time that an attempt has.)
    """

    left = MAX_RESPONSE_BYTES  # for the handshake at first

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
    """Reads `MAX_RESPONSE_BYTES` for each request and then no more: who sends `100 Continue` for ever, or another thing that is
    quick to make and slow to read, shall not keep this worker busy.

    A status whose headers came whole counts, whatever follows them. The parser forgets it where what follows comes in the same
    write and does not read: then the head is read again, alone.
    """

    left = MAX_RESPONSE_BYTES
    _head: bytearray | None = None  # what came of the answer until its status is known; None from then on
    _params: dict[str, Any]
    _socket: _CountingSocket | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        counting = getattr(transport.get_extra_info("socket"), "_sock", None)
        self._socket = counting if isinstance(counting, _CountingSocket) else None

    def set_response_params(self, **params: Any) -> None:
        """Called by aiohttp once a request, before it is sent: the only thing that makes room for more."""
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
            self._read_again(bytes(head))
        super().set_exception(exc, *exc_cause)

    def _read_again(self, head: bytes) -> None:
        """Up to the end of the first headers that are those of an answer, and no further."""
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
        fits, self.left = data[: self.left], 0  # there may be a status in it
        if fits:
            if self._head is not None:
                self._head.extend(fits)
            super().data_received(fits)
        self.set_exception(_too_much())
        if self.transport is not None:
            self.transport.abort()
        return None


def _conversation(loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return _BoundedResponseHandler(loop)


def _too_much() -> OSError:
    return OSError(errno.EMSGSIZE, "more came than an answer has")
