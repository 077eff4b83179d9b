"""Adds lines to a draft and removes them, in batches that are a transaction each: a set that is submitted has no more to come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence, Set

from pricebook.access.caller import Caller
from pricebook.access.scope import widened
from pricebook.change_sets.states import check_state
from pricebook.change_sets.store_pages import store_pages
from pricebook.change_sets.values import Line
from pricebook.change_sets.writer import ChangeSetWriter, Write
from pricebook.editions.head_writes import Cause
from pricebook.editions.staging import batches
from pricebook.editions.storage import Storage
from pricebook.errors import HasChanged, NotAllowed
from pricebook.model import ChangeLine, ChangeSet, ChangeStore, PriceKey
from tickler.errors import ConditionFailed, TransactionConflict
from tickler.table import MISSING, OpenTable, Transaction, evolve

WRITTEN_AT_A_TIME = 500
WRITTEN_AT_A_TIME_ON_DYNAMODB = 45  # a transaction there has at most 100 operations, and each line may bring a store along
COUNTED_AT_ONCE = 16


class LineWriter:
    def __init__(self, db: OpenTable, writer: ChangeSetWriter) -> None:
        self._db = db
        self._storage = Storage(db)
        self._writer = writer

    async def put(self, caller: Caller, id: str, lines: Iterable[Line], cause: Cause) -> int:
        """Add lines, or replace those of the same prices. Returns how many were given.

        A refused line of a list refuses all of them. Of an iterator, what was written before stays.
        """
        if isinstance(lines, Sequence):
            for line in lines:
                _check(line.key, caller)
        known: set[str] = set()
        seen, written = 0, 0
        for batch in batches(lines, await self._at_a_time()):
            wanted = {line.key: line for line in batch}
            for key in wanted:
                _check(key, caller)
            items = [line.item(id) for line in wanted.values()]
            found = await self._check(caller, id)
            if found.rev != seen:
                known.clear()  # others have changed it
            seen = await self._add(found, items, known, caller, cause)
            if seen != found.rev + 1:
                known.clear()
            known |= {key.store for key in wanted}
            written += len(batch)
        return written

    async def remove(self, caller: Caller, id: str, keys: Iterable[PriceKey], cause: Cause) -> int:
        """Remove the lines of these prices. Returns how many there were."""
        removed = 0
        for batch in batches(keys, await self._at_a_time()):
            await self._check(caller, id)
            ids = [Line(key, None).item(id).key for key in dict.fromkeys(batch)]
            there = [line for line in await self._db.get_many(ids) if line is not None]

            async def also(tx: Transaction, _: ChangeSet, there: Sequence[ChangeLine] = there) -> None:
                for line in there:
                    tx.delete(line.key)

            if there:
                await self._writer.write(id, Write("remove_lines", _still_a_draft, cause, lines=len(there), also=also))
            removed += len(there)
        return removed

    async def count(self, id: str) -> dict[str, int]:
        """Return the number of lines in each store of a change set."""
        counted: dict[str, int] = {}
        async for stores in store_pages(self._db, id):
            for some in batches(stores, COUNTED_AT_ONCE):
                counts = await asyncio.gather(*(self._db.count(ChangeLine.key(id, each.store), consistent=True) for each in some))
                counted |= {each.store: number for each, number in zip(some, counts, strict=True)}
        return counted

    async def forget_stores(self, found: ChangeSet, stores: Iterable[str]) -> None:
        """Forget stores without lines. `HasChanged` if the change set has: they may have some now."""
        for store in stores:
            try:
                async with self._db.transaction() as tx:
                    tx.check(found.key, ChangeSet.rev == found.rev)
                    tx.delete(ChangeStore.key.id(found.id, store))
            except (ConditionFailed, TransactionConflict):
                raise HasChanged(f"change set {found.id}", (await self._writer.read(found.id)).rev) from None

    async def _add(self, found: ChangeSet, items: Sequence[ChangeLine], known: Set[str], caller: Caller, cause: Cause) -> int:
        """Write lines with their stores, but those that are `known` to be there, as long as the set is as it was found."""
        stores = {item.store for item in items}

        async def also(tx: Transaction, after: ChangeSet) -> None:
            for store in stores - known if after.rev == found.rev + 1 else stores:
                tx.put(ChangeStore(change_set=after.id, store=store, round=after.rev))
            for item in items:
                tx.put(item)

        def decide(before: ChangeSet) -> ChangeSet:
            check_state(before, "draft")
            return evolve(before, scope=widened(before.scope, stores, caller))

        after = await self._writer.write(found.id, Write("put_lines", decide, cause, lines=len(items), also=also))
        return after.rev

    async def _check(self, caller: Caller, id: str) -> ChangeSet:
        found = await self._writer.visible(caller, id)
        if found.rolls_back is not MISSING:
            raise NotAllowed(f"change set {id} rolls another one back, and has no lines: make a new change set")
        check_state(found, "draft")
        return found

    async def _at_a_time(self) -> int:
        return WRITTEN_AT_A_TIME if await self._storage.has_snapshots() else WRITTEN_AT_A_TIME_ON_DYNAMODB


def _check(key: PriceKey, caller: Caller) -> None:
    caller.require_store(key.store)
    key.check_names()


def _still_a_draft(found: ChangeSet) -> ChangeSet:
    check_state(found, "draft")
    return found
