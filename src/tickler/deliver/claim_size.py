"""How many to claim at once: little of what is delivered at most once may be lost with a worker that is killed."""

from __future__ import annotations

PACE_S = 0.5


class ClaimSize:
    """Nobody knows before a claim what it brings. So the first asks for as many as there are slots, and each that brings nothing
    that is delivered at most once lets the next ask for twice as many. After one that does, no more are claimed than can start
    now or soon: as many as slots are free, and as attempts ended within the last half second.
    """

    def __init__(self, slots: int, most: int) -> None:
        self._slots = self._size = min(slots, most)
        self._most = most
        self._met = False  # the last claim brought something that is delivered at most once
        self._met_leased = False  # so did the last lease: it was given back, or triggered by a person
        self.counts_waiting = False  # something that is delivered at most once may wait for a slot
        self._since_s = 0.0
        self._ended_before = 0
        self._pace = 0

    def next(self, free: int, waiting: int, ended: int, now_s: float) -> int:
        """How many, or 0 until a claim is worth it. `waiting` counts what is delivered at most once and has no slot yet; `ended`,
        all attempts of this worker that are over.
        """
        lasted_s = now_s - self._since_s
        pace = max(ended - self._ended_before, self._pace)
        if lasted_s >= PACE_S:
            self._pace = round((ended - self._ended_before) * PACE_S / lasted_s)
            self._since_s, self._ended_before = now_s, ended
        if not waiting and not self._met and not self._met_leased:
            self.counts_waiting = False
            return self._size
        most = free + pace
        room = most - waiting
        return min(room, self._most) if room > 0 and 2 * room >= most else 0

    def claimed(self, asked: int, got: int, at_most_once: int) -> None:
        self._met = at_most_once > 0
        if self._met:
            self._size, self.counts_waiting = self._slots, True
        elif got >= asked and not self._met_leased:
            self._size = min(2 * self._size, self._most)

    def leased(self, at_most_once: int) -> None:
        self._met_leased = at_most_once > 0
        if self._met_leased:
            self._size, self.counts_waiting = self._slots, True

    def idle(self) -> None:
        """What comes next may be anything."""
        self._size, self._met, self._met_leased = self._slots, False, False
