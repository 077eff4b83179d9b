"""Progress bars on stderr, where that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pricebook.loading.loader import OnProgress


@contextmanager
def progress_bars() -> Iterator[OnProgress]:
    """Show one bar for each activity, and leave them there at the end."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def on_progress(activity: str, done: int, total: int | None) -> None:
            if activity not in tasks:
                tasks[activity] = bars.add_task(activity)
            bars.update(tasks[activity], completed=done, total=total)

        yield on_progress
