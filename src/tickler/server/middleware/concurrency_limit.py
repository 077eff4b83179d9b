"""Limits how many requests of one caller run at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tickler.server.problems import Refused


class ConcurrencyLimit:
    """Counts running requests per caller."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()

    @contextmanager
    def take(self, caller: str, most: int, what: str) -> Iterator[None]:
        """Hold a slot while the block runs; 429 if the caller already has `most` of `what`."""
        if self._running[caller] >= most:
            raise Refused(429, f"at most {most} {what} at once: wait until one has ended", headers={"retry-after": "1"})
        self._running[caller] += 1
        try:
            yield
        finally:
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller]
