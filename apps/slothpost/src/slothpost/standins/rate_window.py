"""A moving window in which only so many things may happen."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta


class RateWindow:
    def __init__(self, size: int, length: timedelta) -> None:
        self.size = size
        self._length = length
        self._instants: deque[datetime] = deque()

    def used(self, now: datetime) -> int:
        while self._instants and self._instants[0] <= now - self._length:
            self._instants.popleft()
        return len(self._instants)

    def remaining(self, now: datetime) -> int:
        return max(0, self.size - self.used(now))

    def reset_at(self, now: datetime) -> datetime:
        """Return when there is more room than now."""
        return (self._instants[0] if self.used(now) else now) + self._length

    def add(self, now: datetime) -> None:
        self._instants.append(now)
