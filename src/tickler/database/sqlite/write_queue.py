"""Serves the calls of one connection on its own thread.

Calls that arrive while the thread is busy are served together: the reads first, then all writes in one transaction, because one
commit waits for the disk as long as many do. Each write has a savepoint, so that a failed one is rolled back alone.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from tickler.database.sqlite.open_files import OpenFiles
from tickler.database.sqlite.space import is_full, make_room
from tickler.errors import StoreUnavailable

T = TypeVar("T")

MAX_BATCH = 64  # callers get their results when the last call of a batch is done


class _Call(NamedTuple):
    function: Callable[[sqlite3.Connection], Any]
    writes: bool
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class _Outcome(NamedTuple):
    call: _Call
    result: Any = None
    error: Exception | None = None


class _Gone(Exception):
    """The caller was cancelled."""


class WriteQueue:
    """`meaning` translates driver errors. `files` is None for a database in memory."""

    def __init__(
        self,
        thread: ThreadPoolExecutor,
        connection: sqlite3.Connection,
        meaning: Callable[[Exception], Exception],
        files: OpenFiles | None,
    ) -> None:
        self._thread = thread
        self._connection = connection
        self._meaning = meaning
        self._files = files
        self._lock = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._serving = False

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        return await self._ask(query, writes=False)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction that takes the write lock at its start. A call cancelled before that changes nothing."""
        return await self._ask(work, writes=True)

    async def close(self) -> None:
        """Close the connection after the calls in progress."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)

    async def _ask(self, function: Callable[[sqlite3.Connection], T], *, writes: bool) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            self._waiting.append(_Call(function, writes, future, loop))
            begins, self._serving = not self._serving, True
        if begins:
            self._thread.submit(self._serve)
        return await future

    def _serve(self) -> None:
        while calls := self._next():
            try:
                _tell(self._read([call for call in calls if not call.writes]))
                _tell(self._written_with_room([call for call in calls if call.writes]))
            except BaseException as error:  # no caller is left waiting, and later calls are served
                _tell([_Outcome(call, error=RuntimeError(f"a call of the store ended with {error!r}")) for call in calls])

    def _next(self) -> list[_Call]:
        with self._lock:
            calls = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
            self._serving = bool(calls)
        return calls

    def _read(self, calls: Sequence[_Call]) -> list[_Outcome]:
        try:
            if calls and self._files is not None:
                self._files.check()
        except StoreUnavailable as error:
            return [_Outcome(call, error=error) for call in calls]
        return [self._outcome(call) for call in calls]

    def _written_with_room(self, calls: Sequence[_Call]) -> list[_Outcome]:
        """Repeat writes that failed on a full disk once, if the write-ahead log could be made smaller."""
        outcomes = self._written(calls)
        failed = [outcome.call for outcome in outcomes if is_full(outcome.error)]
        if not failed or not make_room(self._connection):
            return outcomes
        return [outcome for outcome in outcomes if not is_full(outcome.error)] + self._written(failed)

    def _written(self, calls: Sequence[_Call]) -> list[_Outcome]:
        if not calls:
            return []
        connection = self._connection
        attempt = self._outcome if len(calls) == 1 else self._undone_alone
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [attempt(call) for call in calls]
            if any(outcome.error is None and outcome.call.future.cancelled() for outcome in outcomes):
                connection.execute("ROLLBACK")  # without the cancelled ones
                return self._written(calls)
            if any(outcome.error is None for outcome in outcomes):
                if self._files is not None:
                    self._files.check_before_commit()
                connection.execute("COMMIT")
            elif connection.in_transaction:
                connection.execute("ROLLBACK")
        except Exception as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            return [_Outcome(call, error=self._told(error)) for call in calls]
        return outcomes

    def _undone_alone(self, call: _Call) -> _Outcome:
        connection = self._connection
        connection.execute("SAVEPOINT turn")
        outcome = self._outcome(call)
        if outcome.error is not None:
            if not connection.in_transaction:
                raise outcome.error  # SQLite rolled the whole transaction back, as on a full disk
            connection.execute("ROLLBACK TO turn")
        connection.execute("RELEASE turn")
        return outcome

    def _outcome(self, call: _Call) -> _Outcome:
        try:
            result = None if call.future.cancelled() else call.function(self._connection)
        except BaseException as error:
            return _Outcome(call, error=self._told(error))
        if call.writes and call.future.cancelled():  # its claims stay due
            return _Outcome(call, error=_Gone())
        return _Outcome(call, result)

    def _told(self, error: BaseException) -> Exception:
        """Return the error for a caller, to whom neither StopIteration nor another thread's interrupt may be raised."""
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            told = self._meaning(error)
        else:
            told = RuntimeError(f"a call of the store ended with {error!r}")
        if told is not error:
            told.__cause__ = error
        return told


def _tell(outcomes: Iterable[_Outcome]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome.call.loop, []).append(outcome)
    for loop, told in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and its callers with it
            loop.call_soon_threadsafe(_settle, told)


def _settle(outcomes: Sequence[_Outcome]) -> None:
    for call, result, error in outcomes:
        if call.future.done():
            continue
        if error is not None:
            call.future.set_exception(error)
        else:
            call.future.set_result(result)
