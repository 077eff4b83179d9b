"""Opens connections: looks the name up, connects to an address that the guard allows, and starts TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

from aiohappyeyeballs import start_connection
from aiohttp.abc import AbstractResolver

from tickler.deliver.address_guard import AddressGuard, AddressInfo, GuardedResolver
from tickler.deliver.handler_thread import on_own_thread
from tickler.deliver.http_client import tls
from tickler.deliver.http_client.connection import Connection, ConnectionOwner
from tickler.deliver.http_client.dns_cache import DnsCache, address_info
from tickler.deliver.http_client.endpoint import Origin
from tickler.deliver.http_client.errors import ConnectTimedOut, NameNotResolved, NotConnected
from tickler.errors import AddressRefused

HAPPY_EYEBALLS_DELAY_S = 0.25  # until the next address of a name is tried too (RFC 8305)


class Connector:
    """Connects only to what `guard` allows: addresses are checked when a name is looked up and again when a socket is made."""

    def __init__(self, guard: AddressGuard, resolver: AbstractResolver, dns_cache_s: float) -> None:
        self._guard = guard
        self._names = DnsCache(GuardedResolver(guard, resolver), dns_cache_s)
        self._context: ssl.SSLContext | None = None
        self._loading: asyncio.Task[ssl.SSLContext] | None = None
        self._opening: set[asyncio.Task[Connection]] = set()

    async def connect(self, origin: Origin, timeout_s: float, owner: ConnectionOwner) -> Connection:
        """Return a connection that is ready for requests. The lookup of the name has its own time limit.

        Raises `AddressRefused` or `NotConnected`.
        """
        addresses = await self._addresses(origin)
        try:
            if origin.tls and self._context is None:
                self._context = await self._load_context()
            async with asyncio.timeout(timeout_s):
                return await self._connect(origin, addresses, owner)
        except OSError as error:
            if isinstance(error.__cause__, AddressRefused):
                raise error.__cause__ from None
            if isinstance(error, TimeoutError) and error.errno is None:  # not the system's
                raise ConnectTimedOut(error) from None
            raise NotConnected(error) from error

    async def close(self) -> None:
        await self._names.close()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        if self._opening:
            await asyncio.wait(list(self._opening))

    async def _addresses(self, origin: Origin) -> list[AddressInfo]:
        family = _family(origin.host)
        if family is not None:
            return [address_info(origin.host, origin.port, family)]
        try:
            return await self._names.addresses(origin.host, origin.port)
        except OSError as error:
            raise NameNotResolved(error) from error

    async def _load_context(self) -> ssl.SSLContext:
        """Read the certificates once for all who need them: this takes long, and longer for many at once."""
        loading = self._loading
        if loading is None:
            loading = self._loading = asyncio.create_task(on_own_thread(tls.verified_context, "tickler-certificates"))
            loading.add_done_callback(self._on_loaded)
        return await asyncio.shield(loading)

    def _on_loaded(self, loading: asyncio.Task[ssl.SSLContext]) -> None:
        """Mark an error as seen, since all who waited may be gone; who comes next tries again."""
        self._loading = None
        if not loading.cancelled():
            loading.exception()

    async def _connect(self, origin: Origin, addresses: list[AddressInfo], owner: ConnectionOwner) -> Connection:
        session = tls.TlsSession(self._context, origin.server_name) if origin.tls and self._context is not None else None
        sock = await start_connection(
            addresses, happy_eyeballs_delay=HAPPY_EYEBALLS_DELAY_S, socket_factory=self._guard.socket_to
        )
        # Not cancelled in between: uvloop would close the descriptor under the socket, which would close it once more.
        opening = asyncio.create_task(_open(sock, partial(Connection, origin, sock, owner, session)))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            connection = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_abort)
            raise
        try:
            await connection.handshake()
        except BaseException:
            connection.abort()
            raise
        return connection


async def _open(sock: socket.socket, make: Callable[[], Connection]) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(make, sock=sock)
    return connection


def _abort(opening: asyncio.Task[Connection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abort()


def _family(host: str) -> socket.AddressFamily | None:
    """Return the family of a literal address, None for a name."""
    try:
        return socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        return None
