"""The changes of a table in memory: a list, numbered from 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tickler.table.definition import TableDefinition
from tickler.table.engines.change_log import ALL_SHARDS, ChangeRecord, Shard, ShardRead, shard_of
from tickler.table.engines.rows import decode

Positions = Mapping[str, str | None]


class MemoryLog(msgspec.Struct):
    """Changes from number `deleted + 1` on. Those up to `lost` were deleted before all consumers had read them."""

    is_on: bool = False
    records: list[ChangeRecord] = []
    deleted: int = 0
    lost: int = 0
    last_ms: int = 0

    def append(self, entity: str, key: tuple[str, str], images: tuple[bytes | None, bytes | None], now_ms: int) -> None:
        self.last_ms = now_ms
        number = self.deleted + len(self.records) + 1
        self.records.append(ChangeRecord(shard_of(key[0]), str(number), now_ms, entity, *key, *images))


class MemoryChangeLog:
    poll_s = (0.001, 0.05)

    def __init__(self, table: TableDefinition, log: MemoryLog) -> None:
        self._table = table
        self._log = log

    async def shards(self) -> list[Shard]:
        return list(ALL_SHARDS)

    async def end(self) -> dict[str, str]:
        return {shard.id: self._end() for shard in ALL_SHARDS}

    async def read(self, positions: Positions, *, limit: int) -> list[ShardRead]:
        return [self._shard(shard, position, limit) for shard, position in positions.items()]

    def _shard(self, shard: str, position: str | None, limit: int) -> ShardRead:
        found = self._behind(shard, position)
        reached = found[limit - 1].position if len(found) > limit else self._end()
        return ShardRead(shard, found[:limit], reached, lost=position is not None and int(position) < self._log.lost)

    def decode(self, entity: str, image: bytes) -> Any:
        return decode(self._table, entity, image)

    async def waiting(self, positions: Positions, *, limit: int) -> int:
        return min(limit, sum(len(self._behind(*each)) for each in positions.items()))

    async def prune(self, positions: Sequence[Positions], *, keep_ms: int, limit: int) -> int:
        """Delete as the SQL engines do. The time of the last change is taken for the present."""
        log = self._log
        read = min((int(position or 0) for each in positions for position in each.values()), default=0)
        newest_ms = log.records[-1].at_ms if log.records else 0
        old = next((n for n, each in enumerate(log.records) if each.at_ms >= newest_ms - keep_ms), len(log.records))
        number = min(limit, max(read - log.deleted, old))
        if number <= 0:
            return 0
        del log.records[:number]
        log.deleted += number
        log.lost = log.deleted if log.deleted > read else log.lost
        return number

    def _end(self) -> str:
        return str(self._log.deleted + len(self._log.records))

    def _behind(self, shard: str, position: str | None) -> list[ChangeRecord]:
        start = max(0, int(position or 0) - self._log.deleted)
        return [each for each in self._log.records[start:] if each.shard == shard]
