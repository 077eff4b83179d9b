"""Limits what the requests of one caller use at once: how many run, and how many bytes their bodies hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from tickler.web.problems import Refused


class ConcurrencyLimit:
    """Counts running requests, by what they are and by caller."""

    def __init__(self) -> None:
        self._running: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def take(self, caller: str, most: int, what: str) -> Iterator[None]:
        """Hold a slot while the block runs; 429 if the caller already has `most` of `what`."""
        if self._running[what, caller] >= most:
            raise Refused(429, f"at most {most} {what} at once: wait until one has ended", headers={"retry-after": "1"})
        self._running[what, caller] += 1
        try:
            yield
        finally:
            self._running[what, caller] -= 1
            if not self._running[what, caller]:
                del self._running[what, caller]


class HeldBytes:
    """The bytes that one request holds until it ends. A body above the limit is accepted if the caller holds nothing else."""

    def __init__(self, by_caller: Counter[str], caller: str, most: int) -> None:
        self._by_caller = by_caller
        self._caller = caller
        self._most = most
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._by_caller[self._caller] -= self._size
        if not self._by_caller[self._caller]:
            del self._by_caller[self._caller]

    def grow_to(self, size: int) -> None:
        """Refuse with 429 if the caller's requests would hold too much together."""
        more, of_caller = size - self._size, self._by_caller[self._caller]
        if more <= 0:
            return
        if of_caller > self._size and of_caller + more > self._most:
            reason = f"the bodies of your requests may hold {self._most} bytes at once: wait until a request has ended"
            raise Refused(429, reason, headers={"retry-after": "1"})
        self._by_caller[self._caller] += more
        self._size = size
