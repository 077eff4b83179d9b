"""`pricebook receiver`: who gets events, and the secrets that sign them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pricebook.app import Pricebook
from pricebook.cli.session import run
from pricebook.errors import NotFound
from pricebook.events import Receiver

OVERLAP = timedelta(days=1)

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="As in PRICEBOOK_RECEIVERS.")]

app = typer.Typer(no_args_is_help=True, help="List receivers of events, and make the secrets that sign what they get.")


@app.command("list")
def list_() -> None:
    """List the receivers in PRICEBOOK_RECEIVERS."""

    async def receivers(book: Pricebook) -> list[Receiver]:
        return [Receiver.read(each) for each in book.settings.receivers]

    for each in run(receivers):
        typer.echo(f"{'legacy:' if each.legacy else ''}{each.url}")


@app.command("secret")
def secret(address: Address) -> None:
    """Make a new secret for a receiver, and print it this once. For a day, events are signed with the former one, too."""
    receiver = Receiver.read(address)

    async def rotate(book: Pricebook) -> str:
        if receiver not in [Receiver.read(each) for each in book.settings.receivers]:
            raise NotFound(f"receiver {address!r} in PRICEBOOK_RECEIVERS")
        return await book.t.secrets.rotate(receiver.owner, overlap=OVERLAP)

    typer.echo(run(rotate))
