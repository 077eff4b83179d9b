"""A table that is open: reads, writes and queries, on whichever engine keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sized
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from typing import Any, Self, TypeVar, Unpack

from tickler.clock import Clock
from tickler.database.progress import OnProgress, no_progress
from tickler.errors import InvalidInput, SchemaMismatch, TransactionConflict
from tickler.table.change import Change, Remove, Set
from tickler.table.checked_operations import CheckedOperations
from tickler.table.condition import Condition
from tickler.table.cursor import read_secret
from tickler.table.definition import EntityDefinition, TableDefinition
from tickler.table.engines.engine import Engine
from tickler.table.explain import Explanation, explain_all
from tickler.table.index_texts import index_texts, outdated, read_index_texts, save_index_texts
from tickler.table.key import ItemId
from tickler.table.measurement import SAMPLED_ITEMS, Measurement
from tickler.table.operation import Delete, Put, Update
from tickler.table.reads import Reads
from tickler.table.reindex import reindex
from tickler.table.streams.consumer import Consumer
from tickler.table.streams.context import StreamContext
from tickler.table.streams.options import ConsumerOptions, Options
from tickler.table.streams.pruner import prune
from tickler.table.streams.status import ConsumerStatus, consumer_statuses
from tickler.table.transaction import Transaction

E = TypeVar("E")
R = TypeVar("R")

REINDEXED_AT_ONCE = 10_000  # items of a table that is reindexed when it is opened


class OpenTable(Reads):
    """A table with its engine. Made by `Table.connect`; use it with `async with`."""

    def __init__(self, table: TableDefinition, engine: Engine, clock: Clock, *, create: bool) -> None:
        super().__init__(engine, clock, self._own_secret, self._check)
        self._table = table
        self._generation = table.generation
        self._engine = engine
        self._create = create
        self._cached_secret: bytes | None = None
        self.operations = CheckedOperations(table, self._check)
        self._wakers: set[Callable[[], None]] = set()

    @property
    def engine(self) -> Engine:
        return self._engine

    async def open(self) -> Self:
        """Connect. `SchemaMismatch` if an index is defined otherwise than when the items of a large table were written."""
        self._generation = self._table.generation
        await self._engine.open(create=self._create)
        try:
            await self._check_indexes()
        except BaseException:
            await self.close()
            raise
        return self

    async def reindex(self, *, on_progress: OnProgress = no_progress) -> int:
        """Write the keys of all items anew, after the definition of an index has changed. Returns how many had other keys.

        It goes on where a run for the same definitions was interrupted. Others may write meanwhile.
        """
        return await reindex(self._table, self._engine, on_progress)

    async def _check_indexes(self) -> None:
        """Never let an index be read that lacks items, because they were written before it was defined."""
        stored = await read_index_texts(self._engine.metadata)
        changed = outdated(self._table, stored)
        if changed and (not self._create or await self._engine.has_more_than(REINDEXED_AT_ONCE)):
            raise SchemaMismatch(
                self._engine.database.name,
                f"the table {self._table.name!r} has items that were written before {', '.join(changed)} was defined like this: "
                "run `tickler table reindex`",
                changed[0],
            )
        if changed:
            await self.reindex()
        elif any(stored.get(name) != texts for name, texts in index_texts(self._table).items()):
            await save_index_texts(self._engine.metadata, index_texts(self._table))

    async def close(self) -> None:
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def put(self, entity: E, *, when: Condition[E] | None = None) -> E:
        """Store an item, in place of one with the same key, of whichever entity. Returns it as stored.

        If the entity has a version attribute, `VersionConflict` unless it is that of the stored item; 0 for a new one.
        """
        written: E = await self._write(self.operations.put(entity, when))
        return written

    async def create(self, entity: E) -> E:
        """Store an item whose key is not taken yet; otherwise `ConditionFailed`."""
        written: E = await self._write(self.operations.put(entity, None, "create"))
        return written

    async def replace(self, entity: E, *, when: Condition[E] | None = None) -> E:
        """Store an item in place of one that exists; otherwise `ConditionFailed`."""
        written: E = await self._write(self.operations.put(entity, when, "replace"))
        return written

    async def update(self, id: ItemId[E], *changes: Change[E], when: Condition[E] | None = None) -> E:
        """Change an item and return it as it is then. `ItemNotFound` if there is none, `ConditionFailed` unless `when` holds."""
        written: E = await self._write(self.operations.update(id, changes, when))
        return written

    async def upsert(self, id: ItemId[E], *changes: Change[E], when: Condition[E] | None = None) -> E:
        """Change an item, or create it from its key, defaults and these changes."""
        written: E = await self._write(self.operations.upsert(id, changes, when))
        return written

    async def delete(self, id: ItemId[E], *, when: Condition[E] | None = None) -> E | None:
        """Delete an item and return it, None if there was none. `ConditionFailed` unless `when` holds."""
        written: E | None = await self._write(self.operations.delete(id, when))
        return written

    async def put_many(self, entities: Iterable[Any]) -> None:
        """Store many items in few requests, each by itself. Entities with a version attribute are refused: they need `put`."""
        operations = [self.operations.put(entity) for entity in entities]
        for operation in operations:
            if operation.id.definition.version is not None:
                raise InvalidInput(f"put_many: {operation.id.definition.name} has versions, which it does not compare: use put")
        await self._engine.write_each(operations, now_ms=self._clock.now_ms())
        self._written()

    async def delete_many(self, ids: Iterable[ItemId[Any]]) -> None:
        """Delete many items in few requests, each by itself. Missing ones are fine."""
        await self._engine.write_each([self.operations.delete(id, None) for id in ids], now_ms=self._clock.now_ms())
        self._written()

    async def soft_delete(self, id: ItemId[E], *, keep: timedelta | None = None) -> E:
        """Set the attribute `attr(deleted=True)` to now; with `keep`, let the item expire after that time."""
        definition = id.definition
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        changes: list[Change[Any]] = [Set(self._role(definition, "deleted"), now)]
        if keep is not None:
            changes.append(Set(self._role(definition, "expires"), now + keep))
        return await self.update(id, *changes)

    async def restore(self, id: ItemId[E]) -> E:
        """Undo a soft delete: remove the instants of deletion and of expiry."""
        definition = id.definition
        changes: list[Change[Any]] = [Remove(self._role(definition, "deleted"))]
        if definition.expires is not None:
            changes.append(Remove(self._role(definition, "expires")))
        return await self.update(id, *changes)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Collect writes, and do all of them or none when the block ends."""
        transaction = Transaction(self)
        try:
            yield transaction
        finally:
            transaction.is_over = True
        await transaction.commit(self._clock.now_ms())
        self._written()

    async def transact(self, work: Callable[[Transaction], Awaitable[R]], *, tries: int = 5) -> R:
        """Call `work` with a transaction and commit it, again if others changed what it had read. Returns what `work` returns."""
        for _ in range(tries - 1):
            with suppress(TransactionConflict):
                return await self._transacted(work)
        return await self._transacted(work)

    async def _transacted(self, work: Callable[[Transaction], Awaitable[R]]) -> R:
        async with self.transaction() as transaction:
            return await work(transaction)
        raise AssertionError("a transaction does not suppress errors")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Reads]:
        """Read several times from one state of the table."""
        async with self._engine.snapshot() as reader:
            yield Reads(reader, self._clock, self._secret, self._check)

    async def explain(self, work: Callable[[Transaction], object]) -> list[Explanation]:
        """Say what the operations of `work` would do on DynamoDB, and what they would cost, without doing them.

        `await db.explain(lambda tx: tx.update(order.key, Order.status.set("shipped")))`. Several operations are one transaction.
        `work` may be a coroutine function, as for `transact`; what it only reads is checked when it commits, which costs, too.
        """
        collected = Transaction(self)
        if isawaitable(outcome := work(collected)):
            await outcome
        found = await self.get_many([operation.id for operation in collected.operations])
        return explain_all(collected.operations, found)

    async def load(self, entities: Iterable[Any], *, on_progress: OnProgress = no_progress, streamed: bool = True) -> int:
        """Put many new items, the fastest way that the engine has. Returns their number.

        With `streamed=False` consumers do not learn of them on SQL, which halves the time; DynamoDB streams them anyway.
        """
        total = len(entities) if isinstance(entities, Sized) else None

        def tell(activity: str, done: int, known: int | None) -> None:
            on_progress(activity, done, total if known is None else known)

        loaded = await self._engine.load(entities, tell, streamed=streamed)
        self._written()
        return loaded

    def consumer(self, name: str, **options: Unpack[Options]) -> Consumer:
        """Return a consumer of the changes of this table. All that have the same name, in any process, share their work.

        `ConsumerOptions` explains the options. `InvalidInput` unless the table is defined with `stream=True`.
        """
        self._check_streamed()
        chosen = ConsumerOptions(name=name, **options)
        return Consumer(
            StreamContext(self._table, self._engine.changes, self._engine.metadata, self._clock, chosen), self._wakers
        )

    async def consumers(self) -> list[ConsumerStatus]:
        """Return how the consumers of this table are doing. `InvalidInput` unless it is defined with `stream=True`."""
        self._check_streamed()
        return await consumer_statuses(self._engine, self._table.name, self._clock.now_ms())

    async def measure(self, *, sample: int | None = SAMPLED_ITEMS) -> Measurement:
        """Count the items of each entity in the table and in each index, and find the largest partitions.

        Exact on SQL. On DynamoDB up to `sample` items of the table and of each index are read, and the rest is estimated; None
        reads all.
        """
        return await self._engine.measure(now_ms=self._clock.now_ms(), sample=sample)

    async def sweep(self, *, limit: int = 1_000) -> int:
        """Delete expired items, up to `limit`, and return how many. Reads leave them out whether they are swept or not.

        Changes that no consumer needs any more are deleted, too. Consumers that run do that by themselves.
        """
        if self._table.stream:
            await prune(self._engine.changes, self._engine.metadata)
        return await self._engine.sweep(now_ms=self._clock.now_ms(), limit=limit)

    async def _write(self, operation: Put | Update | Delete) -> Any:
        written = (await self._engine.write([operation], now_ms=self._clock.now_ms()))[0]
        self._written()
        return written

    def _written(self) -> None:
        """Wake the consumers that run on this open table, which otherwise look for changes from time to time."""
        for wake in self._wakers:
            wake()

    def _check(self, definition: EntityDefinition) -> None:
        """Raise `InvalidInput` unless an entity belongs to the table as it was opened."""
        if self._table.entities.get(definition.name) is not definition:
            raise InvalidInput(f"{definition.name} is not an entity of the table {self._table.name!r}")
        if self._table.generation != self._generation:
            raise InvalidInput(f"an entity of the table {self._table.name!r} was defined after it was opened: open it again")

    def _check_streamed(self) -> None:
        if not self._table.stream:
            raise InvalidInput(
                f"the table {self._table.name!r} keeps no changes: define it with stream=True, and run `tickler table create`, "
                "or open it with create=True"
            )

    async def _own_secret(self) -> bytes:
        if self._cached_secret is None:
            self._cached_secret = await read_secret(self._engine.metadata)
        return self._cached_secret

    def _role(self, definition: EntityDefinition, role: str) -> Any:
        attribute = getattr(definition, role)
        if attribute is None:
            raise InvalidInput(f"{definition.name} has no attribute for this: declare one with attr({role}=True)")
        return definition.paths[attribute.name]
