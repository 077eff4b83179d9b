"""Progress callbacks of long work, and a bar that shows it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import cast

from tickler.database.extras import needing_extra

OnProgress = Callable[[str, int, int | None], None]  # the activity, how much is done, and the total if it is known


def no_progress(activity: str, done: int, total: int | None) -> None:
    """Ignore progress."""


def progress_bar(activity: str) -> AbstractContextManager[OnProgress]:
    """Show a bar that disappears at the end: a percentage, or the count where no total is known. Only on a terminal.

    `with progress_bar("loading") as on_progress: await db.load(orders, on_progress=on_progress)`. `InvalidInput` without Rich.
    """
    shown = needing_extra("tickler.database.progress_bar", "progress_bar").shown
    return cast(AbstractContextManager[OnProgress], shown(activity))
