"""How many connections may be open, in all and from one address, so that nobody takes the files that everything else needs.

Where there is no room left, an idle connection is closed for the new one: first those that never sent a request, the oldest of
them first, then those between two requests. Only where all are answering a request is the new one refused.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

MAX_CONNECTIONS = 2_048  # by default, however many files the process may open
MIN_CONNECTIONS = 16
BURST_SHARE = 8  # an eighth of the file limit: what the loop may accept before it counts


class ConnectionLimits(NamedTuple):
    """`total` of all, `per_address` of one address; `burst` may be open beyond them for a moment."""

    total: int
    per_address: int
    burst: int

    @property
    def requests(self) -> int:
        """Of the connections, so many may be answering at once: the others are left for probes, and to be closed for new ones."""
        return max(self.total * 3 // 4, 1)


def connection_limits(files: int | None, total: int | None = None, per_address: int | None = None) -> ConnectionLimits:
    """For a process that may open so many files (None: no limit); half of them are left to the store and to deliveries."""
    most = MAX_CONNECTIONS if files is None else min(MAX_CONNECTIONS, max(files // 2, MIN_CONNECTIONS))
    total = most if total is None else total
    burst = 256 if files is None else min(max(files // BURST_SHARE, MIN_CONNECTIONS), 256)
    return ConnectionLimits(total, max(total // 4, 1) if per_address is None else per_address, burst)


class Closable(Protocol):
    """A connection, as far as a limit knows it."""

    def give_way(self) -> None:
        """Close at once: its place goes to another."""


class _Group:
    """Connections of one address, or of all: how many, and which may be closed, the oldest first."""

    __slots__ = ("between", "count", "fresh")

    def __init__(self) -> None:
        self.count = 0
        self.fresh: dict[Closable, None] = {}  # that never sent a request
        self.between: dict[Closable, None] = {}  # two requests

    def idlest(self) -> Closable | None:
        return next(iter(self.fresh), None) or next(iter(self.between), None)


class ConnectionLimit:
    """Counts open connections. Each is added once, and from then on is idle, answering, or gone."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._all = _Group()
        self._by_address: dict[str, _Group] = {}
        self._addresses: dict[Closable, str | None] = {}

    def add(self, connection: Closable, address: str | None) -> bool:
        """Take it in, if need be for another that is idle; whether there was room. None is an address without a limit."""
        group = None if address is None else self._by_address.get(address)
        if group is not None and group.count >= self.limits.per_address and not self._make_room(group):
            return False
        if self._all.count >= self.limits.total and not self._make_room(self._all):
            return False
        self._addresses[connection] = address
        if address is not None:
            self._by_address.setdefault(address, _Group())
        for each in self._groups(connection):
            each.count += 1
            each.fresh[connection] = None
        return True

    def answering(self, connection: Closable) -> None:
        """A request has arrived on it: it stays open."""
        for group in self._groups(connection):
            group.fresh.pop(connection, None)
            group.between.pop(connection, None)

    def idle(self, connection: Closable) -> None:
        """It was answered, and may send another request."""
        for group in self._groups(connection):
            group.between[connection] = None

    def remove(self, connection: Closable) -> None:
        """It is closed. No matter whether it was ever added, or is removed already."""
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

    def _make_room(self, group: _Group) -> bool:
        idlest = group.idlest()
        if idlest is None:
            return False
        self.remove(idlest)
        idlest.give_way()
        return True
