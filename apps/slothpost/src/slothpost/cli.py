"""`slothpost` on the command line: serve it, let people in, beat once, and issue tokens."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from typing import Annotated, TypeVar

import msgspec
import typer

from slothpost.app import Slothpost, open_slothpost
from slothpost.demo import DEMO_USER, open_demo
from slothpost.errors import InvalidField, NotFound, SlothpostError
from slothpost.model import User
from slothpost.serving import serve
from slothpost.settings import DEFAULT_PORT, Settings
from slothpost.web.api_tokens import API_TOKEN_PREFIX, ApiToken, ApiTokens
from slothpost.web.pages.sign_in import sign_in_path
from slothpost.web.tick import BUDGET_MS, MAX_BUDGET_MS, PUBLISH_S
from tickler import RunOptions
from tickler.errors import TicklerError
from tickler.web import Web, ensure_key, listen, make_private, run

FAILED = 1
NOT_FOUND = 3
LOCALHOST = "127.0.0.1"
OPERATOR = "operator"
DEMO_STORE = "sqlite:///slothpost-demo.db"
INVITATION = timedelta(days=7)

T = TypeVar("T")

UserId = Annotated[str, typer.Argument(metavar="USER", help="Id of a user, as shown by `slothpost users`.")]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="Port to listen on.", show_default=str(DEFAULT_PORT))]
IsDemo = Annotated[
    bool, typer.Option("--demo", help=f"Show made-up activity, and post to networks of this machine ({DEMO_STORE}).")
]
NoWorker = Annotated[bool, typer.Option("--no-worker", help="Only answer requests; /tick does what is due.")]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="Their time zone, such as Europe/Paris.")]
Budget = Annotated[int, typer.Option(min=1, max=MAX_BUDGET_MS, metavar="MS", help="How long to look for what is due.")]
TokenName = Annotated[str, typer.Option("--name", metavar="NAME", help="What it is for, shown in the settings of the user.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="It may look, and change nothing.")]
TokenId = Annotated[str, typer.Argument(metavar="ID", help="Id of the token, as shown by `slothpost token list`.")]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)
token_app = typer.Typer(no_args_is_help=True, help="Create, list and revoke tokens of the API.")
app.add_typer(token_app, name="token")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error is one line on stderr and exit code 1, or 3 if something was not found."""
    try:
        app(arguments)
    except (SlothpostError, TicklerError) as error:
        typer.echo(f"slothpost: {error}", err=True)
        sys.exit(NOT_FOUND if isinstance(error, NotFound) else FAILED)


@app.callback()
def root() -> None:
    """Build in public without writing posts: drafts from what you ship, on a weekly plan for each channel."""


@app.command("serve")
def serve_command(host: Host = LOCALHOST, port: Port = None, demo: IsDemo = False, no_worker: NoWorker = False) -> None:
    """Serve the pages, the API and webhooks, and draft and publish what is due, until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    given = {} if port is None else {"SLOTHPOST_PORT": str(port)}
    settings = _settings(given | ({"SLOTHPOST_STORE": DEMO_STORE} if demo and "SLOTHPOST_STORE" not in os.environ else {}))
    _check_reachable(settings, host)
    chosen = int(given.get("SLOTHPOST_PORT") or os.environ.get("SLOTHPOST_PORT") or DEFAULT_PORT)
    with closing(listen(host, chosen)) as listening:
        run(lambda: _serve(settings, listening, is_demo=demo, works=not no_worker))


@app.command("invite")
def invite(name: Annotated[str, typer.Argument(metavar="NAME", help="Their name.")], zone: Zone = "UTC") -> None:
    """Create a user, and print the link with which they sign in once. It is valid for seven days."""

    async def create(slothpost: Slothpost) -> str:
        is_first = await slothpost.users.operator() is None
        user = await slothpost.users.create(name, zone=zone, is_operator=is_first)
        return await _link(slothpost, user, INVITATION)

    typer.echo(_run(create))


@app.command("sign-in")
def sign_in(user: UserId) -> None:
    """Print a link with which a user signs in once, within 30 minutes."""

    async def create(slothpost: Slothpost) -> str:
        return await _link(slothpost, await _user(slothpost, user))

    typer.echo(_run(create))


@app.command("users")
def users() -> None:
    """List the users: id, name, and who is an operator."""
    for user in _run(lambda slothpost: slothpost.users.everyone()):
        typer.echo(f"{user.id}  {user.name}{'  (operator)' if user.is_operator else ''}")


@app.command("tick")
def tick(budget_ms: Budget = BUDGET_MS) -> None:
    """Do once what is due: draft, publish and poll. For an outside cron job."""
    summary = _run(lambda slothpost: slothpost.t.tick(budget_ms, RunOptions(drain=PUBLISH_S)))
    typer.echo(msgspec.json.encode(summary).decode())


@token_app.command("create")
def create_token(user: UserId, name: TokenName = "command line", read_only: ReadOnly = False) -> None:
    """Create a token with which a script acts for a user. It cannot be shown again."""

    async def create(slothpost: Slothpost) -> str:
        return await _tokens(slothpost).issue(await _user(slothpost, user), name, writes=not read_only)

    typer.echo(_run(create))


@token_app.command("list")
def list_tokens(user: UserId) -> None:
    """List the tokens of a user."""

    async def find(slothpost: Slothpost) -> list[str]:
        found = await _tokens(slothpost).list(await _user(slothpost, user))
        return [f"{token.id}  {', '.join(token.scopes)}  {token.name}" for token in found]

    for line in _run(find):
        typer.echo(line)


@token_app.command("revoke")
def revoke_token(user: UserId, id: TokenId) -> None:
    """End a token. Running servers may accept it for five more seconds."""

    async def revoke(slothpost: Slothpost) -> None:
        await _tokens(slothpost).revoke(await _user(slothpost, user), id)

    _run(revoke)
    typer.echo(f"revoked {id}")


async def _serve(settings: Settings, listening: socket.socket, *, is_demo: bool, works: bool) -> None:
    async with AsyncExitStack() as stack:
        demo = await stack.enter_async_context(open_demo(settings, say=_say)) if is_demo else None
        slothpost = await stack.enter_async_context(open_slothpost(settings if demo is None else demo.settings))
        if demo is not None:
            await demo.fill(slothpost)
        link = await _first_link(slothpost, is_demo=is_demo)
        typer.echo(f"\n  slothpost on {slothpost.t.database.name}{'' if works else ', without a worker'}", err=True)
        typer.echo(f"  open  {settings.url('/') if link is None else link}", err=True)
        _say("`slothpost sign-in USER` prints a link to sign in" if link is None else "this link signs in once")
        for line in () if demo is None else demo.hints():
            _say(line)
        typer.echo(err=True)
        await serve(slothpost, listening, works=works)


def _say(line: str) -> None:
    typer.echo(f"  {line}", err=True)


async def _first_link(slothpost: Slothpost, *, is_demo: bool) -> str | None:
    """Return a link for whoever starts it the first time, and for the user of the demo each time."""
    if is_demo:
        return await _link(slothpost, await _user(slothpost, DEMO_USER))
    if await slothpost.users.operator() is not None:
        return None
    return await _link(slothpost, await slothpost.users.create(OPERATOR.title(), is_operator=True, id=OPERATOR))


def _settings(given: dict[str, str] | None = None) -> Settings:
    settings = Settings.from_environment({**os.environ, **(given or {})})
    ensure_key(os.environ, settings.store)
    make_private(settings.store)
    return settings


def _check_reachable(settings: Settings, host: str) -> None:
    """Refuse to listen for other machines without the address that they use: every request of theirs would be refused."""
    if "SLOTHPOST_URL" in os.environ or host == "localhost":
        return
    try:
        is_local = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        reason = f"it is missing, and {host} is reachable from other machines: set it to the address that browsers use"
        raise InvalidField("SLOTHPOST_URL", f"{reason}, such as https://posts.example.com")


def _run(work: Callable[[Slothpost], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_slothpost(_settings()) as slothpost:
            return await work(slothpost)

    return asyncio.run(run())


async def _user(slothpost: Slothpost, id: str) -> User:
    user = await slothpost.users.get(id)
    if user is None:
        raise NotFound(f"user {id!r}")
    return user


async def _link(slothpost: Slothpost, user: User, lifetime: timedelta | None = None) -> str:
    links = _web(slothpost).links
    code = await (links.create(user.id) if lifetime is None else links.create(user.id, lifetime=lifetime))
    return slothpost.settings.url(sign_in_path(code))


def _tokens(slothpost: Slothpost) -> ApiTokens:
    tokens = _web(slothpost).tokens(ApiToken, prefix=API_TOKEN_PREFIX, subject=lambda token: token.user)
    return ApiTokens(slothpost.db, tokens)


def _web(slothpost: Slothpost) -> Web[User]:
    """Return links and tokens as the pages keep them."""
    return Web(slothpost.t, "slothpost", user=slothpost.users.get)
