"""`tickler export`: every schedule, a line of JSON each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from tickler.bulk import export_lines
from tickler.cli.options import OwnerOption, StoreOption
from tickler.cli.output import remark
from tickler.cli.progress import progress
from tickler.cli.session import on_store
from tickler.errors import InvalidInput
from tickler.observe.phrases import some
from tickler.schedule import StoredSchedule
from tickler.tickler import Tickler

FileArgument = Annotated[str, typer.Argument(metavar="[FILE]", help="Where to; - is stdout.")]


def command(file: FileArgument = "-", owner: OwnerOption = None, store: StoreOption = None) -> None:
    """Write every schedule as a line of JSON, which `tickler import` reads. Exit code 1 if one could not be written whole."""
    left_out: list[StoredSchedule] = []
    with _opened(file) as target, progress("exporting") as update:
        count = on_store(store, lambda tickler: _export(tickler, target, owner, left_out, update))
    for schedule in left_out:
        why = "a newer Tickler wrote it: upgrade" if schedule.newer else f"it does not read ({schedule.reason}): put it again"
        remark(f"tickler: {schedule.id} was left out: {why}")
    remark(some(count, "schedule was exported", "schedules were exported"))
    if left_out:
        raise typer.Exit(1)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """A file is there only once it is whole."""
    if file == "-":
        yield sys.stdout.buffer
        return
    part = Path(f"{file}.part")
    try:
        with part.open("wb") as target:
            yield target
        part.replace(file)
    except OSError as error:
        raise InvalidInput(f"{file}: {(error.strerror or str(error)).lower()}: name a file that can be written, or -") from None
    finally:
        part.unlink(missing_ok=True)


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
