"""Progress bars on stderr, shown on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tickler.database.progress import OnProgress


@contextmanager
def progress_bar(activity: str) -> Iterator[OnProgress]:
    """Show a bar that disappears at the end: a percentage, or the count where no total is known."""
    console = Console(stderr=True)
    percentage = TaskProgressColumn(text_format_no_percentage="{task.completed:,}")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), percentage, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(activity, total=None)
        yield lambda activity, done, total: bar.update(task, description=activity, completed=done, total=total)


@contextmanager
def progress_lines(activity: str, print_line: Callable[[str], None]) -> Iterator[OnProgress]:
    """Show a bar, and print each activity as a line: after the bar on a terminal, at once elsewhere."""
    lines: list[str] = []
    is_terminal = Console(stderr=True).is_terminal
    with progress_bar(activity) as show:

        def on_progress(activity: str, done: int, total: int | None) -> None:
            show(activity, done, total)
            (lines.append if is_terminal else print_line)(activity)

        yield on_progress
    for line in lines:
        print_line(line)
