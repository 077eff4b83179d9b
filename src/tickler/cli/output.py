"""How commands speak: answers on stdout, remarks on stderr; tables on a terminal, plain columns in a pipe, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import msgspec
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

TONES = {
    "active": "green",
    "!": "red",
    "paused": "yellow",
    "finished": "dim",
    "unreadable": "red",
    "unindexed": "red",
    "dead": "red",
    "failing": "red",
    "waiting": "yellow",
    "delivered": "green",
    "failed": "red",
    "expired": "red",
    "skipped": "yellow",
    "cancelled": "yellow",
}


def say(*lines: str) -> None:
    console = Console()
    for line in lines:
        console.out(visible(line), highlight=False)


def remark(line: str) -> None:
    """Beside the answer, so that pipes and scripts do not read it."""
    Console(stderr=True).out(visible(line), highlight=False)


def answer(value: object, *, beside: bool = False) -> None:
    """One line of JSON, as the HTTP API answers it; beside what else is on stdout, on stderr."""
    Console(stderr=beside).out(msgspec.json.encode(value).decode(), highlight=False)


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Collection[str] = (), console: Console | None = None
) -> None:
    """Columns that fit the terminal, where those of `whole` are not broken; without one, lines as long as they have to be."""
    console = console or Console()
    shown = [[visible(cell) for cell in row] for row in rows]
    if not console.is_terminal:
        for line in plain_lines(columns, shown):
            console.out(line, highlight=False)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in whole)
    for row in shown:
        table.add_row(*(Text(cell, style=TONES.get(cell.partition(" ")[0].rstrip(","), "")) for cell in row))
    console.print(table)


def plain_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned, two spaces apart, none at the end."""
    lines = [columns, *rows]
    widths = [max(cell_len(line[place]) for line in lines) for place in range(len(columns))]
    padded = ([cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return ["  ".join(cells).rstrip() for cells in padded]


def visible(text: str) -> str:
    """What a terminal would obey or swallow, written out: stored text may come from anybody."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def agreed(question: str, yes: bool) -> bool:
    """Asks where somebody can answer; in a script, whoever wrote it has agreed."""
    if yes or not sys.stdin.isatty():
        return True
    if typer.confirm(question, err=True):
        return True
    remark("nothing was done")
    return False
