"""Shows what the advisor of tables says in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tickler.cli.output import show_table, visible
from tickler.table.schema.finding import Advice, Answer, Finding

COLOURS = {"warning": "yellow", "info": "cyan"}


def show_advice(advice: Advice, console: Console | None = None) -> None:
    console = console or Console()
    if advice.answer is not None:
        for line in (*_answer_lines(advice.answer), ""):
            console.out(visible(line), highlight=False)
    if not advice.findings:
        console.out("no remarks", highlight=False)
        return
    if not console.is_terminal:
        columns = ["severity", "check", "about", "figure", "says", "remedy"]
        show_table(columns, [_cells(finding) for finding in advice.findings], console=console)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("severity", "check", "about", "remark and remedy"):
        table.add_column(column, overflow="fold")
    for finding in advice.findings:
        severity, check, about, figure, says, remedy = map(visible, _cells(finding))
        table.add_row(Text(severity, COLOURS[severity]), check, about, Text(f"{says}\n{figure}\n→ {remedy}\n"))
    console.print(table)


def _answer_lines(answer: Answer) -> list[str]:
    lines = [f"{answer.wish}: {answer.says}"]
    if answer.call is not None:
        lines.append(f"  {answer.call}")
    return lines if answer.remedy is None else [*lines, f"  remedy: {answer.remedy}"]


def _cells(finding: Finding) -> list[str]:
    return [finding.severity, finding.check, finding.about, finding.figure, finding.says, finding.remedy]
