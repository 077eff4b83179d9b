"""`tickler serve`: the API, the web page and a runner, in one process."""

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

from tickler.cli.commands.work import MAX_TIMEOUT_S, MaxTimeout, Setup, function_of, prepared
from tickler.cli.gc_tuning import spare_the_collector
from tickler.cli.logs import set_up_logs
from tickler.cli.options import FLAG, StoreOption
from tickler.cli.shutdown import Shutdown
from tickler.client import Tickler
from tickler.connect import connect, parse_url
from tickler.deliver.run_options import RunOptions
from tickler.deliver.target_registry import check_environment
from tickler.distribution import install_command
from tickler.errors import InvalidInput
from tickler.file_limit import raise_file_limit
from tickler.server.event_stream import EventStream
from tickler.server.settings import DEFAULT_PORT, ServerSettings

if TYPE_CHECKING:
    import uvicorn

DEFAULT_STORE = "sqlite:///tickler.db"

Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen: 127.0.0.1, unless you say otherwise.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help=f"{DEFAULT_PORT}, unless you say otherwise.")]
NoRunner = Annotated[bool, typer.Option("--no-runner", metavar=FLAG, help="Deliver nothing here: `tickler work` does.")]

log = logging.getLogger("tickler")


def command(
    store: StoreOption = None,
    host: Host = None,
    port: Port = None,
    no_runner: NoRunner = False,
    setup: Setup = None,
    max_timeout: MaxTimeout = MAX_TIMEOUT_S,
) -> None:
    """Serve the API and the web page, and deliver what is due, until SIGTERM or Ctrl-C."""
    set_up_logs(os.environ)
    raise_file_limit()
    settings = ServerSettings.from_environment(os.environ, host=host, port=port)
    check_environment(os.environ)
    options = RunOptions(longest=max_timeout)
    asyncio.run(_serve(store or DEFAULT_STORE, settings, function_of(setup), options, runs=not no_runner))


async def _serve(
    url: str, settings: ServerSettings, prepare: Callable[[Tickler], object], options: RunOptions, *, runs: bool
) -> None:
    async with connect(url) as tickler:
        await _check_open(tickler, settings, parse_url(url).text)
        await prepared(tickler, prepare)
        with closing(_listening(settings)) as listening:
            live = EventStream()
            server = _server(tickler, settings, live, runs=runs)
            stopping = Shutdown(lambda: _stop(server, live, tickler), options.drain.total_seconds(), None)
            stopping.listen()
            _say_hello(
                parse_url(url).text, settings, listening.getsockname()[1], runs=runs, is_shared=tickler.capabilities.shared
            )
            _say_for_whom(settings, is_closed=await tickler.tokens.exist())
            spare_the_collector()
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(tickler.forecasts.run()), tasks.create_task(_follow(live, tickler))]
                if runs:
                    tasks.create_task(tickler.run(options))
                await server.serve([listening])
                for task in beside:
                    task.cancel()
                tickler.stop()
        log.info("stopped")
    await stopping.end()


async def _check_open(tickler: Tickler, settings: ServerSettings, store: str) -> None:
    """Where others can reach it, nobody could do anything without a token."""
    if not settings.needs_token or await tickler.tokens.exist():
        return
    reached, instead = (settings.hosts[0], "unset TICKLER_HOSTS") if settings.is_local else (settings.host, "listen on 127.0.0.1")
    raise InvalidInput(
        f"{reached} can be reached by others, and there is no token yet: make one with `tickler token create --store "
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
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}): choose another with --port or TICKLER_PORT"
        ) from None
    listening.listen(2048)
    listening.setblocking(False)
    return listening


async def _follow(live: EventStream, tickler: Tickler) -> None:
    if tickler.capabilities.shared:
        await live.follow(tickler.store.records, tickler.clock, lambda: tickler.own_workers)


def _server(tickler: Tickler, settings: ServerSettings, live: EventStream, *, runs: bool) -> uvicorn.Server:
    """Imported only now: the other commands do without it."""
    try:
        from tickler.server.app import make_app
        from tickler.server.middleware.uvicorn_protocol import ServiceServer, uvicorn_config
    except ImportError as error:
        raise InvalidInput(f"{error.name} is not installed: `{install_command('server')}`") from None
    server = ServiceServer(uvicorn_config(make_app(tickler, settings, runs_here=runs, event_stream=live), settings))
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]  # they are listened to here
    return server


def _say_hello(store: str, settings: ServerSettings, port: int, *, runs: bool, is_shared: bool = True) -> None:
    console = Console(stderr=True)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = escape(f"http://{host}:{port}/")
    console.print(f"\n  [bold]Tickler[/] on [cyan]{escape(store)}[/], {'delivering what is due' if runs else 'without a runner'}")
    console.print(f"  open  [bold underline]{address}[/]   (the API is under /v1, described at /openapi.json)")
    if is_shared:  # to be pasted: not broken into lines
        named = escape(f"export TICKLER_STORE={shlex.quote(store)}")
        console.print(f"  for `tickler …` in another shell:  [bold]{named}[/]", soft_wrap=True, highlight=False)


def _say_for_whom(settings: ServerSettings, *, is_closed: bool) -> None:
    if is_closed:
        said = "closed: whoever asks needs a token, which `tickler token create` makes"
    elif not settings.needs_token:
        said = "open to this machine only, without a token; others need one, and --host"
    else:
        return
    Console(stderr=True).print(f"  [dim]{said}[/]\n", soft_wrap=True, highlight=False)


def _stop(server: uvicorn.Server, live: EventStream, tickler: Tickler) -> None:
    server.should_exit = True
    live.end()
    tickler.stop()
