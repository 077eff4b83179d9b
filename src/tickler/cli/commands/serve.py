"""`tickler serve`: the HTTP API, the web interface and a worker in one process."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import socket
from collections.abc import Callable
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tickler.cli.commands.work import MAX_TIMEOUT_S, MaxTimeout, Setup, load_setup, run_setup
from tickler.cli.logs import configure_logging
from tickler.cli.options import StoreOption, flag
from tickler.cli.shutdown import Shutdown
from tickler.client import Tickler
from tickler.connect import connect
from tickler.database.store_url import parse_url
from tickler.deliver.run_options import RunOptions
from tickler.deliver.target_registry import check_environment
from tickler.distribution import install_command
from tickler.errors import InvalidInput
from tickler.process.event_loop import run
from tickler.process.file_limit import raise_file_limit
from tickler.process.gc_tuning import tune_gc
from tickler.server.event_stream import EventStream
from tickler.server.settings import DEFAULT_PORT, ServerSettings

if TYPE_CHECKING:
    import uvicorn

DEFAULT_STORE = "sqlite:///tickler.db"

Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on.", show_default=str(DEFAULT_PORT))]
NoWorker = Annotated[bool, flag("--no-worker", help="Leave deliveries to `tickler work`.")]

log = logging.getLogger("tickler")


def command(
    store: StoreOption = None,
    host: Host = None,
    port: Port = None,
    no_worker: NoWorker = False,
    setup: Setup = None,
    max_timeout: MaxTimeout = MAX_TIMEOUT_S,
) -> None:
    """Serve the HTTP API and the web interface, and deliver fires, until SIGTERM or Ctrl-C."""
    configure_logging(os.environ)
    raise_file_limit()
    settings = ServerSettings.from_environment(os.environ, host=host, port=port)
    check_environment(os.environ)
    options = RunOptions(longest=max_timeout)
    found = load_setup(setup)
    run(lambda: _serve(store or DEFAULT_STORE, settings, found, options, runs=not no_worker))


async def _serve(
    url: str, settings: ServerSettings, setup: Callable[[Tickler], object], options: RunOptions, *, runs: bool
) -> None:
    async with connect(url) as tickler:
        await _check_open(tickler, settings, parse_url(url).text)
        await run_setup(tickler, setup)
        with closing(_listening(settings)) as listening:
            live = EventStream()
            server = _server(tickler, settings, live, runs=runs)
            shutdown = Shutdown(lambda: _stop(server, live, tickler), options.drain.total_seconds(), None)
            shutdown.listen()
            _print_address(
                parse_url(url).text, settings, listening.getsockname()[1], runs=runs, is_shared=tickler.capabilities.shared
            )
            _print_access(settings, is_closed=await tickler.tokens.exist())
            tune_gc()
            async with asyncio.TaskGroup() as tasks:
                background = [tasks.create_task(tickler.forecasts.run()), tasks.create_task(_follow(live, tickler))]
                async with tickler.running(options) if runs else nullcontext():
                    await server.serve([listening])
                for task in background:
                    task.cancel()
        log.info("stopped")
    await shutdown.end()


async def _check_open(tickler: Tickler, settings: ServerSettings, store: str) -> None:
    """Refuse to listen publicly without any token: no request would be allowed."""
    if not settings.needs_token or await tickler.tokens.exist():
        return
    public, instead = (settings.hosts[0], "unset TICKLER_HOSTS") if settings.is_local else (settings.host, "listen on 127.0.0.1")
    raise InvalidInput(
        f"{public} is reachable from other machines, and there is no token yet: create one with `tickler token create --store "
        f"{shlex.quote(store)} --scope operate --scope write --scope read`, or {instead}"
    )


def _listening(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        listening.close()
        raise InvalidInput(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}): choose another --port or TICKLER_PORT"
        ) from None
    listening.listen(2048)
    listening.setblocking(False)
    return listening


async def _follow(live: EventStream, tickler: Tickler) -> None:
    if tickler.capabilities.shared:
        await live.follow(tickler.store.records, tickler.clock, lambda: tickler.own_workers)


def _server(tickler: Tickler, settings: ServerSettings, live: EventStream, *, runs: bool) -> uvicorn.Server:
    """Import the server here: other commands do not need it."""
    try:
        from tickler.server.app import make_app
        from tickler.server.middleware.uvicorn_protocol import ServiceServer, uvicorn_config
    except ImportError as error:
        raise InvalidInput(f"{error.name} is not installed: `{install_command('server')}`") from None
    server = ServiceServer(uvicorn_config(make_app(tickler, settings, runs_here=runs, event_stream=live), settings))
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]  # `Shutdown` handles them
    return server


def _print_address(store: str, settings: ServerSettings, port: int, *, runs: bool, is_shared: bool = True) -> None:
    console = Console(stderr=True)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = escape(f"http://{host}:{port}/")
    console.print(f"\n  [bold]Tickler[/] on [cyan]{escape(store)}[/], {'delivering fires' if runs else 'without a worker'}")
    console.print(f"  open  [bold underline]{address}[/]   (API under /v1, described at /openapi.json)")
    if is_shared:  # one line, to be pasted
        export = escape(f"export TICKLER_STORE={shlex.quote(store)}")
        console.print(f"  for `tickler …` in another shell:  [bold]{export}[/]", soft_wrap=True, highlight=False)


def _print_access(settings: ServerSettings, *, is_closed: bool) -> None:
    if is_closed:
        access = "every request needs a token: create one with `tickler token create`"
    elif not settings.needs_token:
        access = "open to this machine only, without a token; for other machines use --host and a token"
    else:
        return
    Console(stderr=True).print(f"  [dim]{access}[/]\n", soft_wrap=True, highlight=False)


def _stop(server: uvicorn.Server, live: EventStream, tickler: Tickler) -> None:
    server.should_exit = True
    live.end()
    tickler.stop()
