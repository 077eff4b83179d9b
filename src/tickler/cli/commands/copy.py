"""`tickler copy`: all that one store holds into another, from where it stopped, and compared at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tickler.cli.options import FLAG, JsonOption
from tickler.cli.output import answer, say, show_table
from tickler.clock import SystemClock
from tickler.connect import opened_store, parse_url
from tickler.errors import InvalidInput
from tickler.transfer.copy import Comparison, Copy, OnCopied, Phase

From = Annotated[str, typer.Argument(metavar="FROM", help="The store to copy, such as sqlite:///tickler.db; it is only read.")]
To = Annotated[str, typer.Argument(metavar="TO", help="An empty store, such as postgresql://user@host/database.")]
IntoExisting = Annotated[
    bool,
    typer.Option("--into-existing", metavar=FLAG, help="Into a store that is not empty: what has the same names is replaced."),
]
WhileWorkersRun = Annotated[
    bool,
    typer.Option("--while-workers-run", metavar=FLAG, help="Although workers change it meanwhile: the copy may not be exact."),
]

# What people call a part; programs get its name.
CALLED = {"rows": "rows without a schedule"}


def command(
    source: From,
    target: To,
    into_existing: IntoExisting = False,
    while_workers_run: WhileWorkersRun = False,
    json: JsonOption = False,
) -> None:
    """Copy schedules, index rows, fires, history and records as they are. Stop the workers of both stores before.

    A copy that was cut short goes on where it was when it is run again. Exit code 1 when the two are not the same at the end.
    """
    if source == target:
        raise InvalidInput("FROM and TO are the same store: name another one")
    found, is_resumed = asyncio.run(_copy(source, target, into_existing, while_workers_run))
    same = all(each.same for each in found)
    if json:
        parts = [{"part": each.part, "from": each.source, "to": each.target, "same": each.same} for each in found]
        answer({"same": same, "resumed": is_resumed, "parts": parts})
    else:
        show_table(["part", "from", "to", "checksum from", "checksum to", ""], [_cells(each) for each in found])
        say(_sentence(same, while_workers_run))
    if not same:
        raise typer.Exit(1)


async def _copy(source: str, target: str, into_existing: bool, while_workers_run: bool) -> tuple[list[Comparison], bool]:
    clock = SystemClock()
    async with opened_store(source, create=False) as opened, opened_store(target) as other:
        with _bars() as show:
            copy = Copy(opened, other, parse_url(source).text, clock.now_ms, show)
            await copy.begin(into_existing=into_existing, while_workers_run=while_workers_run)
            await copy.run()
            return await copy.compare(), copy.is_resumed


@contextmanager
def _bars() -> Iterator[OnCopied]:
    """One for each part, and one more when it is compared: on stderr, while somebody watches."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks: dict[tuple[str, Phase], TaskID] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def show(part: str, phase: Phase, count: int, total: int | None) -> None:
            if (part, phase) not in tasks:
                tasks[part, phase] = bars.add_task(f"{CALLED.get(part, part)} {phase}")
            bars.update(tasks[part, phase], completed=count, total=total)

        yield show


def _cells(each: Comparison) -> list[str]:
    sides = (each.source, each.target)
    counts, checksums = [f"{side.count:,}" for side in sides], [side.checksum[:12] for side in sides]
    return [CALLED.get(each.part, each.part), *counts, *checksums, "same" if each.same else "differs"]


def _sentence(same: bool, while_workers_run: bool) -> str:
    if same:
        return "the copy is complete: point your workers to it, and let none run on the store it came from"
    if while_workers_run:
        return "they differ, since workers ran meanwhile: stop them, and copy once more into an empty store"
    return (
        "they differ: run it once more to copy everything again; what only the second one has was there before, or is gone from "
        "the first since the copy began: then empty it, and copy once more"
    )
