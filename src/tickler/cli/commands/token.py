"""`tickler token`: who may use the HTTP API, and for what."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from tickler.access.tokens import Scope, Token
from tickler.cli.app import NOT_FOUND
from tickler.cli.options import ByOption, JsonOption, StoreOption, YesOption, misused, named
from tickler.cli.output import agreed, answer, remark, say, show_table
from tickler.cli.store_session import on_store
from tickler.cli.time_format import read_moment, utc
from tickler.client import Tickler
from tickler.errors import InvalidWhen
from tickler.when.every import parse_every


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

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens of the HTTP API, or do without.")


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
    tokens, is_closed = on_store(store, _list)
    if as_json:
        answer({"items": tokens, "next": None})
    elif tokens:
        columns = ["id", "scopes", "owner", "name", "made (UTC)", "expires (UTC)"]
        show_table(columns, [_row(token) for token in tokens], whole=("id", *columns[-2:]))
    elif is_closed:
        remark("there are no tokens, and the service lets nobody in: make one, or see `tickler token open --help`")
    else:
        remark("there are no tokens: the service is for its own machine, where everybody may do anything")


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


@app.command("open")
def reopen(yes: YesOption = False, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Let everybody on the service's own machine in without a token again, as before the first one. There must be none left."""
    if not yes and not sys.stdin.isatty():
        raise misused("this lets everybody on the machine do anything: say --yes")
    if not agreed("let everybody on the service's machine do anything, without a token?", yes):
        raise typer.Exit(1)
    was_closed = on_store(store, lambda tickler: _open(tickler, named(by)))
    if as_json:
        answer({"opened": was_closed})
    else:
        say("no token is needed any more" if was_closed else "no token was needed before")


async def _list(tickler: Tickler) -> tuple[list[Token], bool]:
    return await tickler.tokens.list(), await tickler.tokens.exist()


async def _open(tickler: Tickler, by: str) -> bool:
    if not await tickler.tokens.open():
        return False
    await tickler.audit.record(by, "opened the service")
    return True


async def _create(
    tickler: Tickler, scopes: list[Scope], owner: str | None, name: str, expires: str | None, by: str
) -> tuple[Token, str]:
    expires_at = None if expires is None else _read_expiry(expires, tickler.now_ms())
    token, text = await tickler.tokens.create(scopes, owner=owner, name=name, expires_at=expires_at)
    await tickler.audit.record(by, "made a token", owner=owner, detail=token.id)
    return token, text


async def _revoke(tickler: Tickler, id: str, by: str) -> bool:
    if not await tickler.tokens.revoke(id):
        return False
    await tickler.audit.record(by, "revoked a token", detail=id)
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
