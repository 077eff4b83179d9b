"""`tickler backup`: write an SQLite store to a file while it is in use, or restore it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from tickler.cli.options import JsonOption, StoreOption, flag, required_store
from tickler.cli.output import print_result
from tickler.clock import SystemClock
from tickler.connect import opened_store, store_for_url
from tickler.database.progress import progress_bar
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput, SchemaError, SchemaMissing
from tickler.observe.human_format import some
from tickler.records.worker_status import workers
from tickler.stores.optional import backed_up_to_files, contents_of
from tickler.stores.store import Store

File = Annotated[Path, typer.Argument(metavar="FILE", help="File to write; with --restore, file to read.")]
Force = Annotated[bool, flag("--force", help="Replace the existing file; with --restore, replace the contents of the store.")]
Restore = Annotated[bool, flag("--restore", help="Restore the store from FILE.")]

# Singular and plural of what a store counts.
LABELS = {
    "schedules": ("schedule", "schedules"),
    "index": ("index row", "index rows"),
    "fires": ("fire", "fires"),
    "history": ("history entry", "history entries"),
    "records": ("record", "records"),
}


def command(
    file: File, store: StoreOption = None, restore: Restore = False, force: Force = False, json: JsonOption = False
) -> None:
    """Back up an SQLite store to a file while it is in use, or restore it. The file appears when it is complete and checked.

    For PostgreSQL and DynamoDB use their own tools, or `tickler copy`.
    """
    url = required_store(store)
    if not restore and file.exists() and not force:
        raise InvalidInput(f"{file} already exists: name another file, or pass --force to replace it")
    counts = asyncio.run(_restore(url, file, force) if restore else _back_up(url, file))
    size = file.stat().st_size
    summary = ", ".join(some(count, *LABELS.get(name, (name, name))) for name, count in counts.items())
    done = f"restored {parse_url(url).text} from {file}" if restore else f"wrote {file}, {size / 1e6:,.1f} MB"
    print_result({"file": str(file), "bytes": size, "counts": counts}, f"{done}: {summary}", as_json=json)


async def _back_up(url: str, file: Path) -> dict[str, int]:
    with progress_bar("writing") as on_progress:
        return await backed_up_to_files(store_for_url(url), parse_url(url).text).backup(file, on_progress)


async def _restore(url: str, file: Path, force: bool) -> dict[str, int]:
    try:
        async with opened_store(url, create=False) as store:
            await _refuse_store_in_use(store, url, force)
    except SchemaMissing:
        pass
    except SchemaError:
        if not force:
            raise
    with progress_bar("restoring") as on_progress:
        return await backed_up_to_files(store_for_url(url), parse_url(url).text).restore(file, on_progress)


async def _refuse_store_in_use(store: Store, url: str, force: bool) -> None:
    now_ms, name = SystemClock().now_ms(), parse_url(url).text
    alive = [worker.name for worker in await workers(store.records, now_ms) if worker.is_alive(now_ms)]
    if alive:
        running = some(len(alive), "worker is running", "workers are running")
        raise InvalidInput(f"{running} on {name}, such as {alive[0]}: stop all workers, then restore")
    schedules, _ = await contents_of(store).schedules.walk(None, 1)
    if schedules and not force:
        raise InvalidInput(f"{name} has schedules, which would be lost: pass --force to replace its contents")
