"""Decides how many fires to claim at once, so that a killed worker loses few at-most-once fires."""

from __future__ import annotations

PACE_S = 0.5


class ClaimSize:
    """Adapts to what the claims return. The first asks for as many fires as there are slots; each claim without at-most-once
    fires doubles the size. After a claim with some, no more are claimed than can start now or soon: the number of free slots plus
    the number of attempts that ended within the last half second.
    """

    def __init__(self, slots: int, max_size: int) -> None:
        self._slots = self._size = min(slots, max_size)
        self._max_size = max_size
        self._claimed_some = False  # the last claim had at-most-once fires
        self._leased_some = False  # so did the last lease: fires that were released, or triggered by hand
        self.counts_waiting = False  # at-most-once fires may wait for a slot
        self._since_s = 0.0
        self._ended_before = 0
        self._pace = 0

    def next(self, free: int, waiting: int, ended: int, now_s: float) -> int:
        """Return how many to claim, or 0 until a claim is worth its cost.

        `waiting` counts at-most-once fires without a slot, `ended` all attempts of this worker that are over.
        """
        lasted_s = now_s - self._since_s
        pace = max(ended - self._ended_before, self._pace)
        if lasted_s >= PACE_S:
            self._pace = round((ended - self._ended_before) * PACE_S / lasted_s)
            self._since_s, self._ended_before = now_s, ended
        if not waiting and not self._claimed_some and not self._leased_some:
            self.counts_waiting = False
            return self._size
        startable = free + pace
        room = startable - waiting
        return min(room, self._max_size) if room > 0 and 2 * room >= startable else 0

    def claimed(self, asked: int, got: int, at_most_once: int) -> None:
        self._claimed_some = at_most_once > 0
        if self._claimed_some:
            self._size, self.counts_waiting = self._slots, True
        elif got >= asked and not self._leased_some:
            self._size = min(2 * self._size, self._max_size)

    def leased(self, at_most_once: int) -> None:
        self._leased_some = at_most_once > 0
        if self._leased_some:
            self._size, self.counts_waiting = self._slots, True

    def idle(self) -> None:
        """Start again: the next fires may be of any kind."""
        self._size, self._claimed_some, self._leased_some = self._slots, False, False
