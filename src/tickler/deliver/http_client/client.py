"""Posts to endpoints over connections that are kept."""

from __future__ import annotations

import asyncio

from aiohttp.abc import AbstractResolver

from tickler.deliver.address_guard import AddressGuard
from tickler.deliver.http_client.connection import Connection
from tickler.deliver.http_client.connector import Connector
from tickler.deliver.http_client.endpoint import Endpoint
from tickler.deliver.http_client.errors import Unsent
from tickler.deliver.http_client.outbox import Outbox
from tickler.deliver.http_client.pool import ConnectionPool


class HttpClient:
    """Connects only to what `guard` allows. With `max_connections` at 0 the callers limit the number of requests at once.

    The caller limits the time of `post` by cancelling it, which closes the connection. Only the time to connect is limited here.
    """

    def __init__(self, guard: AddressGuard, resolver: AbstractResolver, *, dns_cache_s: float, max_connections: int = 0) -> None:
        self._loop = asyncio.get_running_loop()
        self._connector = Connector(guard, resolver, dns_cache_s)
        self._pool = ConnectionPool()
        self._outbox = Outbox()
        self._limit = asyncio.Semaphore(max_connections) if max_connections else None
        self._open: set[Connection] = set()
        self._all_lost: asyncio.Future[None] | None = None  # while it closes

    async def post(self, endpoint: Endpoint, fields: bytes, body: bytes, connect_timeout_s: float) -> Connection:
        """Send a POST, and return its connection as soon as the response has a status: `release` it after use.

        `fields` are the lines of all headers but Host, with a blank line at the end. A kept connection that the receiver has
        closed is noticed before anything is sent on it; a request of which anything was sent is never sent again.
        """
        if self._limit is not None:
            await self._limit.acquire()
        connection: Connection | None = None
        head = endpoint.start + fields
        try:
            while (connection := self._pool.take(endpoint.origin)) is not None:
                connection.prepare(head, body)
                self._outbox.put(connection)
                try:
                    while not connection.response.status:
                        await connection.change()
                except Unsent:
                    if self._all_lost is not None:
                        raise
                else:
                    return connection
            connection = await self._connector.connect(endpoint.origin, connect_timeout_s, self)
            connection.prepare(head, body)
            connection.send_request()
            while not connection.response.status:
                await connection.change()
        except BaseException:
            if connection is not None:
                connection.abort()
            self._release_place()
            raise
        return connection

    def release(self, connection: Connection) -> None:
        """Keep the connection for the next request, or close it if that is not possible."""
        self._release_place()
        if self._all_lost is None and connection.finish(self._loop.time()):
            self._pool.put(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """Close all connections, and wait until their sockets are closed."""
        self._pool.close()
        await self._connector.close()
        self._all_lost = self._loop.create_future()
        for connection in self._open:
            connection.abort()
        if self._open:
            await self._all_lost

    def _release_place(self) -> None:
        if self._limit is not None:
            self._limit.release()

    # Called by connections.

    def made(self, connection: Connection) -> None:
        self._open.add(connection)

    def lost(self, connection: Connection) -> None:
        self._pool.discard(connection)
        self._open.discard(connection)
        if not self._open and self._all_lost is not None and not self._all_lost.done():
            self._all_lost.set_result(None)
