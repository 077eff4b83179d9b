"""Reads prices: pages of a store and of a product, and the price of a product at an instant.

A reader takes an instant T, then the head of the store, then rows, and cursors carry T. Whatever is sealed, moved, cancelled or
settled meanwhile, all pages of a traversal show the prices that count at T.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from operator import attrgetter
from typing import Any

from pricebook.editions.cursors import Cursors, CursorSecret
from pricebook.editions.evaluate import Counting
from pricebook.editions.judges import heads_for, judged
from pricebook.editions.nodes import price_node
from pricebook.editions.pages import PageArgs, PriceNode, PricePage, UpcomingPage
from pricebook.editions.point_in_time import PointInTime
from pricebook.editions.ranges import ProductRange, RowRange, StoreRange
from pricebook.editions.storage import Storage
from pricebook.editions.timing import Now, Timing, whole_milliseconds
from pricebook.editions.transitions import version_of
from pricebook.editions.traversal import Traversal
from pricebook.editions.upcoming import Upcoming
from pricebook.editions.walk import Found, Walk
from pricebook.errors import NotFound
from pricebook.model import ALL, Head, PriceKey, PriceRow
from tickler.table import MISSING, OpenTable


class Prices:
    """What readers of prices use."""

    def __init__(self, db: OpenTable, now: Now, timing: Timing | None = None) -> None:
        self._db = db
        self._now: Now = lambda: whole_milliseconds(now())
        self._timing = timing or Timing()
        self._storage = Storage(db)
        self._secret = CursorSecret(db)
        self._points = PointInTime(db, self._now, self._timing)
        self._needed_heads = False  # of the last page of a product, and probably of the next one, too
        self._upcoming = Upcoming(db, self._now, self._timing, self._secret)

    async def of_store(
        self, store: str, *, channel: str = ALL, type: str = "Base", product_prefix: str = "", page: PageArgs
    ) -> PricePage:
        """Return prices of a store by product: those of the channel, and of ALL for products that have none in it."""
        own = StoreRange(store, channel, type, product_prefix)
        walk = await self._begin(page, ("store", *own), own)
        head = await self._head(self._db, store)
        if any(edition.counts_at(walk.at) for edition in head.editions.values()) and await self._storage.has_snapshots():
            async with self._storage.one_state() as reads:
                return await self._store_page(reads, await self._head(reads, store), own, walk, in_one_state=True)
        return await self._store_page(self._db, head, own, walk, in_one_state=False)

    async def of_product(self, product: str, *, channel: str = ALL, type: str = "Base", page: PageArgs) -> PricePage:
        """Return prices of a product by store: those of the channel, and of ALL for stores that have none in it."""
        own = ProductRange(product, channel, type)
        walk = await self._begin(page, ("product", *own), own)
        if not (self._needed_heads and await self._storage.has_snapshots()):
            try:
                return await self._product_page(self._db, own, walk, in_one_state=False)
            except _HeadsNeeded:
                pass
        async with self._storage.one_state() as reads:
            return await self._product_page(reads, own, walk, in_one_state=True)

    async def as_of(
        self,
        store: str,
        product: str,
        at: datetime,
        *,
        channel: str = ALL,
        type: str = "Base",
        combination: str | None = None,
    ) -> PriceNode | None:
        """Return the price of a product at an instant, also a past or a coming one; None if it has none."""
        key = PriceKey(store, channel, type, product, combination)
        return (await self._points.prices([key], whole_milliseconds(at), of_known_stores=True))[0]

    async def as_of_many(self, keys: Sequence[PriceKey], at: datetime) -> list[PriceNode | None]:
        """Return the price of each key at an instant. Rows and heads are read in one batch each."""
        return await self._points.prices(keys, whole_milliseconds(at))

    async def upcoming(self, store: str, *, page: PageArgs) -> UpcomingPage:
        """Return the changes of a store that are still to come, by instant, edition and product."""
        return await self._upcoming.of_store(store, page)

    async def changes_on(self, day: date, *, page: PageArgs) -> UpcomingPage:
        """Return the changes of a day in all stores, each in its own zone, by store and product, until they are settled."""
        return await self._upcoming.of_day(day, page)

    async def version(self, store: str) -> str:
        """Return what stays the same as long as all prices of a store do: a till that knows it need not ask again."""
        return version_of(await self._head(self._db, store), self._now())

    async def _begin(self, page: PageArgs, query: tuple[str, ...], range: RowRange) -> Traversal:
        now = self._now()
        return Traversal.begin(page, Cursors(await self._secret.get(), query), range.coordinates, now, self._timing)

    async def _store_page(self, reads: Any, head: Head, own: StoreRange, walk: Traversal, *, in_one_state: bool) -> PricePage:
        """`reads` is a snapshot, or the table."""
        heads = {own.store: head.editions}

        async def judge(rows: Sequence[PriceRow], at: datetime) -> list[Counting | None]:
            return await judged(rows, heads, at, None if in_one_state else reads)

        is_fresh = head.sealed_at is not MISSING and self._now() - head.sealed_at < self._timing.fresh
        ranges = [own._replace(channel=channel) for channel in (own.channel, ALL) if channel in head.channels]
        return await _page(Walk(reads, walk.at, walk.backwards, judge, is_fresh), list(dict.fromkeys(ranges)), walk)

    async def _product_page(self, reads: Any, own: ProductRange, walk: Traversal, *, in_one_state: bool) -> PricePage:
        async def judge(rows: Sequence[PriceRow], at: datetime) -> list[Counting | None]:
            heads = await heads_for(rows, at, reads)
            self._needed_heads = bool(heads)
            if heads and not in_one_state and await self._storage.has_snapshots():
                raise _HeadsNeeded
            return await judged(rows, heads, at, None if in_one_state else reads)

        ranges: list[RowRange] = [own] if own.channel == ALL else [own, own._replace(channel=ALL)]
        return await _page(Walk(reads, walk.at, walk.backwards, judge), ranges, walk)

    async def _head(self, reads: Any, store: str) -> Head:
        head: Head | None = await reads.get(Head.key.id(store), consistent=True)
        if head is None:
            raise NotFound("store")
        return head


class _HeadsNeeded(Exception):
    """A page of a product has values that are not settled, so that rows and heads have to be of one state."""


async def _page(rows: Walk, ranges: Sequence[RowRange], walk: Traversal) -> PricePage:
    found: list[Found] = []
    if ranges and not walk.is_empty:
        found = await rows.find(ranges, walk.window, walk.wanted)
    return walk.page(found, attrgetter("position"), _node)


def _node(found: Found) -> PriceNode:
    node = price_node(found.row, found.counting)
    assert node is not None, "walks leave out rows without a price"
    return node
