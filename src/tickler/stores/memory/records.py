"""Records in a dictionary."""

from __future__ import annotations

import msgspec

from tickler.database.memory import MemoryPart
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict, VersionConflict
from tickler.model.record import Record
from tickler.records.contract import label_of
from tickler.stores.memory.schedules import refuse_using
from tickler.stores.memory.tables import RecordEntry, Tables


class MemoryRecords:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None:
        entry = self._alive(kind, name, now_ms)
        return None if entry is None else _record(kind, name, entry)

    async def put(
        self,
        kind: str,
        name: str,
        value: bytes,
        *,
        now_ms: int,
        expires_at: int | None = None,
        expected: int | None = None,
        using: object = None,
    ) -> int:
        entry = self._alive(kind, name, now_ms)
        found = 0 if entry is None else entry.version
        if expected is not None and expected != found:
            raise VersionConflict(f"record {kind}/{name}", expected, found)
        await self._write(kind, name, RecordEntry(value, found + 1, expires_at), using)
        return found + 1

    async def delete(self, kind: str, name: str, *, using: object = None) -> bool:
        found = (kind, name) in self._tables.records
        await self._write(kind, name, None, using)
        return found

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        names = sorted(name for of_kind, name in self._tables.records if of_kind == kind and name > after)
        alive = ((name, self._alive(kind, name, now_ms)) for name in names)
        return [_record(kind, name, entry) for name, entry in alive if entry is not None][:limit]

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        expired = [id for id in self._tables.records if self._alive(*id, now_ms) is None][:limit]
        for id in expired:
            del self._tables.records[id]
        return len(expired)

    async def _write(self, kind: str, name: str, entry: RecordEntry | None, using: object) -> None:
        """Write an entry, or with None delete it, at once or as a part of a unit of work."""
        if not isinstance(using, UnitOfWork):
            refuse_using(using)
            self._apply(kind, name, entry)
            return
        seen = self._tables.records.get((kind, name))

        def check() -> None:
            if self._tables.records.get((kind, name)) is not seen:
                raise TransactionConflict(label_of(kind, name))

        await using.join(self._tables.database, [label_of(kind, name)])
        using.add(MemoryPart(check, lambda: self._apply(kind, name, entry)))

    def _apply(self, kind: str, name: str, entry: RecordEntry | None) -> None:
        if entry is None:
            self._tables.records.pop((kind, name), None)
        else:
            self._tables.records[kind, name] = entry

    def _alive(self, kind: str, name: str, now_ms: int) -> RecordEntry | None:
        entry = self._tables.records.get((kind, name))
        if entry is None or (entry.expires_at is not None and entry.expires_at <= now_ms):
            return None
        return entry


def _record(kind: str, name: str, entry: RecordEntry) -> Record:
    return Record(kind, name, msgspec.json.decode(entry.value), entry.version, entry.expires_at)
