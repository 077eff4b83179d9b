"""Whether a clock was set while a worker works, by one that nobody can set."""

from __future__ import annotations

import asyncio

from tickler.clock import Clock

JUMP_MS = 5_000  # a clock that was set


class Steady:
    """Notices when a clock was set, by one that cannot be."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: tuple[int, float] | None = None
        self._jumped_at: float | None = None
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
        self._jumped_at = now_s
        return True

    def trusted(self, lease_s: float) -> bool:
        """Whether leases that seem to have ended have: not within a lease of a jump."""
        return self._jumped_at is None or asyncio.get_running_loop().time() - self._jumped_at > lease_s
