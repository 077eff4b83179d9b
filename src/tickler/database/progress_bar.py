"""A progress bar on stderr, shown on a terminal only. It needs Rich, so `progress.progress_bar` loads it when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tickler.database.progress import OnProgress


@contextmanager
def shown(activity: str) -> Iterator[OnProgress]:
    console = Console(stderr=True)
    percentage = TaskProgressColumn(text_format_no_percentage="{task.completed:,}")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), percentage, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(activity, total=None)
        yield lambda activity, done, total: bar.update(task, description=activity, completed=done, total=total)
