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
    """One request. `now` is its instant, and `request` its id, for the audit."""

    def __init__(self, prices: PriceReader, caller: Caller, now: datetime, *, request: str = "") -> None:
        self.prices = AllowedPrices(prices, caller)
        self.caller = caller
        self.now = now
        self.request = request
        self.as_of: Batch[AsOfKey, PriceNode | None] = Batch(self._read_as_of)

    async def _read_as_of(self, keys: Sequence[AsOfKey]) -> list[PriceNode | Exception | None]:
        """Read prices at instants: one read for each instant, which are as many as the query names, and fail one by one."""
        found: dict[AsOfKey, PriceNode | Exception | None] = {}
        for at in dict.fromkeys(at for _, at in keys):
            prices = [key for key, its in keys if its == at]
            results: Sequence[PriceNode | Exception | None]
            try:
                results = await self.prices.as_of_many(prices, at)
            except Exception as error:
                results = [error] * len(prices)
            found.update(zip(((key, at) for key in prices), results, strict=True))
        return [found[key] for key in keys]
