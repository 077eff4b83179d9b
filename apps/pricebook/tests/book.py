"""A price book for tests: what happens in it, in few words. Prices are whole minor units of EUR."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta

from pricebook.editions.outlook import Outlooks
from pricebook.editions.pages import PageArgs, PriceNode
from pricebook.editions.point_in_time import PointInTime
from pricebook.editions.reading import Prices
from pricebook.editions.staging import Staged
from pricebook.editions.switch import Switch
from pricebook.editions.timing import Timing
from pricebook.model import Head, PriceKey, PriceRow, pricebook
from pricebook.money import Money
from tickler import ManualClock
from tickler.table import OpenTable

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def table_url(url: str) -> str:
    """Return the URL of a table for that of a store: tables on DynamoDB have no shards."""
    return url.replace("&shards=4", "")


def euros(minor: int | None) -> Money | None:
    return None if minor is None else Money(minor, "EUR")


def staged(
    prices: Mapping[str, int | None], channel: str = "ALL", *, type: str = "Base", until: datetime | None = None
) -> list[Staged]:
    """Return the prices of products. A product of type Swap is written `COMBO1/DEFAULT`."""
    names = {product: product.split("/") for product in prices}
    return [
        Staged(channel, type, names[product][0], euros(minor), until, names[product][1] if type == "Swap" else None)
        for product, minor in prices.items()
    ]


class Book:
    def __init__(self, db: OpenTable, clock: ManualClock, timing: Timing | None = None) -> None:
        self.db = db
        self.clock = clock
        self.timing = timing or Timing()
        self.switch = Switch(db, self.now, self.timing)
        self.prices = Prices(db, self.now, self.timing)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)

    def pass_(self, time: timedelta | None = None) -> None:
        """Let time pass, by default enough for what was sealed to count."""
        self.clock.advance((self.timing.margin if time is None else time).total_seconds())

    async def a_store(self, store: str = "1", prices: Mapping[str, int | None] | None = None, *, tz: str = "UTC") -> str:
        """Make a store with prices of its own, which count and are settled."""
        await self.switch.open_store(store, tz=tz)
        if prices:
            await self.change(prices, store=store)
            self.pass_()
            await self.switch.settle(store)
        return store

    async def stage(
        self,
        prices: Mapping[str, int | None],
        *,
        store: str = "1",
        at: datetime | date | None = None,
        channel: str = "ALL",
        type: str = "Base",
        until: datetime | None = None,
    ) -> int:
        """Open an edition and stage its prices. Returns its number."""
        number = await self.switch.open_edition(store, at)
        await self.switch.stage(store, number, staged(prices, channel, type=type, until=until))
        return number

    async def change(
        self,
        prices: Mapping[str, int | None],
        *,
        store: str = "1",
        at: datetime | date | None = None,
        channel: str = "ALL",
        type: str = "Base",
        until: datetime | None = None,
    ) -> int:
        """Seal an edition of prices. Returns its number."""
        number = await self.stage(prices, store=store, at=at, channel=channel, type=type, until=until)
        await self.switch.seal(store, number)
        return number

    async def lowest(self, new: Mapping[str, int], at: datetime) -> dict[str, Money]:
        """Return the lowest price of the 30 days before an instant of each product whose price is reduced then."""
        prices = {PriceKey("1", "ALL", "Base", product): Money(minor, "EUR") for product, minor in new.items()}
        outlooks = Outlooks(self.db, PointInTime(self.db, self.now, self.timing))
        found = await outlooks.lowest(await outlooks.read(await self.head(), list(prices)), prices, at)
        return {key.product: amount for key, amount in found.items()}

    async def nodes(self, store: str = "1", channel: str = "ALL", type: str = "Base", *, first: int = 64) -> list[PriceNode]:
        """Return all prices of a store, by a traversal in pages."""
        nodes: list[PriceNode] = []
        after: str | None = None
        while True:
            page = await self.prices.of_store(store, channel=channel, type=type, page=PageArgs(first=first, after=after))
            nodes += page.nodes
            if not page.has_next:
                return nodes
            after = page.end_cursor

    async def shown(self, store: str = "1", channel: str = "ALL", *, first: int = 64) -> dict[str, int]:
        return {node.product: node.amount.minor for node in await self.nodes(store, channel, first=first)}

    async def across(self, product: str, channel: str = "ALL") -> dict[str, int]:
        """Return what a product costs in all stores."""
        page = await self.prices.of_product(product, channel=channel, page=PageArgs(first=2_048))
        return {node.store: node.amount.minor for node in page.nodes}

    async def head(self, store: str = "1") -> Head:
        head = await self.db.get(Head.key.id(store))
        assert head is not None
        return head

    async def row(self, product: str, store: str = "1", channel: str = "ALL") -> PriceRow | None:
        return await self.db.get(PriceKey(store, channel, "Base", product).row)


@asynccontextmanager
async def open_book(url: str, clock: ManualClock, timing: Timing | None = None) -> AsyncIterator[Book]:
    async with pricebook.connect(table_url(url), clock=clock) as db:
        yield Book(db, clock, timing)
