"""How long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], None]


def silent(line: str) -> None:
    """For those who do not want to hear it."""


Tell = Callable[[int, int], None]  # how much is done, and of how much


def untold(done: int, total: int) -> None:
    """For those who do not want to know."""
