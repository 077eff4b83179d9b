"""What products of a store will cost, as far as it is decided, and what they cost before: read in batches, not price by price."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pricebook.editions.evaluate import LOWEST_OVER, Editions, Values, lowest_before, money_at
from pricebook.editions.point_in_time import PointInTime, candidates_of
from pricebook.editions.timing import MILLISECOND
from pricebook.model import Head, PastCombinationPrice, PastPrice, PriceKey, Value, has_combination
from pricebook.money import Money
from tickler.table import MISSING, Missing, OpenTable

PAST_AT_A_TIME = 1_000
MAX_PAST_PAGES = 2  # of a range of products, before each is asked for by itself
FEW = 4  # products that are asked for each by itself anyway
AT_ONCE = 16

Past = dict[PriceKey, dict[datetime, Value]]


class Outlook(NamedTuple):
    """The rows of some products, and the editions of the head that was read before. A row that does not exist is absent."""

    rows: Mapping[PriceKey, Values]
    editions: Editions

    def values(self, key: PriceKey) -> list[Values]:
        """Return the values of a key, then those of ALL."""
        return [self.rows.get(each, {}) for each in candidates_of(key)]

    def has_row(self, key: PriceKey) -> bool:
        return any(each in self.rows for each in candidates_of(key))

    def without_change_set(self, id: str) -> Outlook:
        """Return the outlook as if a change set were not approved, as long as it is not settled."""
        return Outlook(self.rows, {number: each for number, each in self.editions.items() if each.change_set != id})

    def price_at(self, key: PriceKey, at: datetime) -> Money | None:
        """Return what a product costs at an instant of which rows have the values: one that is to come, or has just passed."""
        return money_at(self.values(key), self.editions, at)


class Outlooks:
    def __init__(self, db: OpenTable, points: PointInTime) -> None:
        self._db = db
        self._points = points

    async def read(self, head: Head, keys: Iterable[PriceKey]) -> Outlook:
        wanted = list(dict.fromkeys(each for key in keys for each in candidates_of(key)))
        rows = await self._points.rows(wanted)
        return Outlook({key: row.values for key, row in zip(wanted, rows, strict=True) if row is not None}, head.editions)

    async def lowest(self, outlook: Outlook, new: Mapping[PriceKey, Money], at: datetime) -> dict[PriceKey, Money]:
        """Return the lowest price of the 30 days before `at` of each product whose price `new` reduces."""
        reduced = [key for key, amount in new.items() if _is_reduced(outlook.price_at(key, at - MILLISECOND), amount)]
        candidates = list(dict.fromkeys(each for key in reduced for each in candidates_of(key)))
        past = await self.past(candidates, at - LOWEST_OVER, at)
        found: dict[PriceKey, Money] = {}
        for key in reduced:
            values = [{**past.get(each, {}), **outlook.rows.get(each, {})} for each in candidates_of(key)]
            lowest = lowest_before(values, outlook.editions, at, new[key])
            if lowest is not None:
                found[key] = lowest
        return found

    async def without(self, outlook: Outlook, keys: Sequence[PriceKey], edition: int, at: datetime) -> Outlook:
        """Return the outlook on these products if an edition did not count any more from `at` on."""
        candidates = list(dict.fromkeys(each for key in keys for each in candidates_of(key)))
        past = await self.past(candidates, at, at, without=edition)
        rows = {
            key: {
                slot: value
                for slot, value in {**past.get(key, {}), **outlook.rows.get(key, {})}.items()
                if value.settled != edition
            }
            for key in candidates
            if key in outlook.rows or key in past
        }
        return Outlook(rows, {number: each for number, each in outlook.editions.items() if number != edition})

    async def past(self, keys: Sequence[PriceKey], since: datetime, until: datetime, *, without: int | Missing = MISSING) -> Past:
        """Return past values of products of one store that may have counted between two instants, and maybe others.

        With `without`, those that may have counted if a settled edition had not, too.
        """
        groups: dict[tuple[str, str], list[PriceKey]] = {}
        for key in keys:
            groups.setdefault((key.channel, key.type), []).append(key)
        found: Past = {}
        for group in groups.values():
            of_range = None if len(group) <= FEW else await self._past_of_range(group)
            found |= await self._past_of_each(group, since, until, without) if of_range is None else of_range
        return found

    async def _past_of_range(self, keys: Sequence[PriceKey]) -> Past | None:
        """Return all past values of the products from the first one to the last one; None if they are too many."""
        key, products = keys[0], [each.product for each in keys]
        entity = PastCombinationPrice if has_combination(key.type) else PastPrice
        products_between: Any = entity.key(key.store).under(key.channel).under(key.type).between(min(products), max(products))
        found: Past = {}
        cursor: str | None = None
        for _ in (None,) * MAX_PAST_PAGES:
            page = await self._db.query(products_between, first=PAST_AT_A_TIME, after=cursor, consistent=True)
            for past in page.items:
                combination = past.combination if isinstance(past, PastCombinationPrice) else None
                whose = PriceKey(past.store, past.channel, past.type, past.product, combination)
                found.setdefault(whose, {})[past.from_at] = past.value
            if not page.has_next:
                return found
            cursor = page.end
        return None

    async def _past_of_each(self, keys: Sequence[PriceKey], since: datetime, until: datetime, without: int | Missing) -> Past:
        found: Past = {}
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            values = await asyncio.gather(*(self._points.past(key, since, until, without=without) for key in some))
            found |= dict(zip(some, values, strict=True))
        return found


def _is_reduced(before: Money | None, new: Money) -> bool:
    return before is not None and before.currency == new.currency and new.minor < before.minor
