"""`pricebook serve`: the web server and the worker in one process."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
from contextlib import closing
from typing import Annotated

import typer

from pricebook.app import DEFAULT_PORT, Pricebook, Settings, open_pricebook
from pricebook.cli.session import read_settings
from pricebook.errors import InvalidField
from pricebook.serving import listen, serve
from pricebook.web.visitors import make_web, sign_in_link

LOCALHOST = "127.0.0.1"
OPERATOR = "operator"

Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="Port to listen on.", show_default=str(DEFAULT_PORT))]
NoWorker = Annotated[bool, typer.Option("--no-worker", help="Only answer requests; another process or /tick does what is due.")]


def serve_command(host: Host = LOCALHOST, port: Port = None, no_worker: NoWorker = False) -> None:
    """Serve GraphQL and the pages, and settle, import and send what is due, until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    given = {} if port is None else {"PRICEBOOK_PORT": str(port)}
    settings = read_settings(given)
    _check_reachable(host)
    chosen = int(given.get("PRICEBOOK_PORT") or os.environ.get("PRICEBOOK_PORT") or DEFAULT_PORT)
    with closing(listen(host, chosen)) as listening:
        asyncio.run(_serve(settings, listening, works=not no_worker))


async def _serve(settings: Settings, listening: socket.socket, *, works: bool) -> None:
    async with open_pricebook(settings) as book:
        link = await _first_link(book)
        typer.echo(f"\n  pricebook on {book.t.database.name}{'' if works else ', without a worker'}", err=True)
        typer.echo(f"  open  {settings.url('/') if link is None else link}", err=True)
        typer.echo(
            f"  {'`pricebook person link PERSON` prints a link to sign in' if link is None else 'this link signs in once'}",
            err=True,
        )
        typer.echo(err=True)
        await serve(book, listening, works=works)


async def _first_link(book: Pricebook) -> str | None:
    """Return a link for whoever starts it the first time."""
    if await book.people.everyone():
        return None
    return await sign_in_link(book, make_web(book), await book.people.create(OPERATOR.title(), id=OPERATOR))


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
