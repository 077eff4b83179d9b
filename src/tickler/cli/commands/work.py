"""`tickler work`: deliver what is due, until told to stop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from importlib import import_module
from types import ModuleType
from typing import Annotated

import typer

from tickler.cli.gc_tuning import spare_the_collector
from tickler.cli.logs import set_up_logs
from tickler.cli.metrics_server import HOST, scraped
from tickler.cli.options import StoreOption, needed
from tickler.cli.shutdown import EXIT_TIMEOUT_S, Shutdown, taken_parent
from tickler.cli.store_session import made_if_asked
from tickler.cli.supervisor import Supervisor, taken_place
from tickler.cli.tracing import trace_if_asked
from tickler.client import Tickler
from tickler.connect import connect, opened_store
from tickler.deliver.run_options import MIN_LEASE, RunOptions
from tickler.deliver.target_registry import check_environment
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.file_limit import raise_file_limit

DEFAULTS = RunOptions()
LEASE_S, DRAIN_S = DEFAULTS.lease.total_seconds(), DEFAULTS.drain.total_seconds()
MAX_TIMEOUT_S = DEFAULTS.longest.total_seconds()

Setup = Annotated[
    str | None,
    typer.Option(metavar="MODULE:FUNCTION", help="Called with the Tickler before it runs: registers handlers of Python targets."),
]
Number = Annotated[int, typer.Option("--processes", min=1, max=256, help="How many processes work; one that dies is replaced.")]
InFlight = Annotated[int, typer.Option(min=1, help="Attempts at the same time, in each process.")]
PerOwner = Annotated[
    int,
    typer.Option(
        min=1,
        help="Attempts at the same time for one owner. Some slots stay free for idle owners, unless this equals --in-flight.",
    ),
]
PerHost = Annotated[int, typer.Option(min=1, help="Attempts at the same time to one host.")]
Lease = Annotated[
    float,
    typer.Option(min=MIN_LEASE.seconds, metavar="SECONDS", help="How long after a worker's death another takes over."),
]
Drain = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long attempts may still take when told to stop.")]
MaxTimeout = Annotated[
    float,
    typer.Option(
        "--max-timeout",
        envvar="TICKLER_MAX_TIMEOUT",
        min=1,
        max=86_400,
        metavar="SECONDS",
        help="No attempt takes longer, whatever timeout its schedule has.",
    ),
]
Ahead = Annotated[
    float,
    typer.Option(
        min=0,
        max=10_000,
        metavar="MS",
        help="Claim this long before the instant, and wait: more punctual, but a kill loses at-most-once fires that wait.",
    ),
]

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics",
        envvar="TICKLER_METRICS",
        min=1,
        max=65_000,
        metavar="PORT",
        help="Serve /metrics at this port; of several processes each at a port of its own, counted from this one.",
    ),
]
MetricsHost = Annotated[
    str,
    typer.Option(
        envvar="TICKLER_METRICS_HOST",
        metavar="ADDRESS",
        help="Where to serve them: to this machine alone, unless you say otherwise. Anybody who reaches it may read them.",
    ),
]

_NAME_ONE = "name a function as in mypackage.handlers:register"


def command(
    store: StoreOption = None,
    setup: Setup = None,
    processes: Number = 1,
    in_flight: InFlight = DEFAULTS.in_flight,
    per_owner: PerOwner = DEFAULTS.per_owner,
    per_host: PerHost = DEFAULTS.per_host,
    lease: Lease = LEASE_S,
    drain: Drain = DRAIN_S,
    max_timeout: MaxTimeout = MAX_TIMEOUT_S,
    ahead: Ahead = 0,
    metrics: MetricsPort = None,
    metrics_host: MetricsHost = HOST,
) -> None:
    """Deliver what is due, until SIGTERM or Ctrl-C; then finish what is in flight, and give back the rest."""
    url, parent, place = needed(store), taken_parent(), taken_place()
    set_up_logs(os.environ)
    raise_file_limit()
    options = RunOptions(
        in_flight=in_flight,
        per_owner=per_owner,
        per_host=per_host,
        lease=lease,
        drain=drain,
        ahead=ahead / 1000,
        longest=max_timeout,
    )
    check_environment(os.environ)
    if processes > 1:
        asyncio.run(_look_at(url))
        raise typer.Exit(Supervisor(processes, patience_s=drain + 2 * EXIT_TIMEOUT_S).run())
    if parent is not None:
        signal.signal(signal.SIGINT, lambda number, frame: None)  # a terminal tells the parent too, which tells this one
    port = None if metrics is None else metrics + place
    asyncio.run(_work(url, function_of(setup), options, parent, lambda tickler: scraped(tickler, port, metrics_host)))


async def _look_at(url: str) -> None:
    """That there is a store is said once, and not by each of several processes again and again. One may come up later."""
    with suppress(StoreUnavailable):
        async with opened_store(url, create=made_if_asked(url)):
            pass


async def _work(
    url: str,
    prepare: Callable[[Tickler], object],
    options: RunOptions,
    parent: int | None,
    serve_metrics: Callable[[Tickler], AbstractAsyncContextManager[None]],
) -> None:
    async with connect(url, create=made_if_asked(url)) as tickler, serve_metrics(tickler):
        await prepared(tickler, prepare)
        spare_the_collector()
        stopping = Shutdown(tickler.stop, options.drain.total_seconds(), parent)
        stopping.listen()
        await tickler.run(options)
        logging.getLogger("tickler").info("stopped")
    await stopping.end()


async def prepared(tickler: Tickler, prepare: Callable[[Tickler], object]) -> None:
    """By the environment, and by a plain or an async function."""
    trace_if_asked(tickler, os.environ)
    waited_for = prepare(tickler)
    if inspect.isawaitable(waited_for):
        await waited_for


def function_of(setup: str | None) -> Callable[[Tickler], object]:
    """What the operator named; nothing that is stored is ever imported."""
    if setup is None:
        return lambda tickler: None
    module, _, name = setup.partition(":")
    try:
        function = getattr(_imported(module, setup), name)
    except AttributeError as error:
        raise InvalidInput(f"--setup {setup}: {error}: {_NAME_ONE}") from None
    if not callable(function):
        raise InvalidInput(f"--setup {setup}: has the type {type(function).__name__}: name a function that takes the Tickler")
    found: Callable[[Tickler], object] = function
    return found


def _imported(module: str, setup: str) -> ModuleType:
    """A module that is not there is named; one that fails is shown with the place where it does."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise InvalidInput(f"--setup {setup}: {module!r} is no module's name: {_NAME_ONE}")
    sys.path.insert(0, os.getcwd())  # as with `python -m`
    try:
        return import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise InvalidInput(f"--setup {setup}: {error}: {_NAME_ONE}") from None
        place = error.__traceback__
        while place is not None and ("importlib" in place.tb_frame.f_code.co_filename or place.tb_frame.f_globals is globals()):
            place = place.tb_next
        shown = "".join(traceback.format_exception(error.with_traceback(place))).rstrip()
        raise InvalidInput(f"--setup {setup}: {module} does not import:\n{shown}") from None
