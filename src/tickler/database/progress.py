"""How long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

OnMessage = Callable[[str], None]


def no_message(line: str) -> None:
    """For those who do not want to hear it."""


OnProgress = Callable[[int, int], None]  # how much is done, and of how much


def no_progress(done: int, total: int) -> None:
    """For those who do not want to know."""
