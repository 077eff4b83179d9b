"""Lists stores by id, from an index that has one small entry of each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pricebook.access.caller import Caller
from pricebook.editions.cursors import Cursors, CursorSecret
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.editions.timing import Now, Timing
from pricebook.editions.traversal import Traversal
from pricebook.model import Head, Store
from tickler.table import OpenTable

READ_AT_A_TIME = 1_000  # the most that the table toolkit returns at once

Selection = Any  # of entries. The table toolkit does not export its type


class Stores:
    def __init__(self, db: OpenTable, now: Now, timing: Timing | None = None) -> None:
        self._db = db
        self._now = now
        self._timing = timing or Timing()
        self._secret = CursorSecret(db)

    async def page(self, caller: Caller, page: PageArgs) -> NodePage[Head]:
        """Return the stores that a caller may see, by id. No store is ever taken away, so both flags are true."""
        caller.require("read")
        prefixes = shortest(caller.stores)
        cursors = Cursors(await self._secret.get(), ("stores", *prefixes))
        walk = Traversal.begin(page, cursors, 1, self._now(), self._timing)
        found = [] if walk.is_empty else await self._find(prefixes, walk)
        return walk.page(found, lambda head: (head.store,), lambda head: head)

    async def get(self, caller: Caller, store: str) -> Head | None:
        """Return the head of a store; None if there is none, or it is not for this caller."""
        caller.require("read")
        if not caller.may_see(store):
            return None
        return await self._db.get(Head.key.id(store))

    async def count_hint(self, caller: Caller) -> int:
        """Return how many stores a caller may see, by the index, which may lag behind a little on DynamoDB."""
        caller.require("read")
        prefixes = shortest(caller.stores)
        return await self._db.count(*(_entries(prefix) for prefix in prefixes)) if prefixes else 0

    async def _find(self, prefixes: Sequence[str], walk: Traversal) -> list[Head]:
        stores: list[str] = []
        for prefix in reversed(prefixes) if walk.backwards else prefixes:
            async for store in self._of_prefix(prefix, walk, walk.wanted - len(stores)):
                stores.append(store)
            if len(stores) == walk.wanted:
                break
        heads = await self._db.get_many([Head.key.id(store) for store in stores])
        return [head for head in heads if head is not None]

    async def _of_prefix(self, prefix: str, walk: Traversal, wanted: int) -> AsyncIterator[str]:
        """Yield the ids of the first `wanted` stores that begin with a prefix, in walking order."""
        entries, (low, high) = _entries(prefix), walk.window
        entries = entries if low is None else entries.after(low[0])
        entries = entries if high is None else entries.before(high[0])
        cursor: str | None = None
        while wanted > 0:
            asked: dict[str, Any] = {"first": min(wanted, READ_AT_A_TIME), "after": cursor}
            page = await self._db.query(entries.newest_first() if walk.backwards else entries, **asked)
            for entry in page.items:
                yield entry.store
            wanted -= len(page.items)
            if not page.has_next:
                return
            cursor = page.end


def shortest(prefixes: Sequence[str]) -> list[str]:
    """Return prefixes in order, without those that a shorter one covers, so that no store is in two of them."""
    kept: list[str] = []
    for prefix in sorted(set(prefixes)):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


def _entries(prefix: str) -> Selection:
    return Store.all().starting_with(prefix) if prefix else Store.all()
