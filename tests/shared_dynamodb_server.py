"""One DynamoDB engine for all processes of a test run: Java takes seconds to start, and longer to get fast."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from dynamodb_server import DynamodbServer, Engine


class _Running(msgspec.Struct, frozen=True):
    """What the process that started an engine tells the others."""

    port: int
    name: str
    reason: str
    is_judge: bool


class SharedDynamodbServer(DynamodbServer):
    """The engine of all who give the same folder: the first starts it, and stops it when no other uses it any more.

    Who uses it holds a lock of a file. The system releases such locks, however a process ends.
    """

    def __init__(self, folder: Path) -> None:
        self._running = folder / "dynamodb.json"
        self._starting = folder / "dynamodb.lock"

    def __enter__(self) -> Self:
        with _locked(self._starting, fcntl.LOCK_EX):
            self._is_mine = not self._running.exists()
            if self._is_mine:
                super().__enter__()
                running = _Running(self._port, self.engine, self.reason, self.is_judge)
                self._running.write_bytes(msgspec.json.encode(running))
            else:
                running = msgspec.json.decode(self._running.read_bytes(), type=_Running)
                self._port = running.port
                self._engine = Engine(running.name, running.reason, is_judge=running.is_judge, command=[])
            self._used = self._running.with_name(f"dynamodb.{self._port}")
            self._use = _locked(self._used, fcntl.LOCK_SH)
            self._use.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._use.__exit__(None, None, None)
        if self._is_mine:
            with _locked(self._starting, fcntl.LOCK_EX):
                self._running.unlink()  # who comes now starts another
            with _locked(self._used, fcntl.LOCK_EX):
                super().__exit__(kind, error, trace)


@contextmanager
def _locked(path: Path, how: int) -> Iterator[IO[str]]:
    with path.open("a") as file:
        fcntl.flock(file, how)
        yield file
