"""Progress callbacks of long work."""

from __future__ import annotations

from collections.abc import Callable

OnProgress = Callable[[str, int, int | None], None]  # the activity, how much is done, and the total if it is known


def no_progress(activity: str, done: int, total: int | None) -> None:
    """Ignore progress."""
