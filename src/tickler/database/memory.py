"""A database in memory: what stores and tables in one process can share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class MemoryDatabase:
    """Named tables of rows. It is used from one event loop, so code without `await` is atomic."""

    def __init__(self) -> None:
        self.name = "memory://"
        self.tables: dict[str, dict[Any, Any]] = {}
        self.metadata: dict[str, dict[str, Any]] = {}  # about tables, by their names
        self.logs: dict[str, Any] = {}  # of the changes of tables

    async def is_same(self, other: object) -> bool:
        return other is self


class MemoryPart(NamedTuple):
    """A part of a unit of work. `check` raises if it must not happen; `apply` does it and does not raise."""

    check: Callable[[], None]
    apply: Callable[[], None]
