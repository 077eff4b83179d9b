"""`tickler migrate`: the store's schema, up to this version."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from tickler.cli.options import StoreOption, needed
from tickler.connect import parse_url, store_for_url

PrintSql = Annotated[bool, typer.Option("--print-sql", help="Print all of the schema as a script, and touch nothing.")]


def command(store: StoreOption = None, print_sql: PrintSql = False) -> None:
    """Bring the store's schema up to date."""
    url = needed(store)
    console, opened = Console(), store_for_url(url)
    if print_sql:
        console.out(opened.migration_sql(), highlight=False, end="")
        return
    names = asyncio.run(opened.migrate())
    for name in names:
        console.out(f"ran {name}", highlight=False)
    console.out(f"{parse_url(url).text} is up to date", highlight=False)
