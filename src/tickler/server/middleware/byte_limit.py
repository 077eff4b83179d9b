"""Limits the bytes that the bodies of one caller's requests hold at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tickler.server.problems import Refused


class ByteLimit:
    """Counts held bytes per caller."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def hold(self, caller: str, most: int) -> Iterator[HeldBytes]:
        """Account for the body of one request until the request ends."""
        held = HeldBytes(self._held, caller, most)
        try:
            yield held
        finally:
            self._held[caller] -= held.size
            if not self._held[caller]:
                del self._held[caller]


class HeldBytes:
    """The bytes that one request holds. A body above the limit is accepted if the caller holds nothing else."""

    def __init__(self, held: Counter[str], caller: str, most: int) -> None:
        self._by_caller = held
        self._caller = caller
        self._most = most
        self.size = 0

    def grow_to(self, size: int) -> None:
        """Refuse with 429 if the caller's requests would hold too much together."""
        more = size - self.size
        if more <= 0:
            return
        of_caller = self._by_caller[self._caller]
        if of_caller > self.size and of_caller + more > self._most:
            raise Refused(
                429,
                f"the bodies of your requests may hold {self._most} bytes at once: wait until a request has ended",
                headers={"retry-after": "1"},
            )
        self._by_caller[self._caller] += more
        self.size = size
