"""Takes a change set back in one store: before it counts, after that, and after it is settled."""

from __future__ import annotations

from datetime import timedelta

from pricebook.change_sets.store_prices import StorePrices
from pricebook.change_sets.store_steps import StoreSteps, cause_of_decision
from pricebook.editions.switch import Switch
from pricebook.errors import NotAllowed
from pricebook.model import ChangeSet, ChangeStore, Edition, Head
from pricebook.points import AtPoint
from tickler import RetryLater
from tickler.table import MISSING, Transaction, evolve

WAIT = timedelta(seconds=2)
LONG_WAIT = timedelta(seconds=30)  # until somebody has done something about a store


class TakeBack:
    def __init__(self, switch: Switch, steps: StoreSteps, prices: StorePrices, at_point: AtPoint) -> None:
        self._switch = switch
        self._steps = steps
        self._prices = prices
        self._at_point = at_point

    async def take_back(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Let the prices of a change set count no more in a store, and let the store be pending again.

        It is never refused, only postponed, so that a store that cannot be taken back yet does not keep others from it.
        """
        try:
            return await self._take_back(found, store)
        except NotAllowed as error:
            raise RetryLater(after=LONG_WAIT, reason=str(error)) from None

    async def _take_back(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        if store.edition is MISSING or store.state in ("pending", "open", "staged"):
            return await self._cancel(found, store)
        head = await self._steps.head(store.store)
        edition = head.editions.get(store.edition)
        if edition is None:
            return await self._retract(found, store)
        if edition.state == "settling":
            raise being_settled(store)
        return await self._cancel(found, store)

    async def _cancel(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        cause = cause_of_decision(found)

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.round == found.rev and store.state == "pending":
                return None  # another process was faster
            if store.edition is not MISSING:
                head = await tx.get(Head.key.id(store.store))
                edition = None if head is None else head.editions.get(store.edition)
                if was_settled(store, edition):
                    raise being_settled(store)  # since it was looked at
                if edition is not None and edition.to_at is MISSING:
                    await self._switch.cancel(store.store, store.edition, cause=cause, using=tx)
            return released(store, found)

        taken = await self._steps.step(found, store, work, in_time=True)
        await self._at_point("change_set.taken_back")
        return taken

    async def _retract(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Seal an edition that takes the settled one back. The store knows its number, so that there is only one."""
        store = await self._open_retraction(found, store)
        if store.retraction is MISSING:
            return store
        await self._at_point("change_set.retraction_opened")
        retracting = evolve(store, edition=store.retraction, retracts=store.edition, wanted_at=MISSING)
        head, edition = await self._steps.opened(retracting)
        if edition is None:  # another process was faster
            return await self._forget_retraction(found, store)
        try:
            await self._prices.stage_retraction(found, retracting, head, edition)
        except NotAllowed:  # likewise, or another price has its instant, or it was opened too long ago
            return await self._forget_retraction(found, store)
        await self._at_point("change_set.retraction_staged")
        return await self._seal_retraction(found, store)

    async def _open_retraction(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        cause = cause_of_decision(found)

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.edition is MISSING or store.retraction is not MISSING:
                return None
            number = await self._switch.open_edition(
                store.store, retracts=store.edition, change_set=found.id, cause=cause, using=tx
            )
            return evolve(store, retraction=number)  # of the former round, until it is taken back

        return await self._steps.step(found, store, work)

    async def _seal_retraction(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        number = store.retraction
        cause = cause_of_decision(found)

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.retraction is MISSING or store.retraction != number:
                return None
            await self._switch.seal(store.store, store.retraction, cause=cause, using=tx)
            return released(store, found)

        taken = await self._steps.step(found, store, work, in_time=True)
        await self._at_point("change_set.taken_back")
        return taken

    async def _forget_retraction(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Cancel a retraction that cannot be staged; the next call opens one for a later instant."""
        number = store.retraction

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.retraction is MISSING or store.retraction != number:
                return None
            await self._switch.cancel(store.store, store.retraction, cause=cause_of_decision(found), using=tx)
            return evolve(store, retraction=MISSING)

        await self._steps.step(found, store, work)
        raise RetryLater(after=WAIT, reason=f"store {store.store}: its prices could not be taken back yet")


def released(store: ChangeStore, found: ChangeSet) -> ChangeStore:
    return ChangeStore(change_set=store.change_set, store=store.store, round=found.rev)


def was_settled(store: ChangeStore, edition: Edition | None) -> bool:
    """Tell whether a sealed edition is settled, or is being settled."""
    if store.state not in ("sealed", "settled"):
        return False
    return edition is None or edition.state == "settling"


def being_settled(store: ChangeStore) -> RetryLater:
    return RetryLater(after=WAIT, reason=f"store {store.store}: its prices are being settled")
