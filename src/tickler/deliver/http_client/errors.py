"""Why a request got no response. The errors' own texts may contain received data: show none of them to users."""

from __future__ import annotations


class RequestFailed(Exception):
    """There is no response, and it is unknown whether the receiver acted on the request, unless a subclass says otherwise."""


class NotConnected(RequestFailed):
    """Nothing was sent."""

    def __init__(self, os_error: OSError) -> None:
        super().__init__(str(os_error))
        self.os_error = os_error


class NameNotResolved(NotConnected):
    """The name has no address, or none was found in time."""


class ConnectTimedOut(NotConnected):
    """The connection, or its TLS handshake, was not ready in time."""


class TlsFailed(NotConnected):
    """The TLS handshake failed."""


class CertificateRejected(TlsFailed):
    """The certificate is not trusted, expired, or for another name."""


class ConnectionClosed(RequestFailed):
    """The receiver closed the connection."""


class Unsent(ConnectionClosed):
    """The receiver closed a kept connection before anything was sent on it."""


class ConnectionLost(RequestFailed):
    """The connection broke."""

    def __init__(self, os_error: OSError) -> None:
        super().__init__(str(os_error))
        self.os_error = os_error


class InvalidResponse(RequestFailed):
    """What arrived is not an HTTP/1 response."""


class HeadersTooLong(InvalidResponse):
    """A line of the headers is too long."""


class ResponseTooLong(RequestFailed):
    """Too much arrived before the headers of a response were complete."""
