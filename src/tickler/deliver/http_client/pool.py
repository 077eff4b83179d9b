"""Keeps connections that may be used again, by origin."""

from __future__ import annotations

import asyncio
from collections import deque

from tickler.deliver.http_client.connection import Connection
from tickler.deliver.http_client.endpoint import Origin

# Shorter than servers keep idle connections (2 s and more): a POST on a closing connection would fail and is not repeated.
KEEP_ALIVE_S = 1.5


class ConnectionPool:
    """The connection that was used last is used first, so that those that are not needed grow old and are closed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Origin, deque[Connection]] = {}  # those that were used last at the right
        self._timer: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """Take an idle connection out of the pool, if there is one that the receiver is not known to have closed."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if not idle:
                del self._idle[origin]
            if self._loop.time() - connection.idle_since < KEEP_ALIVE_S and connection.is_open:
                return connection
            connection.close()
        return None

    def put(self, connection: Connection) -> None:
        idle = self._idle.get(connection.origin)
        if idle is None:
            self._idle[connection.origin] = deque((connection,))
        else:
            idle.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(KEEP_ALIVE_S, self._close_old)

    def discard(self, connection: Connection) -> None:
        """Forget a connection, if it is here."""
        idle = self._idle.get(connection.origin)
        if idle is not None and connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[connection.origin]

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            _, idle = self._idle.popitem()
            for connection in idle:
                connection.close()

    def _close_old(self) -> None:
        """Close those that were idle for too long, and look again when the next will have been."""
        self._timer, oldest_s = None, self._loop.time() - KEEP_ALIVE_S
        for origin, idle in list(self._idle.items()):
            while idle and idle[0].idle_since <= oldest_s:
                idle.popleft().close()
            if not idle:
                del self._idle[origin]
        if self._idle:
            first_s = min(idle[0].idle_since for idle in self._idle.values())
            self._timer = self._loop.call_at(first_s + KEEP_ALIVE_S, self._close_old)
