"""`tickler work`: deliver what is due, until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from tickler.cli.options import StoreOption, needed
from tickler.cli.processes import Processes
from tickler.connect import connect
from tickler.deliver.options import RunOptions
from tickler.errors import InvalidInput
from tickler.tickler import Tickler

DEFAULTS = RunOptions()
LEASE_S, DRAIN_S = DEFAULTS.lease.total_seconds(), DEFAULTS.drain.total_seconds()

Setup = Annotated[
    str | None,
    typer.Option(metavar="MODULE:FUNCTION", help="Called with the Tickler before it runs: registers handlers of Python targets."),
]
Number = Annotated[int, typer.Option("--processes", min=1, max=256, help="How many processes work; one that dies is replaced.")]
InFlight = Annotated[int, typer.Option(min=1, help="Attempts at the same time, in each process.")]
PerOwner = Annotated[int, typer.Option(min=1, help="Of them, of one owner.")]
PerHost = Annotated[int, typer.Option(min=1, help="Of them, to one host.")]
Lease = Annotated[float, typer.Option(min=5, metavar="SECONDS", help="How long after a worker's death another takes over.")]
Drain = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long attempts may still take when told to stop.")]
Ahead = Annotated[
    float,
    typer.Option(
        min=0,
        max=10_000,
        metavar="MS",
        help="Claim so long before, and hold: more punctual, but at most once then loses what a killed worker held.",
    ),
]


def command(
    store: StoreOption = None,
    setup: Setup = None,
    processes: Number = 1,
    in_flight: InFlight = DEFAULTS.in_flight,
    per_owner: PerOwner = DEFAULTS.per_owner,
    per_host: PerHost = DEFAULTS.per_host,
    lease: Lease = LEASE_S,
    drain: Drain = DRAIN_S,
    ahead: Ahead = 0,
) -> None:
    """Deliver what is due, until SIGTERM or Ctrl-C; then finish what is in flight, and give back the rest."""
    url = needed(store)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if processes > 1:
        raise typer.Exit(Processes(processes, patience_s=drain + 10).run())
    options = RunOptions(
        in_flight=in_flight, per_owner=per_owner, per_host=per_host, lease=lease, drain=drain, ahead=ahead / 1000
    )
    asyncio.run(_work(url, function_of(setup), options))


async def _work(url: str, prepare: Callable[[Tickler], object], options: RunOptions) -> None:
    async with connect(url) as tickler:
        prepare(tickler)
        gc.collect()
        gc.freeze()  # what is here now stays: no collection needs to look at it again
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, tickler.stop)
        logging.getLogger("tickler").info("working")
        await tickler.run(options)
        logging.getLogger("tickler").info("stopped")


def function_of(setup: str | None) -> Callable[[Tickler], object]:
    """What the operator named; nothing that is stored is ever imported."""
    if setup is None:
        return lambda tickler: None
    module, _, name = setup.partition(":")
    sys.path.insert(0, os.getcwd())  # as with `python -m`
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(f"--setup {setup}: {error}: name a function as in mypackage.handlers:register") from None
    if not callable(function):
        raise InvalidInput(f"--setup {setup}: is a {type(function).__name__}, no function: name one that takes the Tickler")
    found: Callable[[Tickler], object] = function
    return found
