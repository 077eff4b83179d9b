"""Remote addresses: normalized for limits per caller, and matched against trusted proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

MAX_ADDRESS_LENGTH = 64  # a proxy may send text that is not an address

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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


def address_of(scope: Mapping[str, Any], proxies: Iterable[Network] = ()) -> str:
    """Return the caller's address: the one that a trusted proxy names, or else that of the connection.

    Each trusted proxy adds the address that it sees to the end of `X-Forwarded-For`. The last one that is not a proxy is the
    caller; whatever stands before it was sent by the caller. Servers such as uvicorn may have done the same already.
    """
    client = scope.get("client")
    if not client:
        return ""
    address = str(client[0])
    if is_within(address, proxies):
        values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        for named in reversed([each.strip() for each in ",".join(values).split(",") if each.strip()]):
            address = _without_port(named)
            if not is_within(address, proxies):
                break
    return caller_address(address[:MAX_ADDRESS_LENGTH])  # the cache keeps what it is asked


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


def _without_port(text: str) -> str:
    """Return the address of `192.0.2.1:80` and `[2001:db8::1]:80`, as some proxies write it."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
