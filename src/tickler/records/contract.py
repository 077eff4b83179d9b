"""The contract of a store of records."""

from __future__ import annotations

from typing import Protocol

from tickler.model.record import Record


class RecordStore(Protocol):
    """Keeps JSON values by kind and name. An expired record must be absent from every answer, pruned or not."""

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None: ...

    async def put(
        self, kind: str, name: str, value: bytes, *, now_ms: int, expires_at: int | None = None, expected: int | None = None
    ) -> int:
        """Write encoded JSON and return the new version.

        With `expected`, `VersionConflict` if another version is stored; 0 means that there must be none.
        """

    async def delete(self, kind: str, name: str) -> bool:
        """Delete a record and return whether there was one."""

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        """Return records of a kind with names greater than `after`, by name."""

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Remove up to `limit` records that expired by then, and return how many."""
