"""`pricebook serve`: the web server and the worker in one process."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
from contextlib import AsyncExitStack, closing
from typing import Annotated

import typer

from pricebook.app import DEFAULT_PORT, Pricebook, Settings, open_pricebook
from pricebook.cli.receiver_hints import receiver_hints
from pricebook.cli.session import read_settings
from pricebook.demo import DEMO_PERSON, open_demo
from pricebook.errors import InvalidField, NotFound
from pricebook.serving import serve
from pricebook.web.visitors import make_web, sign_in_link
from tickler.web import listen, run

LOCALHOST = "127.0.0.1"
OPERATOR = "operator"
DEMO_STORE = "sqlite:///pricebook-demo.db"

Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="Port to listen on.", show_default=str(DEFAULT_PORT))]
IsDemo = Annotated[
    bool, typer.Option("--demo", help=f"Show made stores, with changes that are due within minutes ({DEMO_STORE}).")
]
NoWorker = Annotated[bool, typer.Option("--no-worker", help="Only answer requests; another process or /tick does what is due.")]


def serve_command(host: Host = LOCALHOST, port: Port = None, demo: IsDemo = False, no_worker: NoWorker = False) -> None:
    """Serve GraphQL and the pages, and settle, import and send what is due, until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("tickler.deliver.targets").setLevel(logging.WARNING)  # nothing here is sent to queues and functions of AWS
    given = {} if port is None else {"PRICEBOOK_PORT": str(port)}
    settings = read_settings(given | ({"PRICEBOOK_STORE": DEMO_STORE} if demo and "PRICEBOOK_STORE" not in os.environ else {}))
    _check_reachable(host)
    chosen = int(given.get("PRICEBOOK_PORT") or os.environ.get("PRICEBOOK_PORT") or DEFAULT_PORT)
    with closing(listen(host, chosen)) as listening:
        run(lambda: _serve(settings, listening, is_demo=demo, works=not no_worker))


async def _serve(settings: Settings, listening: socket.socket, *, is_demo: bool, works: bool) -> None:
    async with AsyncExitStack() as stack:
        demo = await stack.enter_async_context(open_demo(settings, say=_say)) if is_demo else None
        book = await stack.enter_async_context(open_pricebook(settings if demo is None else demo.settings))
        if demo is not None:
            await demo.fill(book)
        link = await _first_link(book, is_demo=is_demo)
        typer.echo(f"\n  pricebook on {book.t.database.name}{'' if works else ', without a worker'}", err=True)
        typer.echo(f"  open  {settings.url('/') if link is None else link}", err=True)
        _say("`pricebook person link PERSON` prints a link to sign in" if link is None else "this link signs in once")
        for line in receiver_hints(settings, _allowed_elsewhere()) if demo is None else demo.hints():
            _say(line)
        typer.echo(err=True)
        await serve(book, listening, works=works)


def _allowed_elsewhere() -> list[str]:
    """Return the networks that the engine's own variable allows, which counts, too."""
    return [each.strip() for each in os.environ.get("TICKLER_ALLOW_NETWORKS", "").split(",") if each.strip()]


def _say(line: str) -> None:
    typer.echo(f"  {line}", err=True)


async def _first_link(book: Pricebook, *, is_demo: bool) -> str | None:
    """Return a link for whoever starts it the first time, and for the person of the demo each time."""
    if is_demo:
        person = await book.people.get(DEMO_PERSON)
        if person is None:
            raise NotFound(f"person {DEMO_PERSON!r}")
    elif await book.people.everyone():
        return None
    else:
        person = await book.people.create(OPERATOR.title(), id=OPERATOR)
    return await sign_in_link(book, make_web(book), person)


def _check_reachable(host: str) -> None:
    """Refuse to listen for other machines without the address that they use: every request of theirs would be refused."""
    if "PRICEBOOK_URL" in os.environ or host == "localhost":
        return
    try:
        is_local = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        reason = f"it is missing, and {host} is reachable from other machines: set it to the address that browsers use"
        raise InvalidField("PRICEBOOK_URL", f"{reason}, such as https://prices.example.com")
