"""What the client needs to know of a URL, computed once for each URL."""

from __future__ import annotations

from typing import NamedTuple

from yarl import URL


class Origin(NamedTuple):
    """Requests to the same origin share connections."""

    host: str  # in ASCII; IPv6 without brackets
    port: int
    tls: bool

    @property
    def server_name(self) -> str:
        """The name that the certificate must have. Certificates have names without a dot at the end."""
        return self.host.rstrip(".")


class Endpoint(NamedTuple):
    """Where a POST goes. `start` is the beginning of the request: its first line and the header Host."""

    origin: Origin
    start: bytes


def endpoint_of(url: URL) -> Endpoint:
    """Return the endpoint of a URL that the address guard has checked."""
    assert url.raw_host is not None
    assert url.port is not None
    origin = Origin(url.raw_host, url.port, url.scheme == "https")
    return Endpoint(origin, f"POST {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n".encode())
