"""Makes change sets that take other ones back."""

from __future__ import annotations

from pricebook.access.caller import Caller
from pricebook.audit.entries import entry_of_change
from pricebook.change_sets import states
from pricebook.change_sets.store_pages import store_pages
from pricebook.change_sets.values import MAX_TITLE
from pricebook.change_sets.writer import ChangeSetWriter, Write, new_id
from pricebook.editions.head_writes import Cause
from pricebook.errors import NotAllowed
from pricebook.model import ChangeSet, ChangeStore
from tickler.table import MISSING, OpenTable, Transaction, evolve


class Rollbacks:
    def __init__(self, db: OpenTable, writer: ChangeSetWriter) -> None:
        self._db = db
        self._writer = writer

    async def make(self, caller: Caller, other: ChangeSet, cause: Cause) -> ChangeSet:
        """Make a change set for the stores of another one, and submit it when it has all of them."""
        if other.rolls_back is not MISSING:
            raise NotAllowed(f"change set {other.id} is a rollback itself: make a new change set with the prices")
        states.claimed_by(other, "")
        draft = ChangeSet(
            id=new_id(),
            title=f"Roll back: {other.title}"[:MAX_TITLE],
            reason=cause.reason,
            scope=other.scope,
            created_by=caller.id,
            created_at=self._writer.now(),
            rolls_back=other.id,
        )
        await self._writer.create(draft, cause, "roll_back")
        async for stores in store_pages(self._db, other.id, size=500):
            await self._db.put_many([ChangeStore(change_set=draft.id, store=each.store, round=draft.rev) for each in stores])

        def decide(found: ChangeSet) -> ChangeSet:
            return states.submitted(found, cause, self._writer.now(), other.stores, other.lines, set(other.scope))

        return await self._writer.write(draft.id, Write("submit", decide, cause, draft.rev))

    async def claim(self, tx: Transaction, rollback: ChangeSet, cause: Cause) -> None:
        """Let nobody else take the other change set back, from the approval of this one on."""
        assert rollback.rolls_back is not MISSING, "it is a rollback"
        other = await tx.get(ChangeSet.key.id(rollback.rolls_back))
        assert other is not None, "change sets are not deleted"
        after = evolve(states.claimed_by(other, rollback.id), rev=other.rev + 1)
        tx.replace(after)
        tx.create(entry_of_change("roll_back", other, after, self._writer.now(), cause))
