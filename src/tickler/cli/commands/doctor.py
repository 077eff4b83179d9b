"""`tickler doctor`: what is wrong with a store, by name, and how to mend it; and mends what can be mended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tickler.cli.options import FLAG, JsonOption, StoreOption, needed
from tickler.cli.output import answer, say, show_table, visible
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.clock import SystemClock
from tickler.connect import store_for_url
from tickler.observe.diagnosis import Diagnosis, Finding, OnProgress
from tickler.observe.doctor import SHOWN
from tickler.observe.scan_findings import Scan, diagnosed, line
from tickler.stores.optional import FindsMalformedItems, MalformedItem

MAX_SHOWN = 100
COLOURS = {"critical": "bold red", "warning": "yellow", "info": "cyan", "mended": "green"}

RepairOption = Annotated[bool, typer.Option("--repair", metavar=FLAG, help="Mend what can be mended: safe while workers run.")]
QuickOption = Annotated[bool, typer.Option("--quick", metavar=FLAG, help="Leave out the checks that read the whole store.")]
ScanOption = Annotated[
    bool,
    typer.Option(
        "--scan", metavar=FLAG, help="Only read everything, in a table of yours too, for items that no index finds: slow."
    ),
]


def command(
    store: StoreOption = None,
    repair: RepairOption = False,
    quick: QuickOption = False,
    scan: ScanOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong: exit code 0 when nothing is, 1 otherwise. With --repair, 0 when nothing is left."""
    if scan and (repair or quick):
        raise typer.BadParameter("--scan only reads, and all of it: leave --repair and --quick out")
    healthy = _scan(needed(store), as_json) if scan else _examine(store, not quick, repair, as_json)
    if not healthy:
        raise typer.Exit(1)


def _examine(store: str | None, deep: bool, repair: bool, as_json: bool) -> bool:
    diagnosis = on_store(store, lambda tickler: _doctor(tickler, deep, repair))
    if as_json:
        answer(diagnosis)
        return diagnosis.healthy
    _show(diagnosis)
    if repair:
        say("", _what_is_left(diagnosis))
    elif not diagnosis.findings:
        say("", "nothing is wrong")
    return diagnosis.healthy


async def _doctor(tickler: Tickler, deep: bool, repair: bool) -> Diagnosis:
    with _bar() as progress:
        return await tickler.doctor(deep=deep, repair=repair, progress=progress)


@contextmanager
def _bar() -> Iterator[OnProgress]:
    """On stderr, while somebody watches."""
    console = Console(stderr=True)
    counted = TextColumn("{task.completed:,}")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), counted, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("looking", total=None)
        yield lambda doing, done, total: bars.update(bar, description=doing, completed=done, total=total)


def _show(diagnosis: Diagnosis) -> None:
    console = Console()
    if not console.is_terminal:
        columns = ["severity", "check", "count", "says", "example", "remedy"]
        passed = [["ok", name, "", SHOWN[name], "", ""] for name in diagnosis.passed]
        show_table(columns, [*map(_cells, diagnosis.findings), *passed])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("severity", "check", "count", "what is wrong, and what mends it"):
        table.add_column(column, overflow="fold", justify="right" if column == "count" else "left")
    for finding in diagnosis.findings:
        severity, check, count, says, example, remedy = (visible(cell) for cell in _cells(finding))
        lines = [says, *([f"such as {example}"] if example else []), f"→ {remedy}", ""]
        table.add_row(Text(severity, COLOURS[severity]), check, count, Text("\n".join(lines)))
    for name in diagnosis.passed:
        table.add_row(Text("✓ ok", "green"), name, "", SHOWN[name])
    console.print(table)


def _cells(finding: Finding) -> list[str]:
    severity = "mended" if finding.is_mended else finding.severity
    count = f"{finding.count:,}{'+' if finding.at_least else ''}"
    return [severity, finding.check, count, finding.says, finding.example or "", _remedy(finding)]


def _remedy(finding: Finding) -> str:
    if finding.repaired is None:
        return finding.remedy
    if finding.is_mended:
        return f"{finding.repaired:,} mended"
    return f"{finding.repaired:,} mended, {finding.left:,} left: {finding.remedy}"


def _what_is_left(diagnosis: Diagnosis) -> str:
    if not diagnosis.findings:
        return "there was nothing to repair"
    left = [finding.check for finding in diagnosis.findings if not finding.is_mended]
    return f"{diagnosis.repaired:,} mended; " + (f"left: {', '.join(left)}" if left else "nothing is left")


def _scan(url: str, as_json: bool) -> bool:
    scan = diagnosed(asyncio.run(_misfits(url)), SystemClock().now_ms())
    if as_json:
        answer(scan)
    elif scan.findings:
        _show(scan)
        _name_all(scan)
    else:
        say("nothing is wrong")
    return scan.healthy


def _name_all(scan: Scan) -> None:
    """Where the examples are not all of them."""
    misfits = scan.misfits
    if len(misfits) > len(scan.findings):
        more = [f"and {len(misfits) - MAX_SHOWN:,} more: --json names all"] if len(misfits) > MAX_SHOWN else []
        say("", *(line(misfit) for misfit in misfits[:MAX_SHOWN]), *more)


async def _misfits(url: str) -> list[MalformedItem]:
    found: list[MalformedItem] = []
    store = store_for_url(url)
    if not isinstance(store, FindsMalformedItems):
        return found
    with Console(stderr=True).status("reading everything …") as status:
        async for misfit in store.malformed_items():
            found.append(misfit)
            status.update(f"reading everything … {len(found)} found")
    return found
