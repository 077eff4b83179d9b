"""Remote addresses: what counts as one caller, and which of them are reverse proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

MAX_ADDRESS_LENGTH = 64  # of what a proxy says: it may be no address at all

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=4096)
def caller_address(host: str) -> str:
    """What limits count by: an IPv4 address, or the /64 of an IPv6 address, since one machine may use all of that."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:MAX_ADDRESS_LENGTH]
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def address_of(scope: Mapping[str, Any]) -> str:
    """Of whoever sent a request: the address that a trusted proxy names, or the one that is connected."""
    client = scope.get("client")
    return caller_address(client[0]) if client else ""


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """`ValueError` where one is neither an address nor a network."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_within(host: str, networks: Iterable[Network]) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)
