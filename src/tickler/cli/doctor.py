"""`tickler doctor`: what is wrong with a store, by name, and how to mend it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from tickler.cli.options import FLAG, StoreOption, needed
from tickler.connect import connect, store_for_url
from tickler.index import SetAside
from tickler.store import Misfit

MOST_SHOWN = 100

Scan = Annotated[
    bool,
    typer.Option(
        "--scan", metavar=FLAG, help="Only read everything, in a table of yours too, for items that no index finds: slow."
    ),
]


def command(store: StoreOption = None, scan: Scan = False) -> None:
    """Say what is wrong: exit code 0 when nothing is, 1 otherwise."""
    url, console = needed(store), Console()
    found, total = asyncio.run(_misfits(url) if scan else _set_aside(url))
    if not total:
        console.out("nothing is wrong", highlight=False)
        return
    for misfit in found[:MOST_SHOWN]:
        console.out(f"{misfit.item}: {misfit.attribute} {misfit.reason}", highlight=False)
    if total > MOST_SHOWN:
        console.out(f"and {total - MOST_SHOWN} more", highlight=False)
    raise typer.Exit(1)


async def _misfits(url: str) -> tuple[list[Misfit], int]:
    found: list[Misfit] = []
    with Console(stderr=True).status("reading everything …") as status:
        async for misfit in store_for_url(url).misfits():
            found.append(misfit)
            status.update(f"reading everything … {len(found)} found")
    return found, len(found)


async def _set_aside(url: str) -> tuple[list[Misfit], int]:
    async with connect(url, create=False) as tickler:
        rows: list[SetAside] = await tickler.index.set_aside(MOST_SHOWN)
        found = [
            Misfit(f"{row.owner}/{row.key}", "when", f"{row.when_text!r} does not read: {row.reason}; put it again")
            for row in rows
        ]
        return found, await tickler.index.count_set_aside()
