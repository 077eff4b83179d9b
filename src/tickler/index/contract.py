"""The contract of a schedule index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tickler.model.index_row import IndexRow, SetAside


class ScheduleIndex(Protocol):
    """Finds due rows without reading the others.

    It has one row per active schedule. A paused, finished or deleted schedule has no row. The caller passes `now_ms`; an index
    never reads a clock. `using` is a connection of the caller with an open transaction, which the write joins; its type depends
    on the store.
    """

    async def upsert_many(self, rows: Sequence[IndexRow], *, using: object = None) -> None:
        """Insert or replace rows by owner and key, all or none. `ManagedRow` if one belongs to a schedule."""

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        """Remove the row from the index and from the rows that were set aside. An absent row is not an error."""

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[IndexRow]:
        """Claim up to `limit` rows with next_fire_at <= now_ms, earliest first, and advance them from now_ms.

        Atomic: no other caller, at this instant or later, may get the same occurrence. Rows are returned as they were before the
        advance. At most once: a caller that crashes after this returns has lost them.

        A row without further instants leaves the index. An unreadable row is set aside, does not count towards `limit`, and must
        not block others. A row of a newer format stays, and this worker is recorded as outdated. Raises `WorkerUnfit`, and
        claims nothing, when this machine lacks a row's zone that others know.
        """

    async def next_due(self) -> int | None:
        """Return the earliest next_fire_at, or None."""

    async def count(self, *, due_by: int | None = None, most: int | None = None) -> int:
        """Count rows, or those due by an instant, up to `most`. Must not read more rows than it counts."""

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        """Return unreadable rows that were set aside, by owner and key."""

    async def count_set_aside(self) -> int:
        """Count the unreadable rows that were set aside."""

    async def restore(self) -> int:
        """Move set-aside rows that can be read now back into the index, as they were, and return how many."""

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        """Return a page of up to `limit` rows and the cursor of the next page, None at the end; together every row once.

        No order is promised. Each page is a bounded read by key that blocks no one. A row that exists throughout is returned;
        one that comes or goes meanwhile may be. Unreadable rows and those of a newer format are left out, so a page may be short
        or empty before the end. A store whose key is the due time documents what happens to a row that moves. `InvalidInput` for
        a cursor of another store.
        """
