"""The time by which the stand-ins live: that of the clock which they follow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime


class LocalTime:
    """Follows one clock, and later another: the weeks before the first start pass in seconds."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms

    def follow(self, now_ms: Callable[[], int]) -> Callable[[], int]:
        """Follow another clock, and return what was followed so far."""
        before, self._now_ms = self._now_ms, now_ms
        return before

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(self._now_ms() / 1000, UTC)
