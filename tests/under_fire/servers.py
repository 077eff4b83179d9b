"""Stores that go away: a PostgreSQL that crashes and comes back, and a process that keeps an SQLite file to itself."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from types import TracebackType
from typing import Self

from postgres_server import PostgresServer
from under_fire.processes import TIMEOUT_S, end, ended, start


class CrashingPostgres(PostgresServer):
    """A PostgreSQL that only one test uses."""

    async def crash(self) -> None:
        """All connections end at once, and what was not committed is gone."""
        process = self._server.get_postmaster_info().process
        assert process is not None
        self.signal_postmaster(signal.SIGQUIT)
        await asyncio.to_thread(process.wait, TIMEOUT_S)

    async def come_back(self) -> None:
        await asyncio.to_thread(self._server.ensure_postgres_running)


class Locker:
    """Another process that has an SQLite file open, alone, until the end of the `async with`."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def __aenter__(self) -> Self:
        self._process = await start("-m", "under_fire.servers", self._path, stdin=True)
        try:
            assert self._process.stdout is not None
            assert await asyncio.wait_for(self._process.stdout.readline(), TIMEOUT_S) == b"locked\n"
        except BaseException:
            await end(self._process)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            assert await ended(self._process) == 0
        finally:
            await end(self._process)


def _lock(path: str) -> None:
    connection = sqlite3.connect(path, timeout=TIMEOUT_S, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    print("locked", flush=True)  # noqa: T201  # to whoever started it
    sys.stdin.read()
    connection.close()


if __name__ == "__main__":
    _lock(sys.argv[1])
