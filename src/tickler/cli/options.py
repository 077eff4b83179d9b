"""Options that commands share."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

FLAG = ""  # as metavar: Typer would write <bool> beside an option that takes no value
MAX_SHOWN = 1_000

StoreOption = Annotated[
    str | None, typer.Option("--store", envvar="TICKLER_STORE", metavar="URL", help="The store, such as sqlite:///tickler.db.")
]
OwnerArgument = Annotated[str, typer.Argument(metavar="OWNER", help="Who the schedule belongs to: your user's id.")]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The schedule's name, unique per owner.")]
OwnerOption = Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="Only of this owner.")]
KeyOption = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Only of this schedule of the owner's.")]
ZoneOption = Annotated[
    str | None,
    typer.Option("--tz", metavar="ZONE", show_default="UTC", help="The zone of its wall times, such as Europe/Paris."),
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=MAX_SHOWN, help="How many to show.")]
AfterOption = Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="Go on where an earlier answer ended.")]
JsonOption = Annotated[bool, typer.Option("--json", metavar=FLAG, help="Answer with one line of JSON, for programs.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", metavar=FLAG, help="Do not ask.")]
ByOption = Annotated[
    str | None, typer.Option("--by", envvar="USER", metavar="NAME", help="Who does this: the name goes into the audit log.")
]


def needed(store: str | None) -> str:
    """The store's URL; exit code 2 where none was given."""
    if not store:
        raise misused("no store was named: pass --store URL, such as --store sqlite:///tickler.db, or set TICKLER_STORE")
    return store


def misused(reason: str) -> typer.Exit:
    """For a command that makes no sense as it was given: one line, and exit code 2."""
    Console(stderr=True).out(f"tickler: {reason}", highlight=False)
    return typer.Exit(2)


def named(by: str | None) -> str:
    """Who does it, where nobody says."""
    return by or "command line"
