"""TLS of one connection, sans I/O: bytes in, bytes out.

An event loop's own TLS counts nothing of what it consumes itself, such as endless key updates: here, every byte that arrives is
counted, on every event loop.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import cache

from tickler.deliver.exhaustion import raise_if_exhausted
from tickler.deliver.http_client.errors import CertificateRejected, ConnectionClosed, ConnectionLost, RequestFailed, TlsFailed

READ_BYTES = 64 * 1024


@cache
def verified_context() -> ssl.SSLContext:
    """Return the settings of all connections: certificates are verified. The first call reads the system's from disk."""
    context = ssl.create_default_context()
    raise_if_exhausted()  # OpenSSL leaves out what it cannot open, and would trust nobody from then on
    context.set_alpn_protocols(["http/1.1"])
    return context


class TlsSession:
    """One client session. Send what `outgoing` returns after each call."""

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self.is_ready = False
        self.ended_by: RequestFailed | None = None  # after what was decrypted

    def handshake(self, data: bytes = b"") -> None:
        """Go on with the handshake as far as possible. Raises `TlsFailed` if it fails."""
        self._incoming.write(data)
        try:
            self._session.do_handshake()
            self.is_ready = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLCertVerificationError as error:
            raise CertificateRejected(error) from None
        except ssl.SSLError as error:
            raise TlsFailed(error) from None

    def encrypt(self, data: bytes) -> None:
        view, written = memoryview(data), 0
        try:
            while written < len(data):
                written += self._session.write(view[written:])
        except ssl.SSLError as error:
            raise ConnectionLost(error) from None

    def decrypt(self, data: bytes) -> bytes:
        """Return what can be decrypted by now. If nothing can follow it, `ended_by` says why."""
        self._incoming.write(data)
        read: list[bytes] = []
        try:
            while piece := self._session.read(READ_BYTES):
                read.append(piece)
            self.ended_by = ConnectionClosed()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.ended_by = ConnectionLost(error)
        return b"".join(read)

    def outgoing(self) -> bytes:
        """Return what has to be sent."""
        return self._outgoing.read() if self._outgoing.pending else b""

    def close(self) -> None:
        """Say that nothing more will be sent."""
        with suppress(ssl.SSLError):  # it waits for the answer of the other side, which is not needed
            self._session.unwrap()
