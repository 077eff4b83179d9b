"""Progress as lines, beside a bar on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from tickler.database.progress import OnProgress, progress_bar


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
