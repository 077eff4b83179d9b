"""Records in a dictionary."""

from __future__ import annotations

import msgspec

from tickler.errors import VersionConflict
from tickler.model.record import Record
from tickler.stores.memory.tables import RecordEntry, Tables


class MemoryRecords:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None:
        entry = self._alive(kind, name, now_ms)
        return None if entry is None else _record(kind, name, entry)

    async def put(
        self, kind: str, name: str, value: bytes, *, now_ms: int, expires_at: int | None = None, expected: int | None = None
    ) -> int:
        entry = self._alive(kind, name, now_ms)
        found = 0 if entry is None else entry.version
        if expected is not None and expected != found:
            raise VersionConflict(f"record {kind}/{name}", expected, found)
        self._tables.records[kind, name] = RecordEntry(value, found + 1, expires_at)
        return found + 1

    async def delete(self, kind: str, name: str) -> bool:
        return self._tables.records.pop((kind, name), None) is not None

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        names = sorted(name for of_kind, name in self._tables.records if of_kind == kind and name > after)
        alive = ((name, self._alive(kind, name, now_ms)) for name in names)
        return [_record(kind, name, entry) for name, entry in alive if entry is not None][:limit]

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        expired = [id for id in self._tables.records if self._alive(*id, now_ms) is None][:limit]
        for id in expired:
            del self._tables.records[id]
        return len(expired)

    def _alive(self, kind: str, name: str, now_ms: int) -> RecordEntry | None:
        entry = self._tables.records.get((kind, name))
        if entry is None or (entry.expires_at is not None and entry.expires_at <= now_ms):
            return None
        return entry


def _record(kind: str, name: str, entry: RecordEntry) -> Record:
    return Record(kind, name, msgspec.json.decode(entry.value), entry.version, entry.expires_at)
