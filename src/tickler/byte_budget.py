"""How many bytes of schedules a claim hands out, however many rows it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TypeVar

T = TypeVar("T")


class ByteBudget:
    """Takes sizes until they come to `max_bytes`. The first always fits: a schedule that is larger has to fire, too."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._is_first = True
        self._taken: set[object] = set()

    def takes(self, size: int) -> bool:
        if size > self._left and not self._is_first:
            return False
        self._left -= size
        self._is_first = False
        return True

    def fitting(self, things: Iterable[T], size_of: Callable[[T], int]) -> list[T]:
        """The first of them, until one does not fit."""
        return list(takewhile(lambda thing: self.takes(size_of(thing)), things))

    def takes_once(self, thing: object, size: int) -> bool:
        """The same, of something that may come again, and is not larger for it."""
        if thing not in self._taken:
            if not self.takes(size):
                return False
            self._taken.add(thing)
        return True
