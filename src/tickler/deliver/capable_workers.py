"""Finds out whether another worker can deliver to the targets that this worker cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from tickler.records.contract import RecordStore
from tickler.records.worker_status import workers

LOOKUP_EVERY_S = 5.0


class CapableWorkers:
    """Caches the answer, and looks again when a new target is missing or the answer is old."""

    def __init__(self, records: RecordStore, worker: str) -> None:
        self._records = records
        self._worker = worker
        self._looked_at = float("-inf")
        self._asked_for: frozenset[str] = frozenset()
        self._exist = False

    async def exist_for(self, labels: Collection[str], now_ms: int) -> bool:
        """Return whether a live worker can deliver to one of the targets with these labels."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._looked_at >= LOOKUP_EVERY_S or not self._asked_for.issuperset(labels):
            self._looked_at, self._asked_for = now_s, frozenset(labels)
            others = [each for each in await workers(self._records, now_ms) if each.name != self._worker]
            able = [other for other in others if other.is_alive(now_ms)]
            self._exist = any(other.has(label) for other in able for label in labels)
        return self._exist
