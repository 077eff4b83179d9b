"""Backs up a database to a file and restores it, with SQLite's online backup, while others use it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from tickler.database.migrations import pending
from tickler.database.progress import OnProgress
from tickler.database.sqlite.connection import Connection, use_wal
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.stores.optional import no_file
from tickler.stores.sqlite import schema

PAGES_A_STEP = 1_000  # 4 MB; progress and cancellation happen between steps
COUNTED = ("schedules", "index", "fires", "history", "records")


async def back_up(connection: Connection, file: Path, on_progress: OnProgress) -> dict[str, int]:
    path = _on_disk(connection)
    with _abandonable(on_progress) as on_step:
        return await connection.apart(lambda: _back_up(path, file, on_step))


async def restore(connection: Connection, file: Path, on_progress: OnProgress) -> dict[str, int]:
    """Restore in one transaction: concurrent readers see the old contents, later ones those of the file."""
    path = _on_disk(connection)
    with _abandonable(on_progress) as on_step:
        return await connection.apart(lambda: _restore(file, path, on_step))


def _on_disk(connection: Connection) -> Path:
    if connection.path == ":memory:":
        raise no_file(connection.name, "it ends with its process; use sqlite:///tickler.db")
    return Path(connection.path)


@contextmanager
def _abandonable(on_progress: OnProgress) -> Iterator[OnProgress]:
    """Yield a callback that reports progress, and raises once the caller was cancelled."""
    abandoned = threading.Event()

    def on_step(activity: str, done: int, total: int | None) -> None:
        if abandoned.is_set():
            raise asyncio.CancelledError
        on_progress(activity, done, total)

    try:
        yield on_step
    finally:
        abandoned.set()


def _back_up(path: Path, file: Path, on_progress: OnProgress) -> dict[str, int]:
    """Write a partial file beside the target, and rename it when it is complete."""
    file = file.absolute()
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file to back up: name the store that workers use")
    if file.exists() and file.samefile(path):
        raise InvalidInput(f"{file} is the store itself: name another file")
    if not file.parent.is_dir():
        raise InvalidInput(f"{file}: there is no folder {str(file.parent)!r}: make it first")
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(_opened(path)) as source, closing(sqlite3.connect(partial, isolation_level=None)) as target:
            source.execute("BEGIN")  # all steps read the same snapshot
            counts = _counts(source)
            _copy(source, target, on_progress)
            target.execute("PRAGMA journal_mode = DELETE")  # a single file without a -wal
            _check(target, file, counts)
        shutil.copymode(path, partial)
        _sync(partial)
        os.replace(partial, file)
        _sync(file.parent)
    except OSError as error:
        raise StoreUnavailable(f"{file}: {error.strerror or error}; no file was written") from error
    finally:
        for leftover in (partial, *(partial.with_name(f"{partial.name}-{kind}") for kind in ("journal", "wal", "shm"))):
            leftover.unlink(missing_ok=True)
    return counts


def _restore(file: Path, path: Path, on_progress: OnProgress) -> dict[str, int]:
    if not file.is_file():
        raise InvalidInput(f"{file}: there is no such file: name one that `tickler backup` wrote")
    if path.exists() and file.samefile(path):
        raise InvalidInput(f"{file} is the store itself: name another file")
    with closing(_opened(file)) as source:
        counts = _counted(source, file)
        with closing(sqlite3.connect(path, isolation_level=None)) as target:
            _copy(source, target, on_progress)
            use_wal(target)
            _check(target, path, counts)
    return counts


def _counted(source: sqlite3.Connection, file: Path) -> dict[str, int]:
    """Check a backup and count its rows. Errors name the file and not the store."""
    try:
        found = schema.version(source)
        if found is None:
            raise InvalidInput(f"{file} holds no Tickler tables: name a file that `tickler backup` wrote")
        pending(str(file), found, schema.MIGRATIONS)  # refuses a newer version
        counts = _counts(source)
        _check(source, file, counts)
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{file} cannot be restored ({error}): name a file that `tickler backup` wrote") from error
    return counts


def _opened(path: Path) -> sqlite3.Connection:
    """Open a file that exists."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, on_progress: OnProgress) -> None:
    def on_step(status: int, left: int, total: int) -> None:
        on_progress("copying pages", total - left, total)

    source.backup(target, pages=PAGES_A_STEP, progress=on_step)


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    return {table: connection.execute(f"SELECT count(*) FROM tickler_{table}").fetchone()[0] for table in COUNTED}


def _check(connection: sqlite3.Connection, file: Path, counts: dict[str, int]) -> None:
    """Check that the file is intact and complete."""
    said = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if said != "ok":
        raise StoreUnavailable(f"{file} is damaged: {said}: use an earlier backup, and check the disk")
    if (found := _counts(connection)) != counts:
        raise StoreUnavailable(f"{file} has {found}, and should have {counts}: try again")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
