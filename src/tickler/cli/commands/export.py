"""`tickler export`: every schedule, a line of JSON each."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from tickler.cli.options import FLAG, JsonOption, OwnerOption, StoreOption
from tickler.cli.output import answer, remark
from tickler.cli.progress import progress
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.errors import InvalidInput
from tickler.model.schedule import StoredSchedule
from tickler.observe.human_format import some
from tickler.transfer.ndjson import export_lines

FileArgument = Annotated[str, typer.Argument(metavar="[FILE]", help="Where to; - is stdout.")]
ForceOption = Annotated[bool, typer.Option("--force", metavar=FLAG, help="Replace the file that is there.")]


def command(
    file: FileArgument = "-",
    force: ForceOption = False,
    owner: OwnerOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write every schedule as a line of JSON, which `tickler import` reads. Exit code 1 if one could not be written whole."""
    left_out: list[StoredSchedule] = []
    if file != "-" and Path(file).is_file() and not force:
        raise InvalidInput(f"{file} is there already: name another file, or pass --force to replace it")
    with _opened(file) as target, progress("exporting") as update:
        count = on_store(store, lambda tickler: _export(tickler, target, owner, left_out, update))
    if as_json:
        told = [{"owner": each.owner, "key": each.key, "error": _why(each)} for each in left_out]
        answer({"file": file, "exported": count, "left_out": told}, beside=file == "-")
    else:
        for schedule in left_out:
            remark(f"tickler: {schedule.id} was left out: {_why(schedule)}")
        remark(some(count, "schedule was exported", "schedules were exported"))
    if left_out:
        raise typer.Exit(1)


def _why(schedule: StoredSchedule) -> str:
    return "a newer Tickler wrote it: upgrade" if schedule.newer else f"it does not read ({schedule.reason}): put it again"


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdout.buffer
        return
    try:
        with _to_open(Path(file)) as target:
            yield target
    except OSError as error:
        raise InvalidInput(f"{file}: {(error.strerror or str(error)).lower()}: name a file that can be written, or -") from None


def _to_open(path: Path) -> AbstractContextManager[BinaryIO]:
    """What is no file, such as a pipe or a device, is written to, and never replaced."""
    if path.exists() and not path.is_file():
        return path.open("wb")
    return _whole(Path(os.path.realpath(path)))


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """A file is there only once it is whole: until then beside it, under a name that nobody has. It keeps its mode."""
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
    tickler: Tickler,
    target: BinaryIO,
    owner: str | None,
    left_out: list[StoredSchedule],
    update: Callable[[int, int], None],
) -> int:
    count = 0
    async for piece in export_lines(tickler.schedules, owner, left_out=left_out.append):
        target.write(piece)
        count += piece.count(b"\n")
        update(count, count)
    target.flush()
    return count
