"""The contract of a schedule index, which every store implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tickler.model.index_row import IndexRow, SetAside


class ScheduleIndex(Protocol):
    """Finds what is due without looking at what is not.

    One row per active schedule. A paused, finished or deleted schedule has no row: absence, not a flag. `now_ms` is the
    caller's; an index never looks at a clock. `using` is a connection of the caller's own with a transaction open, which
    the write then joins; what it may be is the store's to say.
    """

    async def upsert_many(self, rows: Sequence[IndexRow], *, using: object = None) -> None:
        """Insert or replace rows by owner and key, all or none. `ManagedRow` where a schedule stands behind one."""

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        """Remove the row, from the index and from what was set aside; nothing when it is absent."""

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[IndexRow]:
        """Take up to `limit` rows with next_fire_at <= now_ms, earliest first, and advance them from now_ms.

        Atomic: no other caller, at this instant or later, gets the same occurrence. Rows come back as they were before
        the advance. At most once: whoever loses them after this returns has lost them.

        A row with no instant left leaves the index. A row that does not read is set aside, does not count towards
        `limit`, and blocks nothing. A row of a newer format is left where it is, and this worker reported as outdated.
        `WorkerUnfit`, and nothing claimed, when a row's zone is known to others and not to this machine.
        """

    async def next_due(self) -> int | None:
        """The earliest next_fire_at, or None."""

    async def count(self, *, due_by: int | None = None, most: int | None = None) -> int:
        """How many rows there are, or are due by an instant. Counts no further than `most`, and reads no more than it counts."""

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        """Rows that do not read, by owner and key."""

    async def count_set_aside(self) -> int:
        """How many rows do not read; 0 is what it should be."""

    async def restore(self) -> int:
        """Move rows that were set aside and can be read now back into the index, as they were; how many."""

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        """Every row once, page by page: up to `limit` of them, and the cursor of the following page, None at the end.

        No order is promised. Each page is a bounded read by key, and holds nobody up: rows that come and go meanwhile may or
        may not be met, a row that stays is. Rows that this worker cannot read, and those of a newer format, are left out, so
        that a page may be short or empty before the end. A store whose key is when a row is due says what becomes of one that
        moves. `InvalidInput` for a cursor that this store did not give.
        """
