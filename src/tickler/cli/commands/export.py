"""`tickler export`: write schedules as lines of JSON."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from tickler.cli.options import JsonOption, OwnerOption, StoreOption, flag
from tickler.cli.output import print_json, print_note
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.database.progress import OnProgress, progress_bar
from tickler.errors import InvalidInput
from tickler.model.schedule import StoredSchedule
from tickler.observe.human_format import some
from tickler.transfer.ndjson import export_lines

FileArgument = Annotated[str, typer.Argument(metavar="[FILE]", help="File to write; - for stdout.")]
ForceOption = Annotated[bool, flag("--force", help="Replace the existing file.")]


def command(
    file: FileArgument = "-",
    force: ForceOption = False,
    owner: OwnerOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all schedules as lines of JSON, for `tickler import`. Exit code 1 means that some were left out."""
    left_out: list[StoredSchedule] = []
    if file != "-" and Path(file).is_file() and not force:
        raise InvalidInput(f"{file} already exists: name another file, or pass --force to replace it")
    with _opened(file) as target, progress_bar("exporting") as on_progress:
        count = with_store(store, lambda tickler: _export(tickler, target, owner, left_out, on_progress))
    if as_json:
        skipped = [{"owner": each.owner, "key": each.key, "error": _why(each)} for each in left_out]
        print_json({"file": file, "exported": count, "left_out": skipped}, stderr=file == "-")
    else:
        for schedule in left_out:
            print_note(f"tickler: {schedule.id} left out: {_why(schedule)}")
        print_note(some(count, "schedule exported", "schedules exported"))
    if left_out:
        raise typer.Exit(1)


def _why(schedule: StoredSchedule) -> str:
    return "a newer Tickler wrote it: upgrade" if schedule.newer else f"it cannot be read ({schedule.reason}): put it again"


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdout.buffer
        return
    try:
        path = Path(file)
        is_pipe = path.exists() and not path.is_file()  # or a device: written in place
        with path.open("wb") if is_pipe else _atomic_write(Path(os.path.realpath(path))) as target:
            yield target
    except OSError as error:
        raise InvalidInput(f"{file}: {(error.strerror or str(error)).lower()}: name a writable file, or -") from None


@contextmanager
def _atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file beside `path`, and rename it when it is complete. Keep the mode of an existing file."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as target:
            if path.exists():
                partial.chmod(stat.S_IMODE(path.stat().st_mode))
            yield target
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


async def _export(
    tickler: Tickler, target: BinaryIO, owner: str | None, left_out: list[StoredSchedule], on_progress: OnProgress
) -> int:
    count = 0
    async for piece in export_lines(tickler.schedules, owner, left_out=left_out.append):
        target.write(piece)
        count += piece.count(b"\n")
        on_progress("exporting", count, None)
    target.flush()
    return count
