"""Limits how many bytes of schedules a claim returns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


class ByteBudget:
    """Accepts things up to `max_bytes` in total. The first one always fits, because a larger schedule has to fire too."""

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes
        self.is_unused = True  # the next one fits, however large it is
        self.is_spent = False  # something did not fit
        self._names: set[Hashable] = set()

    def fitting(self, things: Iterable[T], size_of: Callable[[T], int]) -> list[T]:
        """Return the first things, until one does not fit. Later things are not even read."""
        found: list[T] = []
        left = self.left
        for thing in things:
            size = size_of(thing)
            if size > left:
                if found or not self.is_unused:
                    self.is_spent = True
                    break
                left = size
            left -= size
            found.append(thing)
        if found:
            self.left, self.is_unused = left, False
        return found

    def fitting_by_name(self, things: Iterable[T], size_of: Callable[[T], int], name_of: Callable[[T], Hashable]) -> list[T]:
        """Do the same, counting things of the same name once."""

        def size_once(thing: T) -> int:
            name = name_of(thing)
            if name in self._names:
                return 0
            self._names.add(name)
            return size_of(thing)

        return self.fitting(things, size_once)
