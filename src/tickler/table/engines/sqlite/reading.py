"""How the parts of the SQLite engine read: on the thread of the event loop, or on the connection's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Read(Protocol):
    """`Connection.read`, or that of a `DirectReader`."""

    def __call__(self, query: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...
