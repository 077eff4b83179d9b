"""What the resolvers of one request share: prices that its caller may read, and the batches of nested reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pricebook.access.allowed_prices import AllowedPrices
from pricebook.access.caller import Caller
from pricebook.access.price_reader import PriceReader
from pricebook.editions.pages import PriceNode
from pricebook.graphql.batch import Batch
from pricebook.model import PriceKey

AsOfKey = tuple[PriceKey, datetime]


class RequestContext:
    """One request. `now` is its instant."""

    def __init__(self, prices: PriceReader, caller: Caller, now: datetime) -> None:
        self.prices = AllowedPrices(prices, caller)
        self.caller = caller
        self.now = now
        self.as_of: Batch[AsOfKey, PriceNode | None] = Batch(self._read_as_of)

    async def _read_as_of(self, keys: Sequence[AsOfKey]) -> list[PriceNode | None]:
        """Read prices at instants: one read for each instant, which are as many as the query names."""
        found: dict[AsOfKey, PriceNode | None] = {}
        for at in {at for _, at in keys}:
            prices = [key for key, its in keys if its == at]
            found.update(zip(((key, at) for key in prices), await self.prices.as_of_many(prices, at), strict=True))
        return [found[key] for key in keys]
