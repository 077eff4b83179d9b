"""Stages the prices of a change set in one store, and keeps for the audit what they were and are to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from pricebook.change_sets.instants import ends_too_early, until
from pricebook.change_sets.store_pages import line_pages
from pricebook.editions.outlook import Outlook, Outlooks
from pricebook.editions.staging import Staged
from pricebook.editions.switch import Switch
from pricebook.errors import NotAllowed
from pricebook.model import NO_COMBINATION, AuditedPrice, ChangeSet, ChangeStore, Edition, Head, PriceKey
from pricebook.money import Money
from pricebook.points import AtPoint
from tickler.table import MISSING, OpenTable


class StorePrices:
    def __init__(self, db: OpenTable, switch: Switch, outlooks: Outlooks, at_point: AtPoint) -> None:
        self._db = db
        self._switch = switch
        self._outlooks = outlooks
        self._at_point = at_point

    async def stage(self, found: ChangeSet, store: ChangeStore, head: Head, edition: Edition) -> None:
        """Stage all lines of a store. Refuses what cannot be approved: another currency, and an end before the beginning."""
        assert store.edition is not MISSING, "it is open"
        ends_at = until(found, head.tz)
        if ends_at is not None and ends_at <= edition.slot:
            raise NotAllowed(ends_too_early(store.store))
        async for lines in line_pages(self._db, found.id, store.store):
            new = {line.price_key(): line.money() for line in lines}
            outlook = await self._outlooks.read(head, new)
            before = {key: outlook.price_at(key, edition.slot) for key in new}
            check_currencies(new.items(), before)
            amounts = {key: amount for key, amount in new.items() if amount is not None}
            lowest = await self._outlooks.lowest(outlook, amounts, edition.slot)
            await self.audit(found, store, edition, [(key, before[key], after) for key, after in new.items()])
            await self._at_point("change_set.audited")
            staged = [_staged(key, amount, ends_at, lowest.get(key)) for key, amount in new.items()]
            await self._switch.stage(store.store, store.edition, staged)

    async def stage_retraction(self, found: ChangeSet, store: ChangeStore, head: Head, edition: Edition) -> None:
        """Stage what takes back a settled edition: of the change set that `found` rolls back, or of itself."""
        assert store.edition is not MISSING, "it is open"
        taken_back = found.id if found.rolls_back is MISSING else found.rolls_back
        async for lines in line_pages(self._db, taken_back, store.store):
            keys = [line.price_key() for line in lines]
            outlook = await self._outlooks.read(head, keys)
            after = await self._without(outlook, keys, store, edition.slot)
            changes = [(key, outlook.price_at(key, edition.slot), after.price_at(key, edition.slot)) for key in keys]
            await self.audit(found, store, edition, changes)
        there = await self._db.get(ChangeStore.key.id(taken_back, store.store))
        counted_from = None if there is None or there.from_at is MISSING else there.from_at
        await self._switch.stage_retraction(store.store, store.edition, counted_from)

    async def audit(
        self,
        found: ChangeSet,
        store: ChangeStore,
        edition: Edition,
        changes: Iterable[tuple[PriceKey, Money | None, Money | None]],
    ) -> None:
        assert store.edition is not MISSING, "it is open"
        from_at = edition.slot if store.wanted_at is MISSING else store.wanted_at
        decision = found.decision
        actor, reason, request = ("pricebook", "", "") if decision is MISSING else (
            decision.actor, decision.reason, decision.request
        )  # fmt: skip
        await self._db.put_many(
            [
                AuditedPrice(
                    store=key.store,
                    edition=store.edition,
                    channel=key.channel,
                    type=key.type,
                    product=key.product,
                    combination=key.combination or NO_COMBINATION,
                    at=edition.opened_at,
                    from_at=from_at,
                    actor=actor,
                    change_set=found.id,
                    reason=reason or found.reason,
                    request=request,
                    before_amount=MISSING if before is None else before.minor,
                    before_currency=MISSING if before is None else before.currency,
                    after_amount=MISSING if after is None else after.minor,
                    after_currency=MISSING if after is None else after.currency,
                )
                for key, before, after in changes
            ]
        )

    async def _without(self, outlook: Outlook, keys: Sequence[PriceKey], store: ChangeStore, at: datetime) -> Outlook:
        assert store.retracts is not MISSING, "it takes an edition back"
        return await self._outlooks.without(outlook, keys, store.retracts, at)


def check_currencies(new: Iterable[tuple[PriceKey, Money | None]], before: dict[PriceKey, Money | None]) -> None:
    for key, amount in new:
        counting = before[key]
        if amount is not None and counting is not None and amount.currency != counting.currency:
            raise NotAllowed(currency_message(key, amount, counting))


def currency_message(key: PriceKey, amount: Money, counting: Money) -> str:
    return f"{key.words} is {counting} and would be {amount}: use the same currency"


def _staged(key: PriceKey, amount: Money | None, ends_at: datetime | None, lowest: Money | None) -> Staged:
    return Staged(key.channel, key.type, key.product, amount, ends_at, key.combination, lowest)
