"""Detects wall-clock jumps by comparing with the monotonic clock."""

from __future__ import annotations

import asyncio

JUMP_MS = 5_000


class ClockJumpDetector:
    """Look often: a clock that is set forward and back between two looks goes unnoticed."""

    def __init__(self) -> None:
        self._seen: tuple[int, float] | None = None
        self.jump_ms = 0

    def has_jumped(self, now_ms: int) -> bool:
        """Return whether the wall clock was set since the last look; `jump_ms` says by how much."""
        now_s = asyncio.get_running_loop().time()
        seen, self._seen = self._seen, (now_ms, now_s)
        if seen is None:
            return False
        self.jump_ms = now_ms - seen[0] - round((now_s - seen[1]) * 1000)
        return abs(self.jump_ms) >= JUMP_MS
