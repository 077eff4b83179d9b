"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from typer.models import OptionInfo

FLAG = ""  # metavar of an option without a value: Typer would show <bool>
MAX_SHOWN = 1_000


def flag(*names: str, help: str) -> OptionInfo:
    """Return an option without a value."""
    option: OptionInfo = typer.Option(*names, metavar=FLAG, help=help)
    return option


StoreOption = Annotated[
    str | None, typer.Option("--store", envvar="TICKLER_STORE", metavar="URL", help="Store to use, such as sqlite:///tickler.db.")
]
OwnerArgument = Annotated[str, typer.Argument(metavar="OWNER", help="Owner of the schedule: your user's id.")]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="Name of the schedule, unique per owner.")]
OwnerOption = Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="Limit to this owner.")]
KeyOption = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Limit to this schedule; needs --owner.")]
ZoneOption = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", show_default="UTC", help="Time zone of the schedule, such as Europe/Paris.")
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=MAX_SHOWN, help="Maximum number of rows.")]
AfterOption = Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="Continue after this cursor.")]
JsonOption = Annotated[bool, flag("--json", help="Print one line of JSON.")]
TableArgument = Annotated[
    str, typer.Argument(metavar="MODULE:TABLE", help="The table, as `shop.model:table`, with its entities in the same module.")
]
YesOption = Annotated[bool, flag("--yes", "-y", help="Do not ask for confirmation.")]
ByOption = Annotated[str | None, typer.Option("--by", envvar="USER", metavar="NAME", help="Your name in the audit log.")]


def required_store(store: str | None) -> str:
    """Return the store's URL, or exit with code 2 if there is none."""
    if not store:
        raise usage_error("no store given: pass --store URL, such as --store sqlite:///tickler.db, or set TICKLER_STORE")
    return store


def usage_error(reason: str) -> typer.Exit:
    """Print why the arguments make no sense, and return the exit with code 2."""
    Console(stderr=True).out(f"tickler: {reason}", highlight=False)
    return typer.Exit(2)


def actor(by: str | None) -> str:
    """Return the name for the audit log."""
    return by or "command line"
