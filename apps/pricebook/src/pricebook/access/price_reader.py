"""The reads of prices, as the query API and pages use them; `pricebook.editions.reading.Prices` implements them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Protocol

from pricebook.editions.pages import PageArgs, PriceNode, PricePage, UpcomingPage
from pricebook.model import PriceKey


class PriceReader(Protocol):
    """Pages are evaluated at one instant, which their cursors carry."""

    async def of_store(
        self, store: str, *, channel: str = "ALL", type: str = "Base", product_prefix: str = "", page: PageArgs
    ) -> PricePage: ...

    async def of_product(self, product: str, *, channel: str = "ALL", type: str = "Base", page: PageArgs) -> PricePage: ...

    async def as_of(
        self,
        store: str,
        product: str,
        at: datetime,
        *,
        channel: str = "ALL",
        type: str = "Base",
        combination: str | None = None,
    ) -> PriceNode | None: ...

    async def as_of_many(self, keys: Sequence[PriceKey], at: datetime) -> list[PriceNode | None]: ...

    async def upcoming(self, store: str, *, page: PageArgs) -> UpcomingPage: ...

    async def changes_on(self, day: date, *, page: PageArgs) -> UpcomingPage: ...

    async def version(self, store: str) -> str: ...
