"""What a server does by itself, once: for an outside cron job, and to look whether anything was lost."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from pricebook.cli.session import run
from pricebook.web.tick import BUDGET_MS, DRAIN_S, MAX_BUDGET_MS
from tickler import RunOptions

Budget = Annotated[int, typer.Option(min=1, max=MAX_BUDGET_MS, metavar="MS", help="How long to look for what is due.")]


def tick(budget_ms: Budget = BUDGET_MS) -> None:
    """Do once what is due: settle, carry on with change sets and imports, and send events."""
    summary = run(lambda book: book.t.tick(budget_ms, RunOptions(drain=DRAIN_S)))
    typer.echo(msgspec.json.encode(summary).decode())
