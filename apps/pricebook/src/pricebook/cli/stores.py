"""`pricebook store`: add and list stores, and move their home."""

from __future__ import annotations

from typing import Annotated

import typer

from pricebook.app import Pricebook
from pricebook.cli.session import OPERATOR, run
from pricebook.editions.head_writes import Cause
from pricebook.editions.pages import PageArgs
from pricebook.errors import NotAllowed
from pricebook.model import Head

AT_ONCE = 1_000

StoreId = Annotated[str, typer.Argument(metavar="STORE", help="Id of the store.")]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="Its time zone, such as Europe/Paris: its days begin there.")]
Region = Annotated[str, typer.Argument(metavar="REGION", help="As in PRICEBOOK_REGION of the processes there.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the audit.")]
Home = Annotated[str, typer.Option(metavar="REGION", help="The region that acts for it, by default PRICEBOOK_REGION.")]

app = typer.Typer(no_args_is_help=True, help="Add and list stores, and let another region act for them.")


@app.command("add")
def add(store: StoreId, zone: Zone = "UTC", home: Home = "") -> None:
    """Add a store, without prices."""

    async def open_store(book: Pricebook) -> Head:
        if await book.stores.get(OPERATOR, store) is not None:
            raise NotAllowed(f"there is a store {store!r} already: choose another id")
        return await book.switch.open_store(store, tz=zone, home=home or book.settings.region)

    typer.echo(_shown(run(open_store)))


@app.command("list")
def list_() -> None:
    """List all stores: id, time zone, and home region."""

    async def show(book: Pricebook) -> None:
        after: str | None = None
        while True:
            page = await book.stores.page(OPERATOR, PageArgs(first=AT_ONCE, after=after))
            for head in page.nodes:
                typer.echo(_shown(head))
            if not page.has_next:
                return
            after = page.end_cursor

    run(show)


@app.command("move-home")
def move_home(store: StoreId, region: Region, reason: Reason = "") -> None:
    """Let another region act for a store, also if the former one is gone: it settles the store, and sends its events."""
    cause = Cause(OPERATOR.id, reason)
    run(lambda book: book.settling.move_home(store, region, cause=cause))
    typer.echo(f"{store} is at home in {region or 'no region'}")


def _shown(head: Head) -> str:
    return f"{head.store}  {head.tz}{f'  {head.home}' if head.home else ''}"
