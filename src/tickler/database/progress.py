"""Callbacks with which long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

OnMessage = Callable[[str], None]


def no_message(line: str) -> None:
    """Ignore messages."""


OnProgress = Callable[[int, int], None]  # done, total


def no_progress(done: int, total: int) -> None:
    """Ignore progress."""
