"""`tickler tick`: deliver what is due now, and end; for an outside cron that beats."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Annotated

import typer

from tickler.cli.commands.work import Setup, function_of, prepared
from tickler.cli.logs import set_up_logs
from tickler.cli.options import FLAG, StoreOption, needed
from tickler.cli.output import answer
from tickler.cli.store_session import made_if_asked
from tickler.client import Tickler
from tickler.connect import connect
from tickler.deliver.summary import Summary
from tickler.deliver.target_registry import check_environment

Budget = Annotated[int, typer.Option(min=1, max=86_400_000, metavar="MS", help="How long to go on claiming.")]
AlwaysJson = Annotated[
    bool, typer.Option("--json", metavar=FLAG, show_default=False, help="Answer with one line of JSON: it does so anyway.")
]


def command(
    store: StoreOption = None,
    budget: Budget = 50_000,
    setup: Setup = None,
    as_json: AlwaysJson = True,
) -> None:
    """Deliver what is due now. Exit code 0, also when something failed and is tried again later; 3 when something is left."""
    url = needed(store)
    set_up_logs(os.environ)
    logging.getLogger("tickler.deliver").setLevel(logging.WARNING)  # what is not installed need not be said at every beat
    check_environment(os.environ)
    summary = asyncio.run(_tick(url, budget, function_of(setup)))
    answer(summary)
    if summary.left:
        raise typer.Exit(3)


async def _tick(url: str, budget_ms: int, prepare: Callable[[Tickler], object]) -> Summary:
    async with connect(url, create=made_if_asked(url)) as tickler:
        await prepared(tickler, prepare)
        return await tickler.tick(budget_ms)
