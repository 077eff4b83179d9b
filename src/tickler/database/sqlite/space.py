"""Memory and disk limits of an SQLite store, and making room when the disk is full."""

from __future__ import annotations

import os
import shutil
import sqlite3

import msgspec

from tickler.database.storage import StorageProblem

MB = 1024 * 1024
CACHE_MB = 256
WAL_MB = 80
SHARE_OF_FREE_SPACE = 8  # unless the URL says otherwise, the log takes at most this part of the free space
MIN_WAL_BYTES = MB // 4
CHECKPOINT_TIMEOUT_MS = 250  # how long to wait for readers when the disk is full: all calls wait meanwhile
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a connection's page cache, in memory, and of the write-ahead log, on disk.

    The log may exceed its limit by one transaction, and for as long as an older snapshot is being read.
    """

    cache_mb: int = CACHE_MB
    wal_mb: int | None = None  # None: 80, or less on a nearly full disk

    def apply(self, connection: sqlite3.Connection, path: str) -> int:
        """Apply the limits and return how many bytes the log may take."""
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        wal_bytes = _default_wal_bytes(path) if self.wal_mb is None else self.wal_mb * MB
        connection.execute(f"PRAGMA cache_size = {-self.cache_mb * 1024}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {wal_bytes // page_bytes}")
        connection.execute(f"PRAGMA journal_size_limit = {wal_bytes}")  # it shrinks to this when it starts over
        return wal_bytes


DEFAULT_LIMITS = Limits()


def is_full(error: BaseException | None) -> bool:
    """Tell whether an SQLite error, or an error that it caused, means that the disk is full."""
    while error is not None and not isinstance(error, sqlite3.Error):
        error = error.__cause__
    return error is not None and getattr(error, "sqlite_errorcode", 0) in FULL


def make_room(connection: sqlite3.Connection) -> bool:
    """Move the log into the database and truncate it. Return False when a reader or the disk prevents that."""
    (timeout_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    try:
        connection.execute(f"PRAGMA busy_timeout = {min(timeout_ms, CHECKPOINT_TIMEOUT_MS)}")
        is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
    return not is_busy


def wal_problem(connection: sqlite3.Connection, path: str, wal_bytes: int) -> StorageProblem | None:
    """Report a log of more than twice its limit that cannot start over, because an older snapshot is being read."""
    size = _size(f"{os.path.realpath(path)}-wal")
    if size <= 2 * wal_bytes:
        return None
    _, frames, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if moved >= frames:
        return None  # the next write starts it over
    return StorageProblem(
        says=f"the write-ahead log has {size / MB:,.0f} MB, should have {wal_bytes / MB:,.0f}, and grows: "
        "a connection has been reading for long, and the log must keep what it may still read",
        example=f"{path}-wal",
        remedy=f"end that reader, such as an open transaction or a backup: `fuser -v {path}` names the processes; "
        "the log shrinks with the next writes",
    )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _default_wal_bytes(path: str) -> int:
    try:
        free_bytes = shutil.disk_usage(os.path.dirname(path)).free
    except OSError:
        return WAL_MB * MB
    return max(min(WAL_MB * MB, free_bytes // SHARE_OF_FREE_SPACE), MIN_WAL_BYTES)
