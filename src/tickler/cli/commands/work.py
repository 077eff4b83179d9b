"""`tickler work`: deliver fires until stopped."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Annotated

import typer

from tickler.cli.loading import load_object
from tickler.cli.logs import configure_logging
from tickler.cli.metrics_server import HOST, serving_metrics
from tickler.cli.options import StoreOption, required_store
from tickler.cli.shutdown import EXIT_TIMEOUT_S, PARENT, Shutdown, pop_number
from tickler.cli.store_session import create_if_asked
from tickler.cli.supervisor import NUMBER, Supervisor
from tickler.cli.tracing import trace_if_asked
from tickler.client import Tickler
from tickler.connect import connect, opened_store
from tickler.deliver.run_options import MIN_LEASE, RunOptions
from tickler.deliver.target_registry import check_environment
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.process.event_loop import loop_factory, run
from tickler.process.file_limit import raise_file_limit
from tickler.process.gc_tuning import tune_gc

DEFAULTS = RunOptions()
LEASE_S, DRAIN_S = DEFAULTS.lease.total_seconds(), DEFAULTS.drain.total_seconds()
MAX_TIMEOUT_S = DEFAULTS.longest.total_seconds()

Setup = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION", help="Function that registers Python handlers; called with the Tickler at the start."
    ),
]
Number = Annotated[int, typer.Option("--processes", min=1, max=256, help="Number of processes; one that dies is replaced.")]
InFlight = Annotated[int, typer.Option(min=1, help="Maximum concurrent attempts per process.")]
PerOwner = Annotated[
    int,
    typer.Option(
        min=1, help="Maximum concurrent attempts per owner. Some slots stay free for idle owners, unless this equals --in-flight."
    ),
]
PerHost = Annotated[int, typer.Option(min=1, help="Maximum concurrent attempts per host.")]
Lease = Annotated[
    float, typer.Option(min=MIN_LEASE.seconds, metavar="SECONDS", help="How long after a crash another worker takes over.")
]
Drain = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long attempts may run after a stop signal.")]
MaxTimeout = Annotated[
    float,
    typer.Option(
        "--max-timeout",
        envvar="TICKLER_MAX_TIMEOUT",
        min=1,
        max=86_400,
        metavar="SECONDS",
        help="Maximum timeout of an attempt; limits the timeouts of schedules.",
    ),
]
Ahead = Annotated[
    float,
    typer.Option(
        min=0,
        max=10_000,
        metavar="MS",
        help="Claim this long before the instant: more punctual, but a killed worker loses at-most-once fires it holds.",
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
        help="Serve /metrics on this port; each further process uses the next port.",
    ),
]
MetricsHost = Annotated[
    str, typer.Option(envvar="TICKLER_METRICS_HOST", metavar="ADDRESS", help="Address for /metrics. Metrics need no token.")
]

_EXAMPLE = "name a function as in mypackage.handlers:register"


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
    """Deliver fires until SIGTERM or Ctrl-C. Then finish running attempts and release all other fires."""
    url, parent, number = required_store(store), pop_number(PARENT), pop_number(NUMBER) or 0
    configure_logging(os.environ)
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
    loop_factory(os.environ)  # reports an invalid setting before any process starts
    if processes > 1:
        asyncio.run(_check_store(url))
        raise typer.Exit(Supervisor(processes, stop_timeout_s=drain + 2 * EXIT_TIMEOUT_S).run())
    if parent is not None:
        signal.signal(signal.SIGINT, lambda *_: None)  # the parent gets Ctrl-C too, and passes it on
    port = None if metrics is None else metrics + number
    found = load_setup(setup)
    run(lambda: _work(url, found, options, parent, lambda tickler: serving_metrics(tickler, port, metrics_host)))


async def _check_store(url: str) -> None:
    """Report a missing store once, instead of once per process. An unreachable one may come up later."""
    with suppress(StoreUnavailable):
        async with opened_store(url, create=create_if_asked(url)):
            pass


async def _work(
    url: str,
    setup: Callable[[Tickler], object],
    options: RunOptions,
    parent: int | None,
    serve_metrics: Callable[[Tickler], AbstractAsyncContextManager[None]],
) -> None:
    async with connect(url, create=create_if_asked(url)) as tickler, serve_metrics(tickler):
        await run_setup(tickler, setup)
        tune_gc()
        shutdown = Shutdown(tickler.stop, options.drain.total_seconds(), parent)
        shutdown.listen()
        await tickler.run(options)
        logging.getLogger("tickler").info("stopped")
    await shutdown.end()


async def run_setup(tickler: Tickler, setup: Callable[[Tickler], object]) -> None:
    """Set up tracing, and call the user's function, plain or async."""
    trace_if_asked(tickler, os.environ)
    result = setup(tickler)
    if inspect.isawaitable(result):
        await result


def load_setup(setup: str | None) -> Callable[[Tickler], object]:
    """Import the function that the operator named. Nothing from the store is ever imported."""
    if setup is None:
        return lambda tickler: None
    function = load_object(setup, "--setup", _EXAMPLE)
    if not callable(function):
        raise InvalidInput(f"--setup {setup}: has type {type(function).__name__}: name a function that takes the Tickler")
    found: Callable[[Tickler], object] = function
    return found
