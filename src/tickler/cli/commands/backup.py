"""`tickler backup`: all of an SQLite store in one file, while it is used; and back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tickler.cli.options import FLAG, JsonOption, StoreOption, needed
from tickler.cli.output import answer, say
from tickler.clock import SystemClock
from tickler.connect import opened_store, parse_url, store_for_url
from tickler.database.progress import OnProgress
from tickler.errors import InvalidInput, SchemaError, SchemaMissing
from tickler.observe.human_format import some
from tickler.records.worker_status import workers
from tickler.stores.optional import backed_up_to_files, contents_of
from tickler.stores.store import Store

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, or, with --restore, to read.")]
Force = Annotated[
    bool, typer.Option("--force", metavar=FLAG, help="Replace the file that is there; with --restore, what the store has.")
]
Restore = Annotated[bool, typer.Option("--restore", metavar=FLAG, help="The other way: make the store what the file holds.")]

# What a store counts, as it is said of one and of several.
WORDS = {
    "schedules": ("schedule", "schedules"),
    "index": ("index row", "index rows"),
    "fires": ("fire", "fires"),
    "history": ("entry of history", "entries of history"),
    "records": ("record", "records"),
}


def command(
    file: File, store: StoreOption = None, restore: Restore = False, force: Force = False, json: JsonOption = False
) -> None:
    """Write all of the store into FILE, as it is at one instant, while others work on it; checked before it gets that name.

    For SQLite. PostgreSQL and DynamoDB have tools of their own, or use `tickler copy`.
    """
    url = needed(store)
    if not restore and file.exists() and not force:
        raise InvalidInput(f"{file} is there already: name another file, or pass --force to replace it")
    counts = asyncio.run(_restored(url, file, force) if restore else _backed_up(url, file))
    size = file.stat().st_size
    held = ", ".join(some(count, *WORDS.get(name, (name, name))) for name, count in counts.items())
    if json:
        answer({"file": str(file), "bytes": size, "counts": counts})
    elif restore:
        say(f"{parse_url(url).text} is as in {file}: {held}")
    else:
        say(f"wrote {file}, {size / 1e6:,.1f} MB: {held}")


async def _backed_up(url: str, file: Path) -> dict[str, int]:
    with _bar("writing") as tell:
        return await backed_up_to_files(store_for_url(url), parse_url(url).text).backup(file, tell)


async def _restored(url: str, file: Path, force: bool) -> dict[str, int]:
    try:
        async with opened_store(url, create=False) as store:
            await _refuse_what_is_used(store, url, force)
    except SchemaMissing:
        pass
    except SchemaError:
        if not force:
            raise
    with _bar("restoring") as tell:
        return await backed_up_to_files(store_for_url(url), parse_url(url).text).restore(file, tell)


async def _refuse_what_is_used(store: Store, url: str, force: bool) -> None:
    now_ms, name = SystemClock().now_ms(), parse_url(url).text
    alive = [worker.name for worker in await workers(store.records, now_ms) if worker.is_alive(now_ms)]
    if alive:
        at_work = some(len(alive), "worker is at work", "workers are at work")
        raise InvalidInput(f"{at_work} on {name}, such as {alive[0]}: stop them, and restore then")
    held, _ = await contents_of(store).schedules.walk(None, 1)
    if held and not force:
        raise InvalidInput(f"{name} has schedules, which would be lost: pass --force to replace all that it holds")


@contextmanager
def _bar(what: str) -> Iterator[OnProgress]:
    """On stderr, while somebody watches."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
