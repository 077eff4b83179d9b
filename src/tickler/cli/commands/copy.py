"""`tickler copy`: copy a store into another one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tickler.cli.options import JsonOption, flag
from tickler.cli.output import print_json, print_line, show_table
from tickler.clock import SystemClock
from tickler.connect import opened_store
from tickler.database.progress import OnProgress
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput
from tickler.transfer.copy import PART_LABELS, Comparison, Copy

From = Annotated[str, typer.Argument(metavar="FROM", help="Store to copy, such as sqlite:///tickler.db; it is only read.")]
To = Annotated[str, typer.Argument(metavar="TO", help="Empty store, such as postgresql://user@host/database.")]
IntoExisting = Annotated[
    bool, flag("--into-existing", help="Copy into a store that is not empty, and replace items of the same name.")
]
WhileWorkersRun = Annotated[
    bool, flag("--while-workers-run", help="Copy although workers change the store: the copy may be inexact.")
]


def command(
    source: From,
    target: To,
    into_existing: IntoExisting = False,
    while_workers_run: WhileWorkersRun = False,
    json: JsonOption = False,
) -> None:
    """Copy a store into another one: schedules, fires, history and records. Stop the workers of both stores first.

    Run it again to resume an interrupted copy. At the end both stores are compared; exit code 1 means that they differ.
    """
    if source == target:
        raise InvalidInput("FROM and TO are the same store: name a different one")
    found, is_resumed = asyncio.run(_copy(source, target, into_existing, while_workers_run))
    same = all(each.same for each in found)
    if json:
        parts = [{"part": each.part, "from": each.source, "to": each.target, "same": each.same} for each in found]
        print_json({"same": same, "resumed": is_resumed, "parts": parts})
    else:
        show_table(["part", "from", "to", "checksum from", "checksum to", ""], [_cells(each) for each in found])
        print_line(_sentence(same, while_workers_run))
    if not same:
        raise typer.Exit(1)


async def _copy(source: str, target: str, into_existing: bool, while_workers_run: bool) -> tuple[list[Comparison], bool]:
    clock = SystemClock()
    async with opened_store(source, create=False) as opened, opened_store(target) as other:
        with _bars() as on_progress:
            copy = Copy(opened, other, parse_url(source).text, clock.now_ms, on_progress)
            await copy.begin(into_existing=into_existing, while_workers_run=while_workers_run)
            await copy.run()
            return await copy.compare(), copy.is_resumed


@contextmanager
def _bars() -> Iterator[OnProgress]:
    """Show one bar per activity on stderr, and leave them there at the end."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def on_progress(activity: str, done: int, total: int | None) -> None:
            if activity not in tasks:
                tasks[activity] = bars.add_task(activity)
            bars.update(tasks[activity], completed=done, total=total)

        yield on_progress


def _cells(each: Comparison) -> list[str]:
    sides = (each.source, each.target)
    counts, checksums = [f"{side.count:,}" for side in sides], [side.checksum[:12] for side in sides]
    return [PART_LABELS.get(each.part, each.part), *counts, *checksums, "same" if each.same else "differs"]


def _sentence(same: bool, while_workers_run: bool) -> str:
    if same:
        return "the copy is complete: start your workers on it, and none on the store it came from"
    if while_workers_run:
        return "the stores differ because workers were running: stop them, and copy again into an empty store"
    return (
        "the stores differ: run the same command again to copy everything once more; if TO has items that FROM lacks, "
        "empty TO first"
    )
