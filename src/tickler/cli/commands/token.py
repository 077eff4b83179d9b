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
from tickler.cli.output import confirmed, print_json, print_line, print_note, print_result, show_table
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

    async def make(tickler: Tickler) -> tuple[Token, str]:
        expires_at = None if expires is None else _read_expiry(expires, tickler.now_ms())
        token, text = await tickler.tokens.create(scopes, owner=owner, name=name, expires_at=expires_at)
        await tickler.audit.record(actor(by), "made a token", owner=owner, detail=token.id)
        return token, text

    token, text = with_store(store, make, create=True)
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

    async def read(tickler: Tickler) -> tuple[list[Token], bool]:
        return await tickler.tokens.list(), await tickler.tokens.exist()

    tokens, is_closed = with_store(store, read)
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

    async def end(tickler: Tickler) -> bool:
        is_found = await tickler.tokens.revoke(id)
        if is_found:
            await tickler.audit.record(actor(by), "revoked a token", detail=id)
        return is_found

    if not with_store(store, end):
        print_note(f"tickler: no token {id[:80]}: see `tickler token list`")
        raise typer.Exit(NOT_FOUND)
    print_result({"id": id, "revoked": True}, f"{id} revoked", as_json=as_json)


@app.command("open")
def reopen(yes: YesOption = False, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Open the service to its own machine without a token again. Revoke all tokens first."""
    if not yes and not sys.stdin.isatty():
        raise usage_error("this gives everyone on the machine all permissions: confirm with --yes")
    if not confirmed("give everyone on the service's machine all permissions, without a token?", yes):
        raise typer.Exit(1)

    async def open_service(tickler: Tickler) -> bool:
        was_closed = await tickler.tokens.open()
        if was_closed:
            await tickler.audit.record(actor(by), "opened the service")
        return was_closed

    was_closed = with_store(store, open_service)
    summary = "no token is needed any more" if was_closed else "no token was needed already"
    print_result({"opened": was_closed}, summary, as_json=as_json)


def _read_expiry(text: str, now_ms: int) -> int:
    try:
        return now_ms + parse_every(f"@every {text}").interval_ms
    except InvalidWhen:
        return parse_instant(text, "UTC", "expires")


def _row(token: Token) -> list[str]:
    owner, expires = "all" if token.owner is None else token.owner, utc(token.expires_at) or "never"
    return [token.id, ", ".join(token.scopes), owner, token.name, utc(token.created_at), expires]
