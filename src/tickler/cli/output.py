"""Output of commands: results on stdout, notes on stderr; tables on a terminal, plain columns in a pipe, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import msgspec
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLES = {
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
    "postponed": "yellow",
    "skipped": "yellow",
    "cancelled": "yellow",
}


def print_line(*lines: str) -> None:
    console = Console()
    for line in lines:
        console.out(visible(line), highlight=False)


def print_note(line: str) -> None:
    """Print to stderr, so that pipes do not get it."""
    Console(stderr=True).out(visible(line), highlight=False)


def print_json(value: object, *, stderr: bool = False) -> None:
    """Print one line of JSON, in the format of the HTTP API. Use stderr when stdout carries data."""
    Console(stderr=stderr).out(msgspec.json.encode(value).decode(), highlight=False)


def print_result(value: object, *lines: str, as_json: bool) -> None:
    """Print what a command did: one line of JSON, or lines for people."""
    if as_json:
        print_json(value)
    else:
        print_line(*lines)


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], unwrapped: Collection[str] = (), console: Console | None = None
) -> None:
    """Print columns that fit the terminal, without wrapping those in `unwrapped`; in a pipe, print lines of any length."""
    console = console or Console()
    cells = [[visible(cell) for cell in row] for row in rows]
    if not console.is_terminal:
        for line in plain_table(columns, cells):
            console.out(line, highlight=False)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in unwrapped)
    for row in cells:
        table.add_row(*(Text(cell, style=STYLES.get(cell.partition(" ")[0].rstrip(","), "")) for cell in row))
    console.print(table)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned lines, with two spaces between columns and none at the end."""
    lines = [columns, *rows]
    widths = [max(cell_len(line[place]) for line in lines) for place in range(len(columns))]
    padded = ([cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return ["  ".join(cells).rstrip() for cells in padded]


def visible(text: str) -> str:
    """Escape characters that a terminal would interpret or hide: stored text is untrusted."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def confirmed(question: str, yes: bool) -> bool:
    """Ask on a terminal. A script does not get asked: running it means yes."""
    if yes or not sys.stdin.isatty():
        return True
    if typer.confirm(question, err=True):
        return True
    print_note("nothing changed")
    return False
