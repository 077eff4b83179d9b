"""Whether leases that seem to have ended have: detects that the clock was set, and remembers that the store was away."""

from __future__ import annotations

import asyncio

JUMP_MS = 5_000  # a clock that was set
MAX_DOUBT_LEASES = 3  # a store that is slow for ever must not keep the dead alive


class ClockJumpDetector:
    """Compares the wall clock with the monotonic one. For a lease after a jump, or after the store was away, others may not have
    been able to extend their leases: none is taken over.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._seen: tuple[int, float] | None = None
        self._doubted_at: float | None = None
        self._answered_at: float | None = None  # when the store answered first since doubts began
        self.by_ms = 0

    def jumped(self, now_ms: int) -> bool:
        """Whether it was set since the last look."""
        now_s = asyncio.get_running_loop().time()
        seen, self._seen = self._seen, (now_ms, now_s)
        if seen is None:
            return False
        self.by_ms = now_ms - seen[0] - round((now_s - seen[1]) * 1000)
        if abs(self.by_ms) < JUMP_MS:
            return False
        self._doubted_at, self._answered_at = now_s, None
        return True

    def doubt(self) -> None:
        """The store is away, or slow. One that answers in between is doubted for some leases in a row at most."""
        now_s = asyncio.get_running_loop().time()
        if self.trusted():
            self._answered_at = None
        if self._answered_at is None or now_s - self._answered_at < MAX_DOUBT_LEASES * self._lease_s:
            self._doubted_at = now_s

    def answered(self) -> None:
        """The store has answered everything that a round asked."""
        if self._answered_at is None:
            self._answered_at = asyncio.get_running_loop().time()

    def trusted(self) -> bool:
        return self._doubted_at is None or asyncio.get_running_loop().time() - self._doubted_at > self._lease_s
