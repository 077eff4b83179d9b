"""Connections of an asyncpg pool that go from one use to the next without going back to it, which costs as much as a read."""

from __future__ import annotations

import asyncio

import asyncpg
from asyncpg.pool import PoolConnectionProxy

KEPT_S = 30.0  # then the pool has them back, which closes what is not used


class KeptConnections:
    """Takes connections from a pool, and keeps those that are given back unless someone waits for one.

    From a pool that others use as well it keeps none, since it would not know who waits.
    """

    def __init__(self, pool: asyncpg.Pool, timeout_s: float, *, keeps: bool = True) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._keeps = keeps
        self._kept: list[PoolConnectionProxy] = []
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None
        self._returning: asyncio.Task[None] | None = None

    async def take(self) -> PoolConnectionProxy:
        while self._kept:
            connection = self._kept.pop()
            if _is_usable(connection):
                return connection
            await self._pool.release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=self._timeout_s)
        finally:
            self._waiting -= 1

    async def give_back(self, connection: PoolConnectionProxy, *, keep: bool) -> None:
        if not (keep and self._keeps) or self._waiting or not _is_usable(connection):
            await self._pool.release(connection)
            return
        self._kept.append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(KEPT_S, self._return_later)

    async def close(self) -> None:
        """Close the pool, once all connections are back. Those that are not after the timeout are closed as well."""
        self._keeps = False
        if self._timer is not None:
            self._timer.cancel()
        try:
            await asyncio.wait_for(self._close_pool(), self._timeout_s)
        except TimeoutError:
            self._pool.terminate()

    async def _close_pool(self) -> None:
        await self._return_all()
        await self._pool.close()

    async def _return_all(self) -> None:
        self._timer = None
        while self._kept:
            await self._pool.release(self._kept.pop())

    def _return_later(self) -> None:
        self._returning = asyncio.get_running_loop().create_task(self._return_all())


def _is_usable(connection: PoolConnectionProxy) -> bool:
    """Tell whether a connection is open, and in no transaction. One whose server closed it is no longer ours to ask."""
    try:
        return not connection.is_closed() and not connection.is_in_transaction()
    except asyncpg.InterfaceError:
        return False
