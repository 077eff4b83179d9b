"""An engine of tables that is as unreliable as a distributed one may be, for tests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

from tickler.database.progress import OnProgress, no_progress
from tickler.database.unit_of_work import Database
from tickler.errors import InvalidInput, StoreUnavailable, TransactionConflict
from tickler.table.engines.change_log import ChangeLog
from tickler.table.engines.engine import Ask, Engine, Position, Reader, Reindexed, Slice
from tickler.table.engines.metadata import Metadata
from tickler.table.engines.rows import is_alive
from tickler.table.key import ItemId
from tickler.table.measurement import Measurement
from tickler.table.operation import Check, Delete, Operation, Put
from tickler.table.selection import Span

READ_AT_A_TIME = 256


class ChaosEngine:
    """Wraps an engine, and misbehaves in the ways that the contract of engines allows. One seed always does the same.

    `stale_writes`: a read that is not consistent does not see up to that many of the last writes of an item. How many is drawn
    at each write, for the table and for each index by itself; until the next write, or `catch_up`, reads agree with each other.
    Indexes refuse consistent reads, as those of DynamoDB do. Loads are seen at once.

    `throttled`: the probability that a read or a write raises `StoreUnavailable` before it does anything.

    `conflicts`: the probability that a write of several operations raises `TransactionConflict` and writes nothing.

    `late_expiry`: sweeps delete nothing, so expired items stay. A read that shows one is an `AssertionError`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        seed: int,
        stale_writes: int = 0,
        throttled: float = 0,
        conflicts: float = 0,
        late_expiry: bool = False,
    ) -> None:
        self._engine = engine
        self._throttled = throttled
        self._conflicts = conflicts
        self._late_expiry = late_expiry
        self._failures = Random(f"failures {seed}")
        self._replicas = Replicas(Random(f"replicas {seed}"), stale_writes) if stale_writes else None
        self._one_writer = asyncio.Lock()

    @property
    def database(self) -> Database:
        return self._engine.database

    @property
    def metadata(self) -> Metadata:
        return self._engine.metadata

    @property
    def changes(self) -> ChangeLog:
        return self._engine.changes

    @property
    def makes_tables(self) -> bool:
        return self._engine.makes_tables

    def catch_up(self) -> None:
        """Let every read see all writes so far."""
        if self._replicas is not None:
            self._replicas.catch_up()

    async def open(self, *, create: bool) -> list[str]:
        return await self._engine.open(create=create)

    async def close(self) -> None:
        await self._engine.close()

    async def get(self, ids: Sequence[ItemId[Any]], *, consistent: bool, now_ms: int) -> list[Any]:
        self._maybe_throttle()
        found = await self._engine.get(ids, consistent=True, now_ms=now_ms)
        if self._replicas is not None and not consistent:
            stale = self._replicas.stale(None)
            found = [stale.get((id.pk, id.sk), item) for id, item in zip(ids, found, strict=True)]
            found = [None if item is None or not _is_alive(item, now_ms) else item for item in found]
        self._check_alive(found, now_ms)
        return found

    async def slice(self, ask: Ask, *, now_ms: int) -> Slice:
        self._maybe_throttle()
        if self._replicas is None:
            found = await self._engine.slice(ask, now_ms=now_ms)
            self._check_alive(found.items, now_ms)
            return found
        _check_consistency(ask.span, ask.consistent)
        placed = await self._view(ask.span, ask.entities, now_ms, consistent=ask.consistent)
        if ask.backwards:
            placed.reverse()
        if ask.start is not None:
            start = ask.start
            placed = [each for each in placed if (each[0] < start if ask.backwards else each[0] > start)]
        positions = [position for position, _ in placed[: ask.limit]]
        items = [item for _, item in placed[: ask.limit]]
        return Slice(items, positions, positions[-1] if len(placed) > ask.limit else None)

    async def count(self, span: Span, entities: frozenset[str], *, consistent: bool, now_ms: int) -> int:
        self._maybe_throttle()
        if self._replicas is None:
            return await self._engine.count(span, entities, consistent=consistent, now_ms=now_ms)
        _check_consistency(span, consistent)
        return len(await self._view(span, entities, now_ms, consistent=consistent))

    async def write(self, operations: Sequence[Operation], *, now_ms: int, parts: Sequence[Any] = ()) -> list[Any]:
        self._maybe_throttle()
        if len(operations) + len(parts) > 1 and self._failures.random() < self._conflicts:
            raise TransactionConflict(repr(operations[0].id) if operations else "a part of a transaction")
        if self._replicas is None:
            return await self._engine.write(operations, now_ms=now_ms, parts=parts)
        async with self._one_writer:
            before = await self._states(operations, now_ms)
            results = await self._engine.write(operations, now_ms=now_ms, parts=parts)
            after = [None if isinstance(each, Delete) else left for each, left in zip(operations, results, strict=True)]
            self._replicas.written(operations, before, after)
        return results

    async def write_each(self, operations: Sequence[Operation], *, now_ms: int) -> None:
        self._maybe_throttle()
        if self._replicas is None:
            await self._engine.write_each(operations, now_ms=now_ms)
            return
        last = list({(each.id.pk, each.id.sk): each for each in operations}.values())
        async with self._one_writer:
            before = await self._states(last, now_ms)
            await self._engine.write_each(operations, now_ms=now_ms)
            self._replicas.written(last, before, [each.entity if isinstance(each, Put) else None for each in last])

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress, *, streamed: bool = True) -> int:
        self._maybe_throttle()
        return await self._engine.load(entities, on_progress, streamed=streamed)

    def snapshot(self) -> AbstractAsyncContextManager[Reader]:
        self._maybe_throttle()
        return self._engine.snapshot()

    async def has_more_than(self, items: int) -> bool:
        return await self._engine.has_more_than(items)

    async def measure(self, *, now_ms: int, sample: int | None) -> Measurement:
        self._maybe_throttle()
        return await self._engine.measure(now_ms=now_ms, sample=sample)

    async def reindex_some(self, after: str | None) -> Reindexed:
        return await self._engine.reindex_some(after)

    async def sweep(self, *, now_ms: int, limit: int) -> int:
        self._maybe_throttle()
        return 0 if self._late_expiry else await self._engine.sweep(now_ms=now_ms, limit=limit)

    def _maybe_throttle(self) -> None:
        if self._failures.random() < self._throttled:
            raise StoreUnavailable(f"{self.database.name}: throttled by ChaosEngine; nothing changed: try again")

    def _check_alive(self, items: Iterable[Any], now_ms: int) -> None:
        if self._late_expiry:
            for item in items:
                if item is not None and not _is_alive(item, now_ms):
                    raise AssertionError(f"{item.key!r} has expired, and {self.database.name} shows it: hide it from reads")

    async def _states(self, operations: Sequence[Operation], now_ms: int) -> list[Any]:
        return await self._engine.get([each.id for each in operations], consistent=True, now_ms=now_ms) if operations else []

    async def _view(self, span: Span, entities: frozenset[str], now_ms: int, *, consistent: bool) -> list[tuple[Position, Any]]:
        """Return all items of a span with their positions, in order: stale states in place of the stored ones."""
        assert self._replicas is not None
        stored = await self._all_of(span, entities, now_ms, consistent=consistent)
        self._check_alive(stored, now_ms)
        stale = {} if consistent else self._replicas.stale(span.gsi)
        current = [item for item in stored if (item.key.pk, item.key.sk) not in stale]
        placed = []
        for item in [*current, *(state for state in stale.values() if state is not None)]:
            id = item.key
            key = (id.pk, id.sk) if span.gsi is None else id.definition.slot_key(span.gsi, id.definition.lookup(item))
            if key is None or key[0] != span.partition or not span.contains(key[1]):
                continue
            if id.definition.name in entities and _is_alive(item, now_ms):
                placed.append(((key[1], id.pk, id.sk), item))
        return sorted(placed, key=lambda each: each[0])

    async def _all_of(self, span: Span, entities: frozenset[str], now_ms: int, *, consistent: bool) -> list[Any]:
        items: list[Any] = []
        ask = Ask(span, READ_AT_A_TIME, entities, consistent=consistent or span.gsi is None)
        while True:
            found = await self._engine.slice(ask, now_ms=now_ms)
            items += found.items
            if found.resume is None:
                return items
            ask = Ask(span, READ_AT_A_TIME, entities, found.resume, consistent=ask.consistent)


class Replicas:
    """The last states of items, and how many writes the table's replica and each index lag behind."""

    def __init__(self, random: Random, most: int) -> None:
        self._random = random
        self._most = most
        self._states: dict[tuple[str, str], deque[Any]] = {}
        self._lags: dict[tuple[str, str], dict[str | None, int]] = {}

    def written(self, operations: Sequence[Operation], before: Sequence[Any], after: Sequence[Any]) -> None:
        """Add the states after writes, and draw which of them are seen. An index never goes back to an earlier state."""
        for operation, old, new in zip(operations, before, after, strict=True):
            if isinstance(operation, Check):
                continue
            key = operation.id.pk, operation.id.sk
            self._states.setdefault(key, deque([old], self._most + 1)).append(new)
            lags = self._lags.setdefault(key, {})
            for gsi in (None, *operation.id.definition.gsis):
                lags[gsi] = min(lags.get(gsi, 0) + 1, self._random.randint(0, self._most))

    def stale(self, gsi: str | None) -> dict[tuple[str, str], Any]:
        """Return what is seen of the items that are not seen as they are, None where that is no item."""
        lagging = {key: lags[gsi] for key, lags in self._lags.items() if lags.get(gsi)}
        return {key: self._states[key][-1 - lag] for key, lag in lagging.items()}

    def catch_up(self) -> None:
        self._states.clear()
        self._lags.clear()


def _check_consistency(span: Span, consistent: bool) -> None:
    if consistent and span.gsi is not None:
        raise InvalidInput("consistent=True: an index cannot be read consistently: leave it out")


def _is_alive(item: Any, now_ms: int) -> bool:
    return is_alive(item.key.definition.expires_at(item), now_ms)
