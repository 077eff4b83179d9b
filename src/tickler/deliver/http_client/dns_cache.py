"""Remembers the addresses of names for a short time, and looks each name up only once at a time."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Sequence

from aiohttp.abc import AbstractResolver

from tickler.deliver.address_guard import AddressInfo

MAX_NAMES = 1_000
MAX_ADDRESSES = 4  # of a name, of each family: every quarter of a second, an attempt opens a socket to the next one


class DnsCache:
    """Asks `resolver`, and remembers its answers for `ttl_s`. Each caller gets them in another order, which shares the load."""

    def __init__(self, resolver: AbstractResolver, ttl_s: float) -> None:
        self._resolver = resolver
        self._ttl_s = ttl_s
        self._known: dict[tuple[str, int], tuple[list[AddressInfo], float]] = {}  # with when they expire, the oldest first
        self._lookups: dict[tuple[str, int], asyncio.Task[list[AddressInfo]]] = {}

    async def addresses(self, host: str, port: int) -> list[AddressInfo]:
        name = (host, port)
        known = self._known.get(name)
        if known is not None and asyncio.get_running_loop().time() < known[1]:
            addresses = known[0]
            addresses.append(addresses.pop(0))
            return list(addresses)
        lookup = self._lookups.get(name)
        if lookup is None:
            lookup = self._lookups[name] = asyncio.create_task(self._look_up(name))
            lookup.add_done_callback(_retrieve)
        return list(await asyncio.shield(lookup))  # others wait for it too

    async def close(self) -> None:
        for lookup in self._lookups.values():
            lookup.cancel()
        if self._lookups:
            await asyncio.wait(list(self._lookups.values()))

    async def _look_up(self, name: tuple[str, int]) -> list[AddressInfo]:
        host, port = name
        try:
            found = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
            addresses = _first([address_info(each["host"], each["port"], each["family"]) for each in found])
            self._remember(name, addresses)
            return addresses
        finally:
            del self._lookups[name]

    def _remember(self, name: tuple[str, int], addresses: list[AddressInfo]) -> None:
        self._known.pop(name, None)
        if len(self._known) >= MAX_NAMES:
            del self._known[next(iter(self._known))]
        self._known[name] = (addresses, asyncio.get_running_loop().time() + self._ttl_s)


def address_info(host: str, port: int, family: int) -> AddressInfo:
    address = (host, port, 0, 0) if family == socket.AF_INET6 else (host, port)
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)


def _first(addresses: Sequence[AddressInfo]) -> list[AddressInfo]:
    """Return the first addresses of each family. Users' name servers may give thousands."""
    taken: Counter[int] = Counter()
    first: list[AddressInfo] = []
    for each in addresses:
        if taken[each[0]] < MAX_ADDRESSES:
            taken[each[0]] += 1
            first.append(each)
    return first


def _retrieve(lookup: asyncio.Task[list[AddressInfo]]) -> None:
    """Mark the error as seen, since all who waited may be gone."""
    if not lookup.cancelled():
        lookup.exception()
