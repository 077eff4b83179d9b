"""The steps of a change set that takes another one back, in one store.

Where the other one is not settled, its edition is cancelled by one write, and there is nothing to stage. Where it is settled, an
edition that retracts it is staged and sealed. Work on a rollback is never given up, only postponed: a part of it may count.
"""

from __future__ import annotations

from datetime import timedelta

from pricebook.change_sets.store_prices import StorePrices
from pricebook.change_sets.store_steps import StoreSteps, cause_of_decision
from pricebook.change_sets.take_back import being_settled
from pricebook.editions.switch import Switch
from pricebook.errors import NotAllowed
from pricebook.model import ChangeSet, ChangeStore, Head
from pricebook.points import AtPoint
from tickler import RetryLater
from tickler.table import MISSING, OpenTable, Transaction, evolve

WAIT = timedelta(seconds=10)


class RollbackSteps:
    def __init__(self, db: OpenTable, switch: Switch, steps: StoreSteps, prices: StorePrices, at_point: AtPoint) -> None:
        self._db = db
        self._switch = switch
        self._steps = steps
        self._prices = prices
        self._at_point = at_point

    async def stage(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Stage what takes the other change set back, if it is settled here."""
        try:
            store = await self._begin(found, store)
            if store.state != "open":
                return store
            return await self._stage(found, store)
        except NotAllowed as error:
            raise RetryLater(after=WAIT, reason=str(error)) from None

    async def seal(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Take the other change set back."""
        try:
            if store.edition is not MISSING:
                return await self._steps.seal(found, store)
            sealed = await self._cancel(found, store)
        except NotAllowed as error:
            if store.edition is not MISSING:
                await self._steps.restart(found, store)
            raise RetryLater(after=WAIT, reason=str(error)) from None
        if sealed.state == "pending":
            raise being_settled(store)
        return sealed

    async def _begin(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Find out what is to be taken back, and open an edition for it if it is settled."""
        if store.state != "pending":
            return store
        assert found.rolls_back is not MISSING, "it is a rollback"
        other = await self._db.get(ChangeStore.key.id(found.rolls_back, store.store))
        cause = cause_of_decision(found)

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.state != "pending":
                return None
            if other is None or other.edition is MISSING or other.state not in ("sealed", "settled"):
                return evolve(store, state="settled", round=found.rev)
            begun = evolve(store, retracts=other.edition, round=found.rev)
            head = await tx.get(Head.key.id(store.store))
            edition = None if head is None else head.editions.get(other.edition)
            if edition is None:
                number = await self._switch.open_edition(
                    store.store, retracts=other.edition, change_set=found.id, cause=cause, using=tx
                )
                return evolve(begun, state="open", edition=number)
            if edition.to_at is not MISSING:
                return evolve(begun, state="settled")  # it was cancelled
            if edition.state == "settling":
                raise being_settled(store)
            return evolve(begun, state="staged")

        begun = await self._steps.step(found, store, work)
        await self._at_point("change_set.opened")
        return begun

    async def _stage(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        head, edition = await self._steps.opened(store)
        if edition is None:
            return await self._steps.restart(found, store)
        try:
            await self._prices.stage_retraction(found, store, head, edition)
        except NotAllowed:  # another price has its instant, or it was opened too long ago
            await self._steps.restart(found, store)
            raise
        return await self._steps.mark_staged(found, store, edition)

    async def _cancel(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        cause = cause_of_decision(found)

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.state != "staged" or store.edition is not MISSING or store.retracts is MISSING:
                return None
            head = await tx.get(Head.key.id(store.store))
            edition = None if head is None else head.editions.get(store.retracts)
            if edition is None or edition.state == "settling":
                return evolve(store, state="pending", retracts=MISSING)  # it was settled meanwhile
            other = await tx.get(ChangeStore.key.id(str(found.rolls_back), store.store))
            if other is not None and other.state == "sealed" and other.edition == store.retracts:
                tx.put(evolve(other, state="settled"))  # nobody tells of the settling of a cancelled edition
            if edition.to_at is MISSING:
                edition = await self._switch.cancel(store.store, store.retracts, cause=cause, using=tx)
            return evolve(store, state="settled", from_at=edition.to_at)

        return await self._steps.step(found, store, work, in_time=True)
