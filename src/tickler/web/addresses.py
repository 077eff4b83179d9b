"""Remote addresses: normalized for limits per caller, and matched against trusted proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

MAX_ADDRESS_LENGTH = 64  # a proxy may send text that is not an address
UNIX = "unix"  # among trusted proxies, and as an address: whoever connects to a Unix socket

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies(NamedTuple):
    """Reverse proxies whose `X-Forwarded-For` is trusted. `unix`: also those that connect to a Unix socket."""

    networks: tuple[Network, ...] = ()
    unix: bool = False

    def include(self, address: str) -> bool:
        return self.unix if address == UNIX else is_within(address, self.networks)


NO_PROXIES = Proxies()


@lru_cache(maxsize=4096)
def caller_address(host: str) -> str:
    """Return the key for limits: an IPv4 address, or the /64 of an IPv6 address, since one machine may use all of it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:MAX_ADDRESS_LENGTH]
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def address_of(scope: Mapping[str, Any], proxies: Proxies = NO_PROXIES) -> str:
    """Return the caller's address: the one that a trusted proxy names, or else that of the connection.

    Each trusted proxy adds the address that it sees to the end of `X-Forwarded-For`. The last one that is not a proxy is the
    caller; whatever stands before it was sent by the caller. Servers such as uvicorn may have done the same already.

    A Unix socket has no addresses, so all who connect to it without a trusted proxy are one caller, `UNIX`.
    """
    address = _peer(scope)
    if proxies.include(address):
        for named in reversed([each.strip() for each in forwarded_for(scope).split(",") if each.strip()]):
            address = _without_port(named)
            if not proxies.include(address):
                break
    return caller_address(address[:MAX_ADDRESS_LENGTH])  # the cache keeps what it is asked


def forwarded_for(scope: Mapping[str, Any]) -> str:
    return ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for")


def proxies_of(texts: Iterable[str]) -> Proxies:
    """Parse trusted proxies; `ValueError` if a text is not "unix", an address or a network."""
    named = list(texts)
    return Proxies(networks_of(text for text in named if text != UNIX), UNIX in named)


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks; `ValueError` if a text is neither an address nor a network."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_within(host: str, networks: Iterable[Network]) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)


def _peer(scope: Mapping[str, Any]) -> str:
    """Return the address of the connection, "" if the server does not know it."""
    client, server = scope.get("client"), scope.get("server")
    if client:
        return str(client[0])
    return UNIX if server and server[1] is None else ""


def _without_port(text: str) -> str:
    """Return the address of `192.0.2.1:80` and `[2001:db8::1]:80`, as some proxies write it."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
