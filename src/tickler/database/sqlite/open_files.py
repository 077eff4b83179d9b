"""Detects that the files of an open database were deleted, moved or replaced.

SQLite keeps writing to a deleted file without an error, and those writes are lost when the process ends.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from tickler.errors import StoreUnavailable

CHECK_INTERVAL_S = 1.0

Identity = tuple[int, int]  # device and inode


class _OpenFile(NamedTuple):
    path: str
    identity: Identity


class OpenFiles:
    """The database at `path` with its -wal and -shm, as they were when it was opened. `name` is for messages.

    Checks pass again once a moved file is back.
    """

    def __init__(self, path: str, name: str) -> None:
        self._name = name
        real_path = os.path.realpath(path)  # SQLite keeps -wal and -shm beside the target of a link
        self._files = [
            _OpenFile(file, identity)
            for file in (path, f"{real_path}-wal", f"{real_path}-shm")
            if (identity := _identity(file)) is not None
        ]
        if not self._files or self._files[0].path != path:
            raise StoreUnavailable(f"{name}: {path} was deleted while it was being opened: start again")
        self._database = self._files[0]
        self._checked_at_s = time.monotonic()

    def check(self) -> None:
        """Raise `StoreUnavailable` if a file is not the one that was opened. Looks at most once a second while all is well."""
        now_s = time.monotonic()
        if now_s - self._checked_at_s < CHECK_INTERVAL_S:
            return
        for file in self._files:
            self._check(file)
        self._checked_at_s = now_s

    def check_before_commit(self) -> None:
        """Do the same, and look at the database file itself every time: one system call, where a commit takes many."""
        self._check(self._database)
        self.check()

    def _check(self, file: _OpenFile) -> None:
        try:
            found = _identity(file.path)
        except OSError:
            return  # unknown, as for a process that may no longer enter the folder
        if found != file.identity:
            raise StoreUnavailable(f"{self._name}: {self._what_happened(file, is_gone=found is None)}")

    def _what_happened(self, file: _OpenFile, *, is_gone: bool) -> str:
        how = "was deleted or moved away" if is_gone else "was replaced by another file"
        if file is not self._database:
            return (
                f"{file.path} {how} while this process had it open; nothing changed: stop every process that uses this "
                "store, none with SIGKILL, so that the last one saves its data, and start them again"
            )
        remedy = (
            "move it back, or stop this process, restore a backup and start again"
            if is_gone
            else "put the former file back; or stop this process, remove the -wal and -shm of the former file and start again"
        )
        return f"{file.path} {how} while this process had it open; nothing changed, since writes would be lost: {remedy}"


def _identity(path: str) -> Identity | None:
    """Return None when there is no such file. `OSError` when that cannot be known."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
