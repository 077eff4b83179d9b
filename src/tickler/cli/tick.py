"""`tickler tick`: deliver what is due now, and end; for an outside cron that beats."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from tickler.cli.options import StoreOption, needed
from tickler.cli.work import Setup, function_of
from tickler.connect import connect
from tickler.deliver.runner import Summary

Budget = Annotated[int, typer.Option(min=1, max=86_400_000, metavar="MS", help="How long to go on claiming.")]


def command(store: StoreOption = None, budget: Budget = 50_000, setup: Setup = None) -> None:
    """Deliver what is due now. Exit code 0, also when something failed and is tried again later; 3 when something is left."""
    summary = asyncio.run(_tick(needed(store), budget, setup))
    Console().out(msgspec.json.encode(summary).decode(), highlight=False)
    if summary.left:
        raise typer.Exit(3)


async def _tick(url: str, budget_ms: int, setup: str | None) -> Summary:
    async with connect(url) as tickler:
        function_of(setup)(tickler)
        return await tickler.tick(budget_ms)
