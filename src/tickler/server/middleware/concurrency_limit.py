"""How much one caller may have going on at once, so that nobody takes the room of all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tickler.server.problems import Refused


class ConcurrencyLimit:
    """Counts by caller; whoever has nothing going on is not remembered."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, caller: str, most: int, what: str) -> Iterator[None]:
        """For as long as one of `what` goes on; 429 where the caller has `most` of them."""
        if self._taken[caller] >= most:
            raise Refused(429, f"at most {most} {what} at once: wait until one has ended", headers={"retry-after": "1"})
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]
