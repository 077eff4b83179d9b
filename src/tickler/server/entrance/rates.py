"""How fast one caller may ask: a bucket each, that fills by itself."""

from __future__ import annotations

from collections.abc import Callable

MOST_CALLERS = 10_000


class Rates:
    """`take` gives 0 where a request may go on, or else the seconds until the next one may."""

    def __init__(self, per_second: float, clock_s: Callable[[], float]) -> None:
        self._per_second = per_second
        self._most = max(2 * per_second, 1.0)
        self._clock_s = clock_s
        self._buckets: dict[str, tuple[float, float]] = {}  # by caller: what was left, and when

    def take(self, caller: str) -> float:
        now = self._clock_s()
        left, at = self._buckets.get(caller, (self._most, now))
        left = min(left + (now - at) * self._per_second, self._most)
        if caller not in self._buckets and len(self._buckets) >= MOST_CALLERS:
            self._buckets.clear()  # all that is forgotten is who was fast
        if left < 1:
            self._buckets[caller] = (left, now)
            return (1 - left) / self._per_second
        self._buckets[caller] = (left - 1, now)
        return 0.0
