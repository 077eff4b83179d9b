"""`tickler tick`: deliver due fires once, for an external cron."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Annotated

import typer

from tickler.cli.commands.work import Setup, load_setup, run_setup
from tickler.cli.logs import configure_logging
from tickler.cli.options import FLAG, StoreOption, required_store
from tickler.cli.output import print_json
from tickler.cli.store_session import create_if_asked
from tickler.client import Tickler
from tickler.connect import connect
from tickler.deliver.summary import Summary
from tickler.deliver.target_registry import check_environment
from tickler.process.event_loop import run

Budget = Annotated[int, typer.Option(min=1, max=86_400_000, metavar="MS", help="How long to claim fires, in milliseconds.")]
AlwaysJson = Annotated[
    bool, typer.Option("--json", metavar=FLAG, show_default=False, help="Print one line of JSON, which is the default.")
]


def command(store: StoreOption = None, budget: Budget = 50_000, setup: Setup = None, as_json: AlwaysJson = True) -> None:
    """Deliver due fires and exit. Exit code 0, also if some failed and will be retried; 3 if due fires are left."""
    url = required_store(store)
    configure_logging(os.environ)
    logging.getLogger("tickler.deliver").setLevel(logging.WARNING)  # no line about missing packages at every tick
    check_environment(os.environ)
    found = load_setup(setup)
    summary = run(lambda: _tick(url, budget, found))
    print_json(summary)
    if summary.left:
        raise typer.Exit(3)


async def _tick(url: str, budget_ms: int, setup: Callable[[Tickler], object]) -> Summary:
    async with connect(url, create=create_if_asked(url)) as tickler:
        await run_setup(tickler, setup)
        return await tickler.tick(budget_ms)
