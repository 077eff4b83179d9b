"""`tickler import`: put many schedules, a line of JSON each."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
import typer

from tickler.cli.options import FLAG, ByOption, JsonOption, StoreOption, named
from tickler.cli.output import answer, remark, say
from tickler.cli.progress import progress
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.errors import InvalidInput
from tickler.observe.human_format import some
from tickler.transfer.ndjson import LineResult, import_lines

CHUNK = 1 << 18
MAX_REPORTED = 1_000  # refused lines that JSON names; all are counted

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="What `tickler export` wrote; - is stdin.")]
AllOrNoneOption = Annotated[
    bool, typer.Option("--all-or-none", metavar=FLAG, help="Put nothing if a line is refused. Holds all of it in memory.")
]


class Source(Protocol):
    """Bytes, as they come: without a buffer, whose lock would be held by who waits for them."""

    def read(self, size: int, /) -> bytes | None: ...


class Imported(msgspec.Struct):
    """What came of it."""

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
    """Put a schedule for each line of JSON. A line that is refused is named with its reason; exit code 1 if there was one."""
    with _opened(file) as source, progress("importing", _size(file)) as update:
        imported = on_store(store, lambda tickler: _import(tickler, source, all_or_none, named(by), update), create=True)
    if as_json:
        answer(imported)
    else:
        _show(imported)
    if imported.refused:
        raise typer.Exit(1)


async def _import(tickler: Tickler, source: Source, all_or_none: bool, by: str, update: Callable[[int, int], None]) -> Imported:
    imported = Imported()
    read = _Read(source)
    async for result in import_lines(tickler.schedules, read.pieces(), all_or_none=all_or_none):
        if result.error is None:
            imported.put += 1
        else:
            imported.refused += 1
            if len(imported.errors) < MAX_REPORTED:
                imported.errors.append(result)
        update(read.size, imported.put)
    await tickler.audit.record(by, "imported", detail=f"{imported.put} put, {imported.refused} refused")
    return imported


class _Read:
    """A file, in pieces, and how much of it was read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        while piece := await _waited_for(lambda: self._source.read(CHUNK)):
            self.size += len(piece)
            yield piece


async def _waited_for(read: Callable[[], bytes | None]) -> bytes | None:
    """On a thread that nobody waits for at the end: whoever types nothing more can still press Ctrl-C."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[bytes | None] = loop.create_future()

    def settle(piece: bytes | None, error: OSError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(piece)
        else:
            future.set_exception(error)

    def run() -> None:
        piece, failed = None, None
        try:
            piece = read()
        except OSError as error:
            failed = error
        with suppress(RuntimeError):  # the loop is closed: it was given up
            loop.call_soon_threadsafe(settle, piece, failed)

    threading.Thread(target=run, daemon=True, name="reading what is imported").start()
    return await future


def _show(imported: Imported) -> None:
    for result in imported.errors:
        remark(f"line {result.line}: {result.error}")
    if imported.refused > len(imported.errors):
        remark(f"and {imported.refused - len(imported.errors):,} more")
    lines = some(imported.refused, "line was refused", "lines were refused")
    say(f"{some(imported.put, 'schedule was put', 'schedules were put')}, {lines}")


def _opened(file: str) -> AbstractContextManager[Source]:
    if file == "-":
        return nullcontext(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
    try:
        return Path(file).open("rb", buffering=0)
    except OSError as error:
        raise InvalidInput(f"{file}: {(error.strerror or str(error)).lower()}: name a file that can be read, or -") from None


def _size(file: str) -> int | None:
    """Of a file; nobody knows how much comes from a pipe."""
    return None if file == "-" else Path(file).stat().st_size or None
