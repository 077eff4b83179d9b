"""A progress bar on stderr, while somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def doing(what: str, say: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """For work that tells in words how far it is: by the bar, and to `say` once the bar is gone; at once if nobody watches."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield say
        return
    said: list[str] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def tell(line: str) -> None:
            said.append(line)
            bar.update(task, description=escape(line))

        yield tell
    for line in said:
        say(line)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int, int], None]]:
    """Call what this gives with how far it is, of `total` if that is known, and how many that are; it is gone at the end."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), TextColumn("{task.fields[count]:,}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, count=0)

        def update(done: int, count: int) -> None:
            bar.update(task, completed=done, count=count)

        yield update
