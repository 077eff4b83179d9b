"""`tickler token`: who may use the HTTP API, and for what."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from tickler.cli.moments import read_moment, utc
from tickler.cli.options import ByOption, JsonOption, StoreOption, named
from tickler.cli.output import answer, remark, say, show_table
from tickler.cli.session import on_store
from tickler.errors import InvalidWhen
from tickler.tickler import Tickler
from tickler.tokens import Scope, Token
from tickler.when.every import parse_every

NOT_FOUND = 3


class ScopeName(StrEnum):
    """As Typer takes several of them."""

    READ = "read"
    WRITE = "write"
    OPERATE = "operate"


ScopesOption = Annotated[list[ScopeName], typer.Option("--scope", help="What it allows; may be given again for more.")]
OwnerOption = Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="For this owner's data alone.")]
NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Who has it: is remembered with what they do.")]
ExpiresOption = Annotated[
    str | None, typer.Option("--expires", metavar="TIME", help="Until when it is valid: ISO 8601, or such as 30d from now.")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `tickler token list` shows it.")]

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens of the HTTP API.")


@app.command("create")
def create(
    scope: ScopesOption,
    owner: OwnerOption = None,
    name: NameOption = "",
    expires: ExpiresOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it: nobody can be shown it again."""
    scopes: list[Scope] = [each.value for each in scope]
    token, text = on_store(store, lambda tickler: _create(tickler, scopes, owner, name, expires, named(by)), create=True)
    if as_json:
        answer(msgspec.to_builtins(token) | {"token": text})
        return
    for_whom = "" if token.owner is None else f" for {token.owner}"
    until = "" if token.expires_at is None else f" until {utc(token.expires_at)} UTC"
    remark(f"{token.id} allows {', '.join(token.scopes)}{for_whom}{until}; it is not shown again:")
    say(text)


@app.command("list")
def show_all(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show the tokens that are valid, by id, without their secrets."""
    tokens = on_store(store, lambda tickler: tickler.tokens.list())
    if as_json:
        answer({"items": tokens, "next": None})
    elif tokens:
        columns = ["id", "scopes", "owner", "name", "made (UTC)", "expires (UTC)"]
        show_table(columns, [_row(token) for token in tokens], whole=("id", *columns[-2:]))
    else:
        remark("there are no tokens: whoever reaches the service may do anything")


@app.command("revoke")
def revoke(id: IdArgument, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Make a token invalid, within five seconds, for good."""
    if not on_store(store, lambda tickler: _revoke(tickler, id, named(by))):
        remark(f"tickler: there is no token {id[:80]}: see `tickler token list`")
        raise typer.Exit(NOT_FOUND)
    if as_json:
        answer({"id": id, "revoked": True})
    else:
        say(f"{id} is revoked")


async def _create(
    tickler: Tickler, scopes: list[Scope], owner: str | None, name: str, expires: str | None, by: str
) -> tuple[Token, str]:
    expires_at = None if expires is None else _read_expiry(expires, tickler.now_ms())
    token, text = await tickler.tokens.create(scopes, owner=owner, name=name, expires_at=expires_at)
    await tickler.audit.note(by, "made a token", owner=owner, detail=token.id)
    return token, text


async def _revoke(tickler: Tickler, id: str, by: str) -> bool:
    if not await tickler.tokens.revoke(id):
        return False
    await tickler.audit.note(by, "revoked a token", detail=id)
    return True


def _read_expiry(text: str, now_ms: int) -> int:
    try:
        return now_ms + parse_every(f"@every {text}").interval_ms
    except InvalidWhen:
        return read_moment(text, "UTC", "expires")


def _row(token: Token) -> list[str]:
    return [
        token.id,
        ", ".join(token.scopes),
        "everybody" if token.owner is None else token.owner,
        token.name,
        utc(token.created_at),
        utc(token.expires_at) or "never",
    ]
