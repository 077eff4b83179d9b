"""The prices of certain products at an instant, also a past one: from their rows, and from what rows no longer hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from pricebook.editions.evaluate import NO_EDITIONS, Editions, Values, value_at
from pricebook.editions.nodes import price_node
from pricebook.editions.pages import PriceNode
from pricebook.editions.timing import Now, Timing
from pricebook.errors import NotFound
from pricebook.model import ALL, Head, PastCombinationPrice, PastPrice, PriceKey, PriceRow, Value
from tickler.table import MISSING, Missing, OpenTable

PAST_AT_A_TIME = 8
MICROSECOND = timedelta(microseconds=1)


class PointInTime:
    """Reads heads before rows, both consistently: an edition that a row has and its head did not was opened in between."""

    def __init__(self, db: OpenTable, now: Now, timing: Timing) -> None:
        self._db = db
        self._now = now
        self._timing = timing

    async def prices(self, keys: Sequence[PriceKey], at: datetime, *, of_known_stores: bool = False) -> list[PriceNode | None]:
        """Return the price of each key at an instant, its channel's own or else that of ALL; None where there is none.

        With `of_known_stores`, a store that is not there is `NotFound`.
        """
        candidates = list(dict.fromkeys(each for key in keys for each in candidates_of(key)))
        editions = await self.editions(key.store for key in candidates)
        if of_known_stores and any(key.store not in editions for key in keys):
            raise NotFound("store")
        nodes: dict[PriceKey, PriceNode | None] = {}
        for key, row in zip(candidates, await self.rows(candidates), strict=True):
            values: Values = {} if row is None else row.values
            if self._now() - at > self._timing.retention:
                values = {**await self.past(key, at, at), **values}
            counting = value_at(values, editions.get(key.store, NO_EDITIONS), at)
            nodes[key] = None if counting is None else price_node(key.new_row({}) if row is None else row, counting)
        return [next((nodes[each] for each in candidates_of(key) if nodes[each] is not None), None) for key in keys]

    async def editions(self, stores: Iterable[str]) -> dict[str, Editions]:
        names = list(dict.fromkeys(stores))
        heads = await self._db.get_many([Head.key.id(store) for store in names], consistent=True)
        return {store: head.editions for store, head in zip(names, heads, strict=True) if head is not None}

    async def rows(self, keys: Sequence[PriceKey]) -> list[PriceRow | None]:
        return await self._db.get_many([key.row for key in keys], consistent=True)

    async def past(
        self, key: PriceKey, since: datetime, until: datetime, *, without: int | Missing = MISSING
    ) -> dict[datetime, Value]:
        """Return past values that may have counted between two instants: the latest ones, up to one that had no end by itself.

        With `without`, up to one that is not of that settled edition, so that it has what would count without it, too.
        """
        found: dict[datetime, Value] = {}
        bound = until
        while True:
            page = await self._db.query(_past_until(key, bound), first=PAST_AT_A_TIME, consistent=True)
            for past in page.items:
                found[past.from_at] = past.value
                value = past.value
                if past.from_at <= since and value.until is MISSING and value.ended_at is MISSING and _is_other(value, without):
                    return found
            if not page.has_next:
                return found
            bound = page.items[-1].from_at - MICROSECOND


def _is_other(value: Value, edition: int | Missing) -> bool:
    return edition is MISSING or value.settled != edition


def _past_until(key: PriceKey, until: datetime) -> Any:
    if key.combination is None:
        past = PastPrice.key(key.store).under(key.channel).under(key.type).under(key.product).until(until)
        return past.newest_first()
    swapped = PastCombinationPrice.key(key.store).under(key.channel).under(key.type).under(key.product).under(key.combination)
    return swapped.until(until).newest_first()


def candidates_of(key: PriceKey) -> list[PriceKey]:
    """Return the key, and that of ALL, whose price counts where a channel has none of its own."""
    if key.channel == ALL:
        return [key]
    return [key, PriceKey(key.store, ALL, key.type, key.product, key.combination)]
