"""`tickler import`: put schedules from lines of JSON."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
import typer

from tickler.cli.options import ByOption, JsonOption, StoreOption, actor, flag
from tickler.cli.output import print_json, print_line, print_note
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.database.progress import OnProgress, progress_bar
from tickler.errors import InvalidInput
from tickler.observe.human_format import some
from tickler.transfer.ndjson import LineResult, import_lines

CHUNK = 1 << 18
MAX_REPORTED = 1_000  # refused lines that are listed; all are counted

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="File to read, as written by `tickler export`; - for stdin.")]
AllOrNoneOption = Annotated[
    bool, flag("--all-or-none", help="Put nothing if any line is refused. Reads the whole file into memory.")
]


class Source(Protocol):
    """An unbuffered byte stream: the lock of a buffer would be held while a read waits."""

    def read(self, size: int, /) -> bytes | None: ...


class ImportResult(msgspec.Struct):
    """The numbers of put and refused lines, and the first errors."""

    put: int = 0
    refused: int = 0
    errors: list[LineResult] = []


def command(
    file: FileArgument,
    all_or_none: AllOrNoneOption = False,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a schedule for each line of JSON. Report refused lines with their reasons; exit code 1 if there are any."""
    with _opened(file) as source, progress_bar("importing") as on_progress:
        reader = _Reader(source, _size(file))
        imported = with_store(store, lambda tickler: _import(tickler, reader, all_or_none, actor(by), on_progress), create=True)
    if as_json:
        print_json(imported)
    else:
        _show(imported)
    if imported.refused:
        raise typer.Exit(1)


async def _import(tickler: Tickler, reader: _Reader, all_or_none: bool, by: str, on_progress: OnProgress) -> ImportResult:
    imported = ImportResult()
    async for result in import_lines(tickler.schedules, reader.pieces(), all_or_none=all_or_none):
        if result.error is None:
            imported.put += 1
        else:
            imported.refused += 1
            if len(imported.errors) < MAX_REPORTED:
                imported.errors.append(result)
        on_progress(f"importing, {imported.put:,} schedules", reader.done, reader.size)
    await tickler.audit.record(by, "imported", detail=f"{imported.put} put, {imported.refused} refused")
    return imported


class _Reader:
    """Reads a source in pieces and counts its bytes. The size of a pipe is None."""

    def __init__(self, source: Source, size: int | None) -> None:
        self._source = source
        self.size = size
        self.done = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        while piece := await _read_in_thread(lambda: self._source.read(CHUNK)):
            self.done += len(piece)
            yield piece


async def _read_in_thread(read: Callable[[], bytes | None]) -> bytes | None:
    """Read in a daemon thread, so that Ctrl-C ends the process while a read waits for a terminal or a pipe."""
    future: Future[bytes | None] = Future()
    future.set_running_or_notify_cancel()  # from now on it cannot be cancelled, only left waiting

    def run() -> None:
        try:
            future.set_result(read())
        except OSError as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="import reader").start()
    return await asyncio.wrap_future(future)


def _show(imported: ImportResult) -> None:
    for result in imported.errors:
        print_note(f"line {result.line}: {result.error}")
    if imported.refused > len(imported.errors):
        print_note(f"and {imported.refused - len(imported.errors):,} more")
    refused = some(imported.refused, "line refused", "lines refused")
    print_line(f"{some(imported.put, 'schedule', 'schedules')} put, {refused}")


def _opened(file: str) -> AbstractContextManager[Source]:
    if file == "-":
        return nullcontext(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
    try:
        return Path(file).open("rb", buffering=0)
    except OSError as error:
        raise InvalidInput(f"{file}: {(error.strerror or str(error)).lower()}: name a readable file, or -") from None


def _size(file: str) -> int | None:
    """Return the size of a file; None for a pipe."""
    return None if file == "-" else Path(file).stat().st_size or None
