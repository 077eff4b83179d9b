"""Looks names up as the system does, so that names whose nameserver does not answer keep nobody else's waiting."""

from __future__ import annotations

import asyncio
import errno
import socket
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

from tickler.deliver.exhaustion import raise_if_exhausted
from tickler.deliver.handler_thread import on_own_thread

LOOKUP_S = 10.0
MAX_LOOKUPS = 512

# Where the system lacks IPv6, no such address is asked for.
_AS_CONFIGURED = socket.AI_ADDRCONFIG & getattr(socket, "AI_MASK", socket.AI_ADDRCONFIG)
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_NUMERIC_NAME = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


class SystemResolver(AbstractResolver):
    """Each lookup has a thread of its own, and `limit_s`; after that it is not waited for, but counts until the system lets go
    of it: there are `most` of them at a time.

    Not the threads that the event loop has for everything: there are few, and a user's nameserver can hold one for minutes.
    """

    def __init__(self, limit_s: float = LOOKUP_S, most: int = MAX_LOOKUPS) -> None:
        self._limit_s = limit_s
        self._free = asyncio.Semaphore(most)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """`OSError` where there is no address; a `TimeoutError` among them where none was found in time."""
        try:
            async with asyncio.timeout(self._limit_s):
                await self._free.acquire()
                return await on_own_thread(partial(_look_up, host, port, family), f"tickler-lookup-{host}", self._free.release)
        except TimeoutError:
            raise TimeoutError(errno.ETIMEDOUT, f"no address for {host} within {self._limit_s:g} s") from None

    async def close(self) -> None:
        """Nothing to close: the threads end by themselves, and the process does not wait for them."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=_AS_CONFIGURED)
    except OSError:
        raise_if_exhausted()
        raise
    return [
        ResolveResult(hostname=host, host=_host(address), port=port, family=kind, proto=protocol, flags=_NUMERIC)
        for kind, _, protocol, _, address in found
        if kind in (socket.AF_INET, socket.AF_INET6) and isinstance(address[0], str)  # otherwise Python was built without IPv6
    ]


def _host(address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> str:
    """With its scope, if it has one: link-local addresses lead nowhere without."""
    if len(address) == 4 and address[3]:
        return socket.getnameinfo(address, _NUMERIC_NAME)[0]
    return str(address[0])
