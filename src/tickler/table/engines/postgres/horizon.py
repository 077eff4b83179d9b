"""Decides up to which number the changes of a log in PostgreSQL are settled, whose order of numbers is not that of commits."""

from __future__ import annotations

from collections.abc import Collection

MAX_PENDING = 64
PREPARED = "-"  # the beginning of the name of a prepared transaction


class Horizon:
    """The number up to which no change can still appear, from observations of the log.

    An observation is the last number that was taken, and the transactions that held a lock for writing to the log after that
    number was read. A transaction locks before it takes a number, and its changes are visible before it unlocks. So all numbers
    up to the last one are settled as soon as none of these transactions holds the lock any more: their changes are visible, or
    never will be. A statement that reads the changes has to begin after the observation.

    When a transaction is prepared for a two-phase commit, its locks may go on under another name. Therefore a prepared
    transaction that was not there before is taken for any of those that were.
    """

    def __init__(self) -> None:
        self.settled = 0
        self.last = 0
        self._pending: list[tuple[int, frozenset[str]]] = []  # numbers, with the transactions that they wait for

    def observe(self, last: int, writers: Collection[str]) -> None:
        """Take note of an observation. They have to come in the order in which they were made."""
        if last < self.last:  # the database was restored, or a replica has taken its place
            self.settled, self._pending = 0, []
        present = frozenset(writers)
        prepared = {writer for writer in writers if writer.startswith(PREPARED)}
        pending = [(number, (waits & present) | prepared) for number, waits in self._pending]
        self.last = last
        self.settled = max([self.settled, *(number for number, waits in pending if not waits)])
        self._pending = [(number, waits) for number, waits in pending if waits]
        if not present:
            self.settled = last
        elif not self._pending or self._pending[-1][0] < last:
            self._pending[MAX_PENDING - 1 :] = [(last, present)]
