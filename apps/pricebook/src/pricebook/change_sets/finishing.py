"""Lets a change set be settled once it is settled in all its stores, and finds what was left."""

from __future__ import annotations

from collections.abc import Sequence

from pricebook.change_sets import states
from pricebook.change_sets.store_pages import store_pages
from pricebook.change_sets.writer import ChangeSetWriter, Write
from pricebook.editions.head_writes import Cause
from pricebook.errors import HasChanged
from pricebook.model import ChangeSet, ChangeStore, Head
from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table import MISSING, OpenTable

SWEPT_AT_A_TIME = 100


class Finishing:
    def __init__(self, db: OpenTable, writer: ChangeSetWriter) -> None:
        self._db = db
        self._writer = writer

    async def store_settled(self, id: str, store: str, edition: int) -> None:
        """Note that an edition was settled in a store. Calls that are repeated, or of other editions, do nothing."""
        this_one = (ChangeStore.state == "sealed") & (ChangeStore.edition == edition)
        try:
            await self._db.update(ChangeStore.key.id(id, store), ChangeStore.state.set("settled"), when=this_one)
        except ItemNotFound:
            return
        except ConditionFailed as error:
            found = error.found
            if not isinstance(found, ChangeStore) or found.state != "settled" or found.edition != edition:
                return  # otherwise the process that noted it may have stopped then
        await self.finish(id)

    async def finish(self, id: str) -> bool:
        """Let an approved change set be settled if it is in all its stores. Returns whether it is now."""
        if (await self._db.query(ChangeStore.unsettled(id), first=1)).items:
            return False
        found = await self._db.get(ChangeSet.key.id(id))
        if found is None or found.state != "approved":
            return False
        async for stores in store_pages(self._db, id, size=500):
            if any(each.state != "settled" for each in stores):
                return False  # an index of DynamoDB lags behind
        try:
            await self._writer.write(
                id, Write("settle", lambda found: states.settled(found, self._writer.now()), Cause(), found.rev)
            )
        except HasChanged:
            return False
        return True

    async def sweep(self) -> int:
        """Begin again what stands still, and settle what nobody has told of. Returns how many change sets that were."""
        done = 0
        begun: tuple[states.Unfinished, ...] = ("approving", "withdrawing")
        for state in begun:
            for found in await self._due(state):
                done += await self._writer.push_due(found, self._writer.now() + states.PATIENCE, begin=True)
        for found in await self._due("approved"):
            done += await self._look_after(found)
        return done

    async def _due(self, state: states.Unfinished) -> Sequence[ChangeSet]:
        due = ChangeSet.unfinished(state).until(self._writer.now())
        return (await self._db.query(due, first=SWEPT_AT_A_TIME)).items

    async def _look_after(self, found: ChangeSet) -> bool:
        """Compare the stores of an approved change set with their heads. One that is still there is looked at again later."""
        settled = await self._mark_settled(found)
        if await self.finish(found.id):
            return True
        await self._writer.push_due(found, self._writer.now() + states.PATIENCE, begin=False)
        return settled > 0

    async def _mark_settled(self, found: ChangeSet) -> int:
        marked = 0
        cursor: str | None = None
        while True:
            page = await self._db.query(ChangeStore.unsettled(found.id), first=SWEPT_AT_A_TIME, after=cursor)
            heads = await self._db.get_many([Head.key.id(each.store) for each in page.items])
            for store, head in zip(page.items, heads, strict=True):
                if head is not None and store.edition is not MISSING and store.edition not in head.editions:
                    await self.store_settled(found.id, store.store, store.edition)
                    marked += 1
            if not page.has_next:
                return marked
            cursor = page.end
