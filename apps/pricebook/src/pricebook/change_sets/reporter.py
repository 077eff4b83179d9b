"""Finds out what would happen if a change set were approved now, store by store, in batched reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pricebook.change_sets.conflicts import other_edition, slot_of
from pricebook.change_sets.instants import ends_too_early, until, wanted_at
from pricebook.change_sets.report_values import Finding, Report
from pricebook.change_sets.store_pages import line_pages, store_pages
from pricebook.change_sets.store_prices import currency_message
from pricebook.change_sets.tally import Tally
from pricebook.editions.outlook import Outlook, Outlooks
from pricebook.editions.slots import conflict
from pricebook.editions.timing import Now, Timing
from pricebook.model import ChangeSet, ChangeStore, Head, PriceKey
from pricebook.money import Money
from tickler.table import MISSING, OpenTable


class _Change(NamedTuple):
    key: PriceKey
    before: Money | None
    after: Money | None


class _Place(NamedTuple):
    """A store of a change set. `slot` is where its prices would be, if somebody has asked for that instant."""

    head: Head
    counts_from: datetime
    slot: datetime | None


class Reporter:
    """`large_change` is a share: 0.3 warns of prices that change by more than 30%."""

    def __init__(self, db: OpenTable, outlooks: Outlooks, now: Now, timing: Timing, large_change: float) -> None:
        self._db = db
        self._outlooks = outlooks
        self._now = now
        self._timing = timing
        self._large_change = large_change

    async def report(self, found: ChangeSet) -> Report:
        tally = Tally()
        late: list[str] = []
        source = found.id if found.rolls_back is MISSING else found.rolls_back
        async for stores in store_pages(self._db, found.id):
            heads = await self._db.get_many([Head.key.id(each.store) for each in stores])
            for store, head in zip(stores, heads, strict=True):
                if head is None:
                    await self._unknown(tally, source, store)
                    continue
                place = self._place(found, head)
                tally.add_store(place.counts_from)
                if place.slot is None and wanted_at(found, head.tz) is not None:
                    late.append(store.store)
                self._check_end(tally, found, place)
                await self._store(tally, found, source, store, place)
        if late:
            more = f" and {len(late) - 1:,} others" if len(late) > 1 else ""
            message = f"store {late[0]}{more}: its date has passed, so these prices count as soon as they are approved"
            tally.find(Finding("warning", "late", message))
        return tally.report()

    async def _unknown(self, tally: Tally, source: str, store: ChangeStore) -> None:
        lines = 0
        async for some in line_pages(self._db, source, store.store):
            lines += len(some)
        tally.add_unknown_store(lines)
        message = f"there is no store {store.store}: take its lines out, or make the store first"
        tally.find(Finding("error", "unknown_store", message))

    def _place(self, found: ChangeSet, head: Head) -> _Place:
        now = self._now()
        slot = slot_of(found, head.tz, now + self._timing.margin)
        if slot is not None:
            return _Place(head, slot, slot)
        is_late = wanted_at(found, head.tz) is not None
        return _Place(head, now + (self._timing.buffer if is_late else self._timing.margin), None)

    def _check_end(self, tally: Tally, found: ChangeSet, place: _Place) -> None:
        ends_at = until(found, place.head.tz)
        if ends_at is not None and ends_at <= place.counts_from:
            tally.find(Finding("error", "late", ends_too_early(place.head.store)))

    async def _store(self, tally: Tally, found: ChangeSet, source: str, store: ChangeStore, place: _Place) -> None:
        async for changes, outlook in self._changes(found, source, store, place):
            for change in changes:
                share = tally.add(*change)
                for finding in self._findings(found, place, outlook, change, share):
                    tally.find(finding)

    async def _changes(
        self, found: ChangeSet, source: str, store: ChangeStore, place: _Place
    ) -> AsyncIterator[tuple[Sequence[_Change], Outlook]]:
        """Yield what prices are and would be at the instant from which the change set would count."""
        at, taken_back = place.counts_from, await self._taken_back(found, store)
        async for lines in line_pages(self._db, source, store.store):
            new: Mapping[PriceKey, Money | None] = {line.price_key(): line.money() for line in lines}
            outlook = (await self._outlooks.read(place.head, new)).without_change_set(found.id)
            if found.rolls_back is not MISSING:
                after = outlook
                if taken_back is not None:
                    after = await self._outlooks.without(outlook, list(new), taken_back, at)
                new = {key: after.price_at(key, at) for key in new}
            yield [_Change(key, outlook.price_at(key, at), amount) for key, amount in new.items()], outlook

    async def _taken_back(self, found: ChangeSet, store: ChangeStore) -> int | None:
        """Return the edition that a rollback would take back in a store."""
        if found.rolls_back is MISSING:
            return None
        other = await self._db.get(ChangeStore.key.id(found.rolls_back, store.store))
        return None if other is None or other.edition is MISSING else other.edition

    def _findings(self, found: ChangeSet, place: _Place, outlook: Outlook, change: _Change, share: float | None) -> list[Finding]:
        if found.rolls_back is not MISSING:
            return []
        key, before, after = change
        where = key.words
        findings: list[Finding] = []
        if after is not None and after.minor < 0:
            findings.append(Finding("error", "negative", f"{where} would be {after}: a price is not negative", key))
        if before is not None and after is not None and before.currency != after.currency:
            findings.append(Finding("error", "currency", currency_message(key, after, before), key))
        other = other_edition(found, place.head, outlook.rows.get(key), place.slot)
        if other is not None:
            clash = conflict(place.head, key, other)
            findings.append(Finding("error", "conflict", str(clash), key, clash.change_set))
        if share is not None and abs(share) > self._large_change:
            findings.append(
                Finding("warning", "large_change", f"{where} changes by {_percent(share)}: {before} becomes {after}", key)
            )
        if not outlook.has_row(key):
            findings.append(Finding("warning", "unknown_product", f"{where} has no price there yet", key))
        if before == after:
            findings.append(Finding("warning", "unchanged", f"{where} is {before or 'without a price'} anyway", key))
        return findings


def _percent(share: float) -> str:
    return f"{share:+.0%}".replace("-", "\N{MINUS SIGN}")
