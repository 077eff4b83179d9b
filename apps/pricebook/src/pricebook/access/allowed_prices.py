"""The prices that a caller may read: other stores do not exist for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from pricebook.access.caller import Caller
from pricebook.access.filtered_pages import filtered_page
from pricebook.access.price_reader import PriceReader
from pricebook.editions.pages import ChangeNode, PageArgs, PriceNode, PricePage, UpcomingPage
from pricebook.model import PriceKey


class AllowedPrices:
    """Reads prices for a caller. Lists across stores leave out those of others; their pages are full nevertheless."""

    def __init__(self, prices: PriceReader, caller: Caller) -> None:
        self._prices = prices
        self._caller = caller

    async def of_store(
        self, store: str, *, channel: str = "ALL", type: str = "Base", product_prefix: str = "", page: PageArgs
    ) -> PricePage:
        self._check(store)
        return await self._prices.of_store(store, channel=channel, type=type, product_prefix=product_prefix, page=page)

    async def of_product(self, product: str, *, channel: str = "ALL", type: str = "Base", page: PageArgs) -> PricePage:
        self._caller.require("read")

        async def read(args: PageArgs) -> PricePage:
            return await self._prices.of_product(product, channel=channel, type=type, page=args)

        return await read(page) if self._caller.has_all_stores else await filtered_page(read, page, self._may_see)

    async def as_of(
        self,
        store: str,
        product: str,
        at: datetime,
        *,
        channel: str = "ALL",
        type: str = "Base",
        combination: str | None = None,
    ) -> PriceNode | None:
        self._check(store)
        return await self._prices.as_of(store, product, at, channel=channel, type=type, combination=combination)

    async def as_of_many(self, keys: Sequence[PriceKey], at: datetime) -> list[PriceNode | None]:
        for store in {key.store for key in keys}:
            self._check(store)
        return await self._prices.as_of_many(keys, at)

    async def upcoming(self, store: str, *, page: PageArgs) -> UpcomingPage:
        self._check(store)
        return await self._prices.upcoming(store, page=page)

    async def changes_on(self, day: date, *, page: PageArgs) -> UpcomingPage:
        self._caller.require("read")

        async def read(args: PageArgs) -> UpcomingPage:
            return await self._prices.changes_on(day, page=args)

        return await read(page) if self._caller.has_all_stores else await filtered_page(read, page, self._may_see)

    async def version(self, store: str) -> str:
        self._check(store)
        return await self._prices.version(store)

    def _check(self, store: str) -> None:
        self._caller.require("read")
        self._caller.require_store(store)

    def _may_see(self, node: PriceNode | ChangeNode) -> bool:
        return self._caller.may_see(node.store)
