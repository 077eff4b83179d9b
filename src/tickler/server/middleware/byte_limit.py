"""How many bytes of bodies one caller's requests may hold at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tickler.server.problems import Refused


class ByteLimit:
    """Counts by caller; whoever holds nothing is not remembered."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def hold(self, caller: str, most: int) -> Iterator[HeldBytes]:
        """For one request, as long as it goes on."""
        held = HeldBytes(self._held, caller, most)
        try:
            yield held
        finally:
            self._held[caller] -= held.size
            if not self._held[caller]:
                del self._held[caller]


class HeldBytes:
    """What one request holds. A body that is too long for the limit may come, but alone."""

    def __init__(self, held: Counter[str], caller: str, most: int) -> None:
        self._of_all = held
        self._caller = caller
        self._most = most
        self.size = 0

    def grow_to(self, size: int) -> None:
        """429 where the caller's requests would hold too much together."""
        more = size - self.size
        if more <= 0:
            return
        of_caller = self._of_all[self._caller]
        if of_caller > self.size and of_caller + more > self._most:
            raise Refused(
                429,
                f"{self._most} bytes of bodies at once are enough: wait until a request has ended",
                headers={"retry-after": "1"},
            )
        self._of_all[self._caller] += more
        self.size = size
