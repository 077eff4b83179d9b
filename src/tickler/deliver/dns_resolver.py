"""Looks names up with the system's resolver; a nameserver that does not answer delays no other lookup."""

from __future__ import annotations

import asyncio
import errno
import socket
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

from tickler.deliver.exhaustion import raise_if_exhausted
from tickler.deliver.handler_thread import on_own_thread

LOOKUP_TIMEOUT_S = 10.0
MAX_LOOKUPS = 512

# Without IPv6 on this machine, no IPv6 address is asked for.
_AS_CONFIGURED = socket.AI_ADDRCONFIG & getattr(socket, "AI_MASK", socket.AI_ADDRCONFIG)
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_NUMERIC_NAME = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


class SystemResolver(AbstractResolver):
    """Runs each lookup on a thread of its own, for `timeout_s`. A late lookup is abandoned, and counts until it ends: at most
    `max_lookups` run at a time.

    The event loop's own threads would not do: there are few, and a user's nameserver can block one for minutes.
    """

    def __init__(self, timeout_s: float = LOOKUP_TIMEOUT_S, max_lookups: int = MAX_LOOKUPS) -> None:
        self._timeout_s = timeout_s
        self._free = asyncio.Semaphore(max_lookups)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """Raise `OSError` if there is no address, and its subclass `TimeoutError` if none was found in time."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._free.acquire()
                return await on_own_thread(partial(_look_up, host, port, family), f"tickler-lookup-{host}", self._free.release)
        except TimeoutError:
            raise TimeoutError(errno.ETIMEDOUT, f"no address for {host} within {self._timeout_s:g} s") from None

    async def close(self) -> None:
        """Do nothing: the threads end by themselves, and the process does not wait for them."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=_AS_CONFIGURED)
    except OSError:
        raise_if_exhausted()
        raise
    return [
        ResolveResult(hostname=host, host=_host(address), port=port, family=kind, proto=protocol, flags=_NUMERIC)
        for kind, _, protocol, _, address in found
        if kind in (socket.AF_INET, socket.AF_INET6) and isinstance(address[0], str)  # not so in a Python without IPv6
    ]


def _host(address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> str:
    """Return the address with its scope, if it has one: link-local addresses need it."""
    if len(address) == 4 and address[3]:
        return socket.getnameinfo(address, _NUMERIC_NAME)[0]
    return str(address[0])
