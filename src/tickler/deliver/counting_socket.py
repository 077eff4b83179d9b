"""A socket that limits how many bytes one answer may bring, encrypted or not."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

READ_AHEAD_BYTES = 16 * 1024  # unread bytes of an answer; at twice as many, the connection stops reading
MAX_HEAD_BYTES = 64 * 1024  # of headers and what comes before or with them


class CountingSocket(socket.socket):
    """Counts the bytes that arrive for one request, also those that TLS consumes itself, such as endless key updates.

    (uvloop bypasses it: there, only the timeout of the request limits what TLS consumes.)
    """

    left = MAX_HEAD_BYTES  # first for the handshake

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


def _too_much() -> OSError:
    return OSError(errno.EMSGSIZE, "the answer is too long")
