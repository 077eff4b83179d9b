"""`pricebook person`: people who sign in."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pricebook.access.caller import ROLES
from pricebook.app import Pricebook
from pricebook.cli.access_options import Roles, Stores, read_roles, shown_stores
from pricebook.cli.session import run
from pricebook.errors import NotFound
from pricebook.web.visitors import make_web, sign_in_link

INVITATION = timedelta(days=7)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Their name.")]
PersonId = Annotated[str, typer.Argument(metavar="PERSON", help="Id of a person, as shown by `pricebook person list`.")]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="Their time zone, such as Europe/Paris.")]
Id = Annotated[str | None, typer.Option("--id", metavar="ID", help="Who they are in the audit. By default made of the name.")]

app = typer.Typer(no_args_is_help=True, help="Add and list people, and make links with which they sign in.")


@app.command("add")
def add(name: Name, roles: Roles = None, stores: Stores = None, zone: Zone = "UTC", id: Id = None) -> None:
    """Add a person, by default with all roles, and print the link with which they sign in once, within seven days."""
    chosen = read_roles(roles, ROLES)

    async def create(book: Pricebook) -> str:
        person = await book.people.create(name, chosen, stores=stores or [""], zone=zone, id=id)
        return await sign_in_link(book, make_web(book), person, INVITATION)

    typer.echo(run(create))


@app.command("list")
def list_() -> None:
    """List people: id, roles, beginnings of stores, and name."""
    for person in run(lambda book: book.people.everyone()):
        roles = ", ".join(role for role in ROLES if role in person.roles)
        typer.echo(f"{person.id}  {roles}  {shown_stores(person.stores)}  {person.name}")


@app.command("link")
def link(person: PersonId) -> None:
    """Print a link with which a person signs in once, within 30 minutes."""

    async def create(book: Pricebook) -> str:
        found = await book.people.get(person)
        if found is None:
            raise NotFound(f"person {person!r}")
        return await sign_in_link(book, make_web(book), found)

    typer.echo(run(create))
