"""`tickler token`: access tokens of the HTTP API."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from tickler.access.tokens import Scope, Token
from tickler.cli.app import NOT_FOUND
from tickler.cli.options import ByOption, JsonOption, StoreOption, YesOption, actor, usage_error
from tickler.cli.output import confirmed, print_json, print_line, print_note, show_table
from tickler.cli.store_session import with_store
from tickler.cli.time_format import parse_instant, utc
from tickler.client import Tickler
from tickler.errors import InvalidWhen
from tickler.when.every import parse_every


class ScopeName(StrEnum):
    """`Scope` as an enum: Typer takes no repeated Literal."""

    READ = "read"
    WRITE = "write"
    OPERATE = "operate"


ScopesOption = Annotated[list[ScopeName], typer.Option("--scope", help="Permission to grant; may be repeated.")]
OwnerOption = Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="Limit the token to this owner.")]
NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of its holder, shown in the audit log.")]
ExpiresOption = Annotated[
    str | None, typer.Option("--expires", metavar="TIME", help="Expiry: ISO 8601, or a duration such as 30d.")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the token, as shown by `tickler token list`.")]

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke access tokens of the HTTP API.")


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
    """Create a token and print it. It cannot be shown again."""
    scopes: list[Scope] = [each.value for each in scope]
    token, text = with_store(store, lambda tickler: _create(tickler, scopes, owner, name, expires, actor(by)), create=True)
    if as_json:
        print_json(msgspec.to_builtins(token) | {"token": text})
        return
    limited_to = "" if token.owner is None else f" for {token.owner}"
    until = "" if token.expires_at is None else f" until {utc(token.expires_at)} UTC"
    print_note(f"{token.id} allows {', '.join(token.scopes)}{limited_to}{until}; it will not be shown again:")
    print_line(text)


@app.command("list")
def show_all(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List valid tokens by id, without their secrets."""
    tokens, is_closed = with_store(store, _list)
    if as_json:
        print_json({"items": tokens, "next": None})
    elif tokens:
        columns = ["id", "scopes", "owner", "name", "created (UTC)", "expires (UTC)"]
        show_table(columns, [_row(token) for token in tokens], unwrapped=("id", *columns[-2:]))
    elif is_closed:
        print_note("no tokens, and every request needs one: create one, or see `tickler token open --help`")
    else:
        print_note("no tokens: the service is open to its own machine, with all permissions")


@app.command("revoke")
def revoke(id: IdArgument, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Revoke a token for good. It takes effect within five seconds."""
    if not with_store(store, lambda tickler: _revoke(tickler, id, actor(by))):
        print_note(f"tickler: no token {id[:80]}: see `tickler token list`")
        raise typer.Exit(NOT_FOUND)
    if as_json:
        print_json({"id": id, "revoked": True})
    else:
        print_line(f"{id} revoked")


@app.command("open")
def reopen(yes: YesOption = False, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Open the service to its own machine without a token again. Revoke all tokens first."""
    if not yes and not sys.stdin.isatty():
        raise usage_error("this gives everyone on the machine all permissions: confirm with --yes")
    if not confirmed("give everyone on the service's machine all permissions, without a token?", yes):
        raise typer.Exit(1)
    was_closed = with_store(store, lambda tickler: _open(tickler, actor(by)))
    if as_json:
        print_json({"opened": was_closed})
    else:
        print_line("no token is needed any more" if was_closed else "no token was needed already")


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
        return parse_instant(text, "UTC", "expires")


def _row(token: Token) -> list[str]:
    return [
        token.id,
        ", ".join(token.scopes),
        "all" if token.owner is None else token.owner,
        token.name,
        utc(token.created_at),
        utc(token.expires_at) or "never",
    ]
