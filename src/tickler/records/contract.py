"""The contract of what keeps records, which every store implements."""

from __future__ import annotations

from typing import Protocol

from tickler.model.record import Record


class RecordStore(Protocol):
    """Keeps JSON values by kind and name. An expired record is absent in every answer, pruned or not."""

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None: ...

    async def put(
        self, kind: str, name: str, value: bytes, *, now_ms: int, expires_at: int | None = None, expected: int | None = None
    ) -> int:
        """Write encoded JSON; the new version.

        With `expected`, only if that is the version there, 0 meaning that there must be none; `VersionConflict` otherwise.
        """

    async def delete(self, kind: str, name: str) -> bool:
        """Whether there was one."""

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        """Records of a kind whose name is greater than `after`, by name."""

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Remove up to `limit` records that expired by then; how many."""
