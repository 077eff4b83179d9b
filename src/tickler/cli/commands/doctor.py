"""`tickler doctor`: check a store, and repair it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tickler.cli.options import JsonOption, StoreOption, flag, required_store
from tickler.cli.output import print_json, print_line, show_table, visible
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.clock import SystemClock
from tickler.connect import store_for_url
from tickler.database.progress import progress_bar
from tickler.observe.diagnosis import Diagnosis, Finding
from tickler.observe.doctor import PASSED_MESSAGES
from tickler.observe.scan_findings import Scan, diagnosed, line
from tickler.stores.optional import FindsMalformedItems, MalformedItem

MAX_SHOWN = 100
COLOURS = {"critical": "bold red", "warning": "yellow", "info": "cyan", "repaired": "green"}

RepairOption = Annotated[bool, flag("--repair", help="Repair what can be repaired. Safe while workers run.")]
QuickOption = Annotated[bool, flag("--quick", help="Skip the checks that read the whole store.")]
ScanOption = Annotated[
    bool, flag("--scan", help="Only find items that are in no index, also in your own DynamoDB table. Reads everything.")
]


def command(
    store: StoreOption = None,
    repair: RepairOption = False,
    quick: QuickOption = False,
    scan: ScanOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check the store, or repair it. Exit code 1 means problems; with --repair, problems that are left."""
    if scan and (repair or quick):
        raise typer.BadParameter("--scan only reads, and reads everything: leave out --repair and --quick")
    healthy = _scan(required_store(store), as_json) if scan else _examine(store, not quick, repair, as_json)
    if not healthy:
        raise typer.Exit(1)


def _examine(store: str | None, deep: bool, repair: bool, as_json: bool) -> bool:
    diagnosis = with_store(store, lambda tickler: _doctor(tickler, deep, repair))
    if as_json:
        print_json(diagnosis)
        return diagnosis.healthy
    _show(diagnosis)
    if repair:
        print_line("", _repair_summary(diagnosis))
    elif not diagnosis.findings:
        print_line("", "no problems found")
    return diagnosis.healthy


async def _doctor(tickler: Tickler, deep: bool, repair: bool) -> Diagnosis:
    with progress_bar("checking") as on_progress:
        return await tickler.doctor(deep=deep, repair=repair, on_progress=on_progress)


def _show(diagnosis: Diagnosis) -> None:
    console = Console()
    if not console.is_terminal:
        columns = ["severity", "check", "count", "says", "example", "remedy"]
        passed = [["ok", name, "", PASSED_MESSAGES[name], "", ""] for name in diagnosis.passed]
        show_table(columns, [*map(_cells, diagnosis.findings), *passed])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("severity", "check", "count", "problem and remedy"):
        table.add_column(column, overflow="fold", justify="right" if column == "count" else "left")
    for finding in diagnosis.findings:
        severity, check, count, says, example, remedy = (visible(cell) for cell in _cells(finding))
        lines = [says, *([f"example: {example}"] if example else []), f"→ {remedy}", ""]
        table.add_row(Text(severity, COLOURS[severity]), check, count, Text("\n".join(lines)))
    for name in diagnosis.passed:
        table.add_row(Text("✓ ok", "green"), name, "", PASSED_MESSAGES[name])
    console.print(table)


def _cells(finding: Finding) -> list[str]:
    severity = "repaired" if finding.is_repaired else finding.severity
    count = f"{finding.count:,}{'+' if finding.at_least else ''}"
    return [severity, finding.check, count, finding.says, finding.example or "", _remedy(finding)]


def _remedy(finding: Finding) -> str:
    if finding.repaired is None:
        return finding.remedy
    if finding.is_repaired:
        return f"{finding.repaired:,} repaired"
    return f"{finding.repaired:,} repaired, {finding.left:,} left: {finding.remedy}"


def _repair_summary(diagnosis: Diagnosis) -> str:
    if not diagnosis.findings:
        return "nothing to repair"
    left = [finding.check for finding in diagnosis.findings if not finding.is_repaired]
    return f"{diagnosis.repaired:,} repaired; " + (f"left: {', '.join(left)}" if left else "no problems left")


def _scan(url: str, as_json: bool) -> bool:
    scan = diagnosed(asyncio.run(_malformed_items(url)), SystemClock().now_ms())
    if as_json:
        print_json(scan)
    elif scan.findings:
        _show(scan)
        _list_items(scan)
    else:
        print_line("no problems found")
    return scan.healthy


def _list_items(scan: Scan) -> None:
    """List the items, unless the examples of the findings are all of them."""
    items = scan.misfits
    if len(items) > len(scan.findings):
        more = [f"and {len(items) - MAX_SHOWN:,} more: use --json to list all"] if len(items) > MAX_SHOWN else []
        print_line("", *(line(item) for item in items[:MAX_SHOWN]), *more)


async def _malformed_items(url: str) -> list[MalformedItem]:
    found: list[MalformedItem] = []
    store = store_for_url(url)
    if not isinstance(store, FindsMalformedItems):
        return found
    with Console(stderr=True).status("reading all items …") as status:
        async for item in store.malformed_items():
            found.append(item)
            status.update(f"reading all items … {len(found)} found")
    return found
