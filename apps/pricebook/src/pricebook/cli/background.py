"""What a server does by itself, once: for an outside cron job, and to look whether anything was lost."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from pricebook.app.handlers import sweep
from pricebook.cli.session import run
from pricebook.web.tick import BUDGET_MS, MAX_BUDGET_MS, beat

Budget = Annotated[int, typer.Option(min=1, max=MAX_BUDGET_MS, metavar="MS", help="How long to look for what is due.")]


def tick(budget_ms: Budget = BUDGET_MS) -> None:
    """Do once what is due: settle, carry on with change sets and imports, and send events."""
    typer.echo(msgspec.json.encode(run(lambda book: beat(book, budget_ms))).decode())


def sweep_once() -> None:
    """Look for what was lost, such as a schedule, and begin it again. A server does so each minute."""
    typer.echo(run(sweep))
