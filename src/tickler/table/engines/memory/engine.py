"""The reference engine: rows in a dictionary. Every operation reads, decides and applies, as the SQL engines do."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tickler.database.memory import MemoryDatabase, MemoryPart
from tickler.database.progress import OnProgress, no_progress
from tickler.database.store_url import StoreUrl
from tickler.table.definition import Row, TableDefinition
from tickler.table.engines.engine import Ask, Position, Reader, Reindexed, Slice
from tickler.table.engines.memory.change_log import MemoryChangeLog, MemoryLog
from tickler.table.engines.memory.metadata import MemoryMetadata
from tickler.table.engines.rows import decode, decode_at, duplicate, is_alive
from tickler.table.key import ItemId
from tickler.table.measurement import Fill, Measurement, largest_of
from tickler.table.operation import Delete, Operation, decide, is_blind, with_next_version
from tickler.table.selection import Span

# Keys of indexes are by name, because programs that share a table may know different ones.
Rows = dict[tuple[str, str], Row]


class MemoryReader:
    def __init__(self, table: TableDefinition, rows: Mapping[tuple[str, str], Row]) -> None:
        self._table = table
        self._rows = rows

    async def get(self, ids: Sequence[ItemId[Any]], *, consistent: bool, now_ms: int) -> list[Any]:
        rows = [(id, self._alive(id, now_ms)) for id in ids]
        return [None if row is None else decode_at(self._table, id, row.entity, row.body) for id, row in rows]

    async def slice(self, ask: Ask, *, now_ms: int) -> Slice:
        found = [each for each in self._in_span(ask.span, now_ms) if each[1].entity in ask.entities]
        if ask.start is not None:
            found = [each for each in found if (each[0] < ask.start if ask.backwards else each[0] > ask.start)]
        found.sort(key=lambda each: each[0], reverse=ask.backwards)
        positions = [position for position, _ in found[: ask.limit]]
        items = [decode(self._table, row.entity, row.body) for _, row in found[: ask.limit]]
        return Slice(items, positions, positions[-1] if len(found) > ask.limit else None)

    async def count(self, span: Span, entities: frozenset[str], *, consistent: bool, now_ms: int) -> int:
        return sum(row.entity in entities for _, row in self._in_span(span, now_ms))

    def _in_span(self, span: Span, now_ms: int) -> list[tuple[Position, Row]]:
        found: list[tuple[Position, Row]] = []
        for row in self._rows.values():
            key = (row.pk, row.sk) if span.gsi is None else row.keys.get(span.gsi)
            if key is not None and key[0] == span.partition and span.contains(key[1]) and is_alive(row.expires_at, now_ms):
                found.append(((key[1], row.pk, row.sk), row))
        return found

    def _alive(self, id: ItemId[Any], now_ms: int) -> Row | None:
        row = self._rows.get((id.pk, id.sk))
        return row if row is not None and is_alive(row.expires_at, now_ms) else None


class MemoryEngine(MemoryReader):
    makes_tables = True

    def __init__(self, table: TableDefinition, database: MemoryDatabase) -> None:
        self.database = database
        self.rows: Rows = database.tables.setdefault(table.name, {})
        self.changes = MemoryChangeLog(table, database.logs.setdefault(table.name, MemoryLog()))
        self._log = database.logs[table.name]
        self.metadata = MemoryMetadata(database.metadata.setdefault(table.name, {}))
        super().__init__(table, self.rows)

    async def open(self, *, create: bool) -> list[str]:
        """Keep changes from now on, if the table has a stream. The rows are there."""
        self._log.is_on = self._log.is_on or self._table.stream
        return []

    async def close(self) -> None:
        """Do nothing: the rows belong to whoever made them."""

    async def write(self, operations: Sequence[Operation], *, now_ms: int, parts: Sequence[MemoryPart] = ()) -> list[Any]:
        for part in parts:
            part.check()
        changes: Rows = {}
        removals: list[tuple[str, str]] = []
        results = []
        for operation in operations:
            id = operation.id
            row = self._alive(id, now_ms)
            found = None if row is None or is_blind(operation) else decode_at(self._table, id, row.entity, row.body)
            stored = decide(operation, found)
            results.append(found if isinstance(operation, Delete) else stored)
            if stored is None:
                removals.append((id.pk, id.sk))
            elif stored is not found:
                changes[id.pk, id.sk] = id.definition.row(stored)
        for key, changed in changes.items():
            self._store(key, changed, now_ms)
        for key in removals:
            self._store(key, None, now_ms)
        for part in parts:
            part.apply()
        return results

    async def write_each(self, operations: Sequence[Operation], *, now_ms: int) -> None:
        for operation in operations:
            if isinstance(operation, Delete):  # whatever is there
                self._store((operation.id.pk, operation.id.sk), None, now_ms)
            else:
                await self.write([operation], now_ms=now_ms)

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress, *, streamed: bool = True) -> int:
        rows: Rows = {}
        for entity in entities:
            definition = self._table.definition_of(entity)
            row = definition.row(with_next_version(definition, entity))
            key = row.pk, row.sk
            if key in rows or key in self.rows:
                raise duplicate(repr(key))
            rows[key] = row
        for key, row in rows.items():
            if streamed:
                self._store(key, row, self._log.last_ms)
            else:
                self.rows[key] = row
        on_progress("loading", len(rows), None)
        return len(rows)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Reader]:
        yield MemoryReader(self._table, dict(self.rows))

    async def has_more_than(self, items: int) -> bool:
        return len(self.rows) > items

    async def measure(self, *, now_ms: int, sample: int | None) -> Measurement:
        alive = [row for row in self.rows.values() if is_alive(row.expires_at, now_ms)]
        table = Counter(row.entity for row in alive)
        sizes = {name: round(sum(len(row.body) for row in alive if row.entity == name) / count) for name, count in table.items()}
        indexes = {gsi: _fill([(row.keys[gsi][0], row.entity) for row in alive if gsi in row.keys]) for gsi in self._table.gsis}
        return Measurement(_fill([(row.pk, row.entity) for row in alive]), indexes, dict(sorted(sizes.items())))

    async def reindex_some(self, after: str | None) -> Reindexed:
        """Reindex all rows at once."""
        changed = 0
        for key, row in list(self.rows.items()):
            definition = self._table.entities.get(row.entity)
            new = row if definition is None else definition.row(definition.decode(row.body))
            changed += new != row
            self.rows[key] = new
        return Reindexed(None, len(self.rows), changed)

    async def sweep(self, *, now_ms: int, limit: int) -> int:
        expired = [key for key, row in self.rows.items() if not is_alive(row.expires_at, now_ms)][:limit]
        for key in expired:
            self._store(key, None, now_ms)
        return len(expired)

    def _store(self, key: tuple[str, str], row: Row | None, now_ms: int) -> None:
        """Put a row in place of the one with the same key, or remove that; and log the change, if it is one."""
        old = self.rows.pop(key, None)
        if row is not None:
            self.rows[key] = row
        images = None if old is None else old.body, None if row is None else row.body
        if self._log.is_on and images[0] != images[1]:
            self._log.append((row or old).entity, key, images, now_ms)  # type: ignore[union-attr]  # one of them is there


def _fill(entries: Sequence[tuple[str, str]]) -> Fill:
    """Return how full something is, from the partition key and entity of each item."""
    entities = Counter(entity for _, entity in entries)
    return Fill(dict(sorted(entities.items())), largest_of(Counter(key for key, _ in entries).items()))


def open_engine(table: TableDefinition, url: StoreUrl) -> MemoryEngine:
    url.refuse_unknown()
    return MemoryEngine(table, MemoryDatabase())


def shared_engine(table: TableDefinition, database: MemoryDatabase, name: str) -> MemoryEngine:
    return MemoryEngine(table, database)


async def streamed_tables(database: MemoryDatabase) -> list[str]:
    """Return the names of tables with a log of changes."""
    return sorted(name for name, log in database.logs.items() if log.is_on)
