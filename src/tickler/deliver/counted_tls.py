"""TLS of an event loop that counts what arrives for one answer, also what TLS consumes itself, such as endless key updates.

asyncio and uvloop both make the session of a connection with `wrap_bio`, and pass each byte through its memory buffer.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from typing import Any, cast

MAX_HANDSHAKE_BYTES = 64 * 1024


class CountedContext:
    """An `SSLContext` whose sessions count. It passes on what it does not do itself."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> CountedTls:
        return CountedTls(self._context.wrap_bio(incoming, outgoing, *args, **kwargs), incoming)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class CountedTls:
    """An `SSLObject` that fails as soon as more than `left` encrypted bytes arrive. It starts with those of the handshake."""

    def __init__(self, session: ssl.SSLObject, incoming: ssl.MemoryBIO) -> None:
        self._session = session
        self._incoming = incoming
        self._unread = 0  # bytes of `incoming` that are counted
        self.left = MAX_HANDSHAKE_BYTES

    def do_handshake(self) -> None:
        self._counted(self._session.do_handshake)

    def read(self, *args: Any) -> Any:
        return self._counted(self._session.read, *args)

    def write(self, data: Any) -> Any:
        return self._counted(self._session.write, data)

    def unwrap(self) -> None:
        self._counted(self._session.unwrap)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def _counted(self, call: Any, *args: Any) -> Any:
        self.left -= self._incoming.pending - self._unread
        self._unread = self._incoming.pending
        if self.left < 0:
            raise ssl.SSLError(errno.EMSGSIZE, "the answer is too long")
        try:
            return call(*args)
        finally:
            self._unread = self._incoming.pending


def is_counted(transport: asyncio.BaseTransport) -> bool:
    return isinstance(transport.get_extra_info("ssl_object"), CountedTls)


def counted(context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """Return the context with which connections count."""
    return None if context is None else cast(ssl.SSLContext, CountedContext(context))
