"""`pricebook token`: tokens of programs."""

from __future__ import annotations

from typing import Annotated

import typer

from pricebook.cli.access_options import Roles, Stores, read_roles, shown_stores
from pricebook.cli.session import run
from pricebook.errors import NotFound
from pricebook.web.visitors import make_web, price_tokens

Name = Annotated[str, typer.Argument(metavar="NAME", help="What it is for.")]
TokenId = Annotated[str, typer.Argument(metavar="ID", help="Id of the token, as shown by `pricebook token list`.")]

app = typer.Typer(no_args_is_help=True, help="Add, list and revoke tokens of programs.")


@app.command("add")
def add(name: Name, roles: Roles = None, stores: Stores = None) -> None:
    """Add a token with which a program acts, by default one that only reads. It cannot be shown again."""
    chosen = read_roles(roles, ["read"])
    _, text = run(lambda book: price_tokens(make_web(book)).issue(name, chosen, stores or [""]))
    typer.echo(text)


@app.command("list")
def list_() -> None:
    """List the tokens: id, roles, beginnings of stores, and name."""
    for token in run(lambda book: price_tokens(make_web(book)).list()):
        typer.echo(f"{token.id}  {', '.join(token.scopes)}  {shown_stores(token.stores)}  {token.name}")


@app.command("revoke")
def revoke(id: TokenId) -> None:
    """End a token. Running servers may accept it for five more seconds."""
    if not run(lambda book: price_tokens(make_web(book)).revoke(id)):
        raise NotFound(f"token {id!r}")
    typer.echo(f"revoked {id}")
