"""Options that commands share."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

FLAG = ""  # as metavar: Typer would write <bool> beside an option that takes no value

StoreOption = Annotated[
    str | None, typer.Option("--store", envvar="TICKLER_STORE", metavar="URL", help="The store, such as sqlite:///tickler.db.")
]


def needed(store: str | None) -> str:
    """The store's URL; exit code 2 where none was given."""
    if not store:
        Console(stderr=True).out(
            "tickler: no store was named: pass --store URL, such as --store sqlite:///tickler.db, or set TICKLER_STORE",
            highlight=False,
        )
        raise typer.Exit(2)
    return store
