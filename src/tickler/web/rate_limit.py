"""Limits the request rate per caller with token buckets, in bounded memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tickler.web.problems import Refused

BURST_S = 2.0  # a burst has as many requests as this time allows
MAX_CALLERS = 10_000
MAX_FAILURES_A_MINUTE = 30  # wrong tokens from one address


class RateLimit:
    """A token bucket per caller. `burst` requests may come at once, by default those of two seconds. Any thread may use it."""

    def __init__(self, per_second: float, clock_s: Callable[[], float] = time.monotonic, burst: float | None = None) -> None:
        self._per_second = per_second
        self._burst = max(BURST_S * per_second, 1.0) if burst is None else burst
        self._clock_s = clock_s
        self._buckets: dict[str, tuple[float, float]] = {}  # by caller: tokens left, and when
        self._lock = threading.Lock()

    def take(self, caller: str) -> float:
        """Count a request; return 0 if it is allowed, else the seconds until the next one is."""
        with self._lock:
            now = self._clock_s()
            left, at = self._buckets.pop(caller, (self._burst, now))
            left = min(left + (now - at) * self._per_second, self._burst)
            wait_s = 0.0 if left >= 1 else (1 - left) / self._per_second
            if len(self._buckets) >= MAX_CALLERS:
                del self._buckets[next(iter(self._buckets))]  # bounds memory: who was longest idle starts with a full bucket
            self._buckets[caller] = (left if wait_s else left - 1, now)
            return wait_s

    def check(self, caller: str, detail: str) -> None:
        """Count a request; refuse it with 429 and this detail if it comes too early."""
        if wait_s := self.take(caller):
            raise Refused(429, detail, headers={"retry-after": str(int(wait_s) + 1)})


def failure_rate_limit() -> RateLimit:
    """Return a limit on wrong tokens, codes and passwords, by address."""
    return RateLimit(MAX_FAILURES_A_MINUTE / 60, burst=MAX_FAILURES_A_MINUTE)
