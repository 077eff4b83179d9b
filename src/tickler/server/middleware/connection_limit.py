"""Limits open connections, in total and per address, so that the store and deliveries keep enough file descriptors.

At the limit, an idle connection is closed for the new one: first those that never sent a request, oldest first, then those
between two requests. The new one is refused only if all others are answering a request.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

MAX_CONNECTIONS = 2_048  # default, even if the file limit would allow more
MIN_CONNECTIONS = 16
BURST_SHARE = 8  # an eighth of the file limit: connections that the loop may accept before they are counted


class ConnectionLimits(NamedTuple):
    """Maximum connections in total and per address; `burst` more may be open for a moment."""

    total: int
    per_address: int
    burst: int

    @property
    def requests(self) -> int:
        """How many connections may be answering at once; the rest serve probes, or can be closed for new ones."""
        return max(self.total * 3 // 4, 1)


def connection_limits(files: int | None, total: int | None = None, per_address: int | None = None) -> ConnectionLimits:
    """Return the limits of a process that may open `files` (None: no limit). Half of them are for the store and deliveries."""
    most = MAX_CONNECTIONS if files is None else min(MAX_CONNECTIONS, max(files // 2, MIN_CONNECTIONS))
    total = most if total is None else total
    burst = 256 if files is None else min(max(files // BURST_SHARE, MIN_CONNECTIONS), 256)
    return ConnectionLimits(total, max(total // 4, 1) if per_address is None else per_address, burst)


class Closable(Protocol):
    """A connection that a limit can close."""

    def evict(self) -> None:
        """Close at once, to make room for another."""


class _Group:
    """Connections of one address, or of all: their number, and those that can be closed, oldest first."""

    __slots__ = ("between", "count", "fresh")

    def __init__(self) -> None:
        self.count = 0
        self.fresh: dict[Closable, None] = {}  # never sent a request
        self.between: dict[Closable, None] = {}  # between two requests

    def idlest(self) -> Closable | None:
        return next(iter(self.fresh), None) or next(iter(self.between), None)


class ConnectionLimit:
    """Counts open connections. Each is added once, and then is idle, answering, or removed."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._all = _Group()
        self._by_address: dict[str, _Group] = {}
        self._addresses: dict[Closable, str | None] = {}

    def add(self, connection: Closable, address: str | None) -> bool:
        """Add a connection, closing an idle one if necessary; False if there is no room. None: an address without a limit."""
        group = None if address is None else self._by_address.get(address)
        if group is not None and group.count >= self.limits.per_address and not self._evict_idle(group):
            return False
        if self._all.count >= self.limits.total and not self._evict_idle(self._all):
            return False
        self._addresses[connection] = address
        if address is not None:
            self._by_address.setdefault(address, _Group())
        for each in self._groups(connection):
            each.count += 1
            each.fresh[connection] = None
        return True

    def answering(self, connection: Closable) -> None:
        """Mark a connection whose request has arrived: it is not closed for others."""
        for group in self._groups(connection):
            group.fresh.pop(connection, None)
            group.between.pop(connection, None)

    def idle(self, connection: Closable) -> None:
        """Mark a connection whose request was answered: it can be closed for others."""
        for group in self._groups(connection):
            group.between[connection] = None

    def remove(self, connection: Closable) -> None:
        """Forget a closed connection; a no-op if it is unknown."""
        if connection not in self._addresses:
            return
        self.answering(connection)
        for group in self._groups(connection):
            group.count -= 1
        address = self._addresses.pop(connection)
        if address is not None and not self._by_address[address].count:
            del self._by_address[address]

    def _groups(self, connection: Closable) -> tuple[_Group, ...]:
        if connection not in self._addresses:
            return ()
        address = self._addresses[connection]
        return (self._all,) if address is None else (self._all, self._by_address[address])

    def _evict_idle(self, group: _Group) -> bool:
        idlest = group.idlest()
        if idlest is None:
            return False
        self.remove(idlest)
        idlest.evict()
        return True
