"""One SQLite connection on its own thread, and the translation of its errors."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar
from urllib.parse import unquote

from tickler.database.callers_thread import on_callers_thread
from tickler.database.sqlite.open_files import OpenFiles
from tickler.database.sqlite.space import CACHE_MB, DEFAULT_LIMITS, Limits, is_full
from tickler.database.sqlite.write_queue import WriteQueue
from tickler.database.store_url import StoreUrl
from tickler.database.using import not_a_connection
from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable

T = TypeVar("T")

BUSY_TIMEOUT_S = 5.0
MAX_MB = 65_536

# WAL lets readers work beside one writer. FULL, because with NORMAL a power failure may lose a committed claim, which would then
# fire twice. The others, with the limits, halve the cost of a claim among millions of rows.
PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA mmap_size = 4294967296",
    "PRAGMA temp_store = MEMORY",
)


class Connection:
    """Opens `path`, or `:memory:`, on its own thread, which serves calls one after the other."""

    def __init__(self, path: str, name: str, busy_timeout_s: float, limits: Limits = DEFAULT_LIMITS) -> None:
        self.path = path if path == ":memory:" else os.path.abspath(path)
        self._real_path = os.path.realpath(self.path)
        self.name = name  # for messages
        self._limits = limits
        self.wal_bytes = 0  # the limit of the write-ahead log, known once it is open
        self._busy_timeout_s = busy_timeout_s
        self._thread: ThreadPoolExecutor | None = None
        self._turns: WriteQueue | None = None
        self._files: OpenFiles | None = None

    async def open(self, *, may_create: bool = True) -> None:
        if self._thread is not None:
            return
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tickler-sqlite")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(self._thread, self._connect, may_create)
        except BaseException:
            await self.close()
            raise
        self._turns = WriteQueue(self._thread, connection, self.meaning, self._files)

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        turns, self._turns = self._turns, None
        self._files = None
        if thread is None:
            return
        if turns is not None:
            await turns.close()
        thread.shutdown(wait=False)

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` and return its result."""
        return await self._open_turns().read(query)

    async def fetch(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query that is written for PostgreSQL: with `{schema}.` and parameters $1, $2, …"""
        text = statement.replace("{schema}.", "").replace("$", ":p")
        named = {f"p{number}": value for number, value in enumerate(parameters, 1)}
        return await self.read(lambda connection: connection.execute(text, named).fetchall())

    async def write(self, work: Callable[[sqlite3.Connection], T], using: object = None) -> T:
        """Run `work` in a transaction that takes the write lock at its start, or in that of `using`."""
        if using is None:
            return await self._open_turns().write(work)
        connection = self._check_using(using)
        return await on_callers_thread(lambda: self._translated(lambda: self._nested(connection, work)))

    async def is_same(self, other: object) -> bool:
        """Tell whether `other` is a connection to the same file, so that one transaction can write to both."""
        if other is self or not isinstance(other, Connection):
            return other is self
        return self.path != ":memory:" and self._real_path == other._real_path

    async def apart(self, work: Callable[[], T]) -> T:
        """Run `work`, which opens its own connections, on another thread, so that other calls are served meanwhile."""
        if self._files is not None:
            self._files.check_before_commit()  # another file of the same name is not this store
        return await asyncio.to_thread(self._translated, work)

    def check_files(self, *, now: bool = False) -> None:
        """Raise `StoreUnavailable` if it is closed, or its files were replaced; `now`: look, however recently that was done."""
        self._open_turns()
        if self._files is not None:
            self._files.check_before_commit() if now else self._files.check()

    def _open_turns(self) -> WriteQueue:
        if self._turns is None:
            raise StoreUnavailable(f"{self.name} is closed: use it inside `async with`, or call open() first")
        return self._turns

    def _translated(self, function: Callable[[], T]) -> T:
        try:
            return function()
        except sqlite3.DatabaseError as error:
            raise self.meaning(error) from error

    def _connect(self, may_create: bool) -> sqlite3.Connection:
        return self._translated(lambda: self._opened(may_create))

    def _opened(self, may_create: bool) -> sqlite3.Connection:
        folder = Path(self.path).parent
        if self.path != ":memory:" and not folder.is_dir():
            remedy = f"make it with `mkdir -p {quote(str(folder))}`"
            raise StoreUnavailable(f"{self.name}: there is no folder {str(folder)!r}: {remedy}")
        if not may_create and self.path != ":memory:" and not Path(self.path).exists():
            raise SchemaMissing(self.name)  # without leaving an empty file behind
        connection = sqlite3.connect(self.path, timeout=self._busy_timeout_s, isolation_level=None)
        try:
            use_wal(connection)
            for pragma in PRAGMAS:
                connection.execute(pragma)
            self.wal_bytes = self._limits.apply(connection, self.path)
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # creates -wal and -shm
            self._files = None if self.path == ":memory:" else OpenFiles(self.path, self.name)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_using(self, using: object) -> sqlite3.Connection:
        if not isinstance(using, sqlite3.Connection):
            raise not_a_connection(using, "sqlite3's Connection to this same file")
        try:
            joinable = using.in_transaction
        except sqlite3.ProgrammingError as error:
            raise InvalidInput(f"using= cannot be used: {error}") from None
        if not joinable:
            raise InvalidInput("using= has no open transaction to join: execute 'BEGIN' (or your own first write) before")
        return using

    def _nested(self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a savepoint, so that a failed write is rolled back alone."""
        factories = connection.row_factory, connection.text_factory
        connection.row_factory, connection.text_factory = None, str
        try:
            files = {Path(row[2]).resolve() for row in connection.execute("PRAGMA database_list") if row[1] == "main"}
            if files != {Path(self.path).resolve()}:
                raise InvalidInput(f"using= is connected to another database than {self.name}")
            if self._files is not None:
                self._files.check_before_commit()
            connection.execute("SAVEPOINT tickler")
            try:
                connection.execute("DELETE FROM tickler_aside WHERE false")  # takes the write lock, which a read would not
                result = work(connection)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK TO tickler")
                    connection.execute("RELEASE tickler")
                raise
            connection.execute("RELEASE tickler")
            return result
        finally:
            connection.row_factory, connection.text_factory = factories

    def meaning(self, error: Exception) -> Exception:
        """Return the error of ours that a driver error means."""
        if not isinstance(error, sqlite3.DatabaseError):
            return error
        if "no such table: tickler_" in str(error):
            return SchemaMissing(self.name)
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY_SNAPSHOT:
            return StoreUnavailable(
                f"{self.name}: others changed rows that your transaction has read: begin it with BEGIN IMMEDIATE"
            )
        if isinstance(error, sqlite3.ProgrammingError):
            return InvalidInput(f"using= cannot be used: {error}")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreUnavailable(
                f"{self.name} was locked by another connection for {self._busy_timeout_s:g} s; nothing changed: if that "
                "connection is yours, pass it as using=; otherwise try again, or raise ?timeout="
            )
        if is_full(error):
            return StoreUnavailable(
                f"{self.name}: the disk is full; nothing changed: make room on it, or lower ?wal_mb= if the -wal is large"
            )
        if code == sqlite3.SQLITE_NOTADB:
            return StoreUnavailable(f"{self.name} is not an SQLite database: name another file")
        return StoreUnavailable(f"{self.name}: {error}; nothing changed")


def use_wal(connection: sqlite3.Connection) -> None:
    """Turn on WAL. That needs the file exclusively and SQLite does not wait for it, so processes that start together retry."""
    for attempt in range(100):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or attempt == 99:
                raise
            threading.Event().wait(0.02)


def file_name(url: StoreUrl) -> str:
    """Return the file of an SQLite store; empty for a database in memory."""
    return unquote(url.location.removeprefix("/"))


def connection_for(url: StoreUrl) -> Connection:
    """Parse `sqlite:///relative.db`, `sqlite:////absolute.db`, or `sqlite://` for a database in memory.

    `?timeout=` is in seconds, for locks; `cache_mb=` limits the page cache, `wal_mb=` the write-ahead log.
    """
    url.refuse_unknown("timeout", "cache_mb", "wal_mb")
    if url.location and not url.location.startswith("/"):
        raise InvalidInput(f"{url.text}: write three slashes before a relative path, as in sqlite:///{url.location}")
    if url.location == "/":
        raise InvalidInput(f"{url.text}: name a file, as in sqlite:///tickler.db, or write sqlite:// for one in memory")
    path = file_name(url) or ":memory:"
    limits = Limits(cache_mb=url.whole("cache_mb", 1, MAX_MB) or CACHE_MB, wal_mb=url.whole("wal_mb", 1, MAX_MB))
    return Connection(path, url.text, url.seconds("timeout", BUSY_TIMEOUT_S), limits)
