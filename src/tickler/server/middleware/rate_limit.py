"""Limits the request rate per caller with token buckets. `ServerSettings.rate` is how many requests a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tickler.server.problems import Refused

BURST_S = 2.0  # a burst has as many requests as this time allows
MAX_CALLERS = 10_000
MAX_FAILURES_A_MINUTE = 30  # wrong tokens from one address


class RateLimit:
    """A token bucket per caller."""

    def __init__(self, per_second: float, clock_s: Callable[[], float], burst: float | None = None) -> None:
        self._per_second = per_second
        self._burst = max(BURST_S * per_second, 1.0) if burst is None else burst
        self._clock_s = clock_s
        self._buckets: dict[str, tuple[float, float]] = {}  # by caller: tokens left, and when

    def take(self, caller: str) -> float:
        """Count a request; return 0 if it is allowed, else the seconds until the next one is."""
        now = self._clock_s()
        left, at = self._buckets.get(caller, (self._burst, now))
        left = min(left + (now - at) * self._per_second, self._burst)
        if caller not in self._buckets and len(self._buckets) >= MAX_CALLERS:
            self._buckets.clear()  # bounds memory; the callers start again with full buckets
        if left < 1:
            self._buckets[caller] = (left, now)
            return (1 - left) / self._per_second
        self._buckets[caller] = (left - 1, now)
        return 0.0


def loop_time() -> float:
    return asyncio.get_running_loop().time()


def failure_rate_limit() -> RateLimit:
    """Return a limit on wrong tokens, by address."""
    return RateLimit(MAX_FAILURES_A_MINUTE / 60, loop_time, MAX_FAILURES_A_MINUTE)


def too_many_failures(wait_s: float) -> Refused:
    return Refused(
        429, "too many wrong tokens from this address: check the token, and wait", headers={"retry-after": str(int(wait_s) + 1)}
    )
