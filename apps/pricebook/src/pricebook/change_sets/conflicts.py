"""Finds other change sets that have a price for the same store, channel, product and date."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pricebook.change_sets.instants import wanted_at
from pricebook.change_sets.store_pages import line_pages, store_pages
from pricebook.editions.evaluate import Values
from pricebook.editions.slots import conflict, is_dead
from pricebook.editions.timing import Now, Timing
from pricebook.model import ChangeSet, ChangeStore, Head, PriceKey
from tickler.table import MISSING, OpenTable

LOOKED_AT = 2_000  # lines, since somebody waits; what is in conflict beyond them is found while prices are staged


def slot_of(found: ChangeSet, tz: str, soonest: datetime) -> datetime | None:
    """Return the instant under which rows would have the prices; None for one that nobody has asked for."""
    wanted = wanted_at(found, tz)
    return None if wanted is None or wanted < soonest else wanted


def other_edition(found: ChangeSet, head: Head, values: Values | None, slot: datetime | None) -> int | None:
    """Return the edition of another change set that has a price of this product and instant."""
    value = None if values is None or slot is None else values.get(slot)
    if value is None or value.edition is MISSING or is_dead(value.edition, head):
        return None
    edition = head.editions.get(value.edition)
    return None if edition is not None and edition.change_set == found.id else value.edition


class Conflicts:
    def __init__(self, db: OpenTable, now: Now, timing: Timing) -> None:
        self._db = db
        self._now = now
        self._timing = timing

    async def check(self, found: ChangeSet) -> None:
        """Raise `PriceConflict` if another change set is approved for a price of this one, and its instant.

        Only stores where another edition has the same instant are looked at more closely, up to a number of lines.
        """
        left = LOOKED_AT
        async for stores in store_pages(self._db, found.id):
            heads = await self._db.get_many([Head.key.id(each.store) for each in stores])
            for store, head in zip(stores, heads, strict=True):
                slot = None if head is None else slot_of(found, head.tz, self._now() + self._timing.margin)
                if head is not None and slot is not None and self._may_conflict(found, head, slot):
                    left -= await self._check_store(found, store, head, slot, left)
                    if left <= 0:
                        return

    def _may_conflict(self, found: ChangeSet, head: Head, slot: datetime) -> bool:
        return any(
            each.slot == slot and each.change_set != found.id and not is_dead(number, head)
            for number, each in head.editions.items()
        )

    async def _check_store(self, found: ChangeSet, store: ChangeStore, head: Head, slot: datetime, most: int) -> int:
        """Return how many lines were looked at: all of the store, or more than `most`."""
        seen = 0
        async for lines in line_pages(self._db, found.id, store.store):
            keys = [line.price_key() for line in lines]
            rows = await self._db.get_many([key.row for key in keys])
            values: Mapping[PriceKey, Values] = {key: row.values for key, row in zip(keys, rows, strict=True) if row is not None}
            for key in keys:
                other = other_edition(found, head, values.get(key), slot)
                if other is not None:
                    raise conflict(head, key, other)
            seen += len(lines)
            if seen >= most:
                break
        return seen
