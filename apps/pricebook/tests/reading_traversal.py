"""A reader that goes through the prices of a store page by page, and notices if they are of two versions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random

from pricebook.editions.pages import PageArgs
from pricebook.editions.reading import Prices

VERSION = 1_000_000  # prices of version 3 are 3,000,000 and the number of the product


def versioned(version: int, products: int) -> dict[str, int]:
    return {f"P{n:04}": version * VERSION + n for n in range(products)}


class FrozenClock:
    """A clock that goes on when it is told to: between two traversals."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._at = clock()

    def now(self) -> datetime:
        return self._at

    def go_on(self) -> None:
        self._at = self._clock()


class Traversals:
    """Reads one page at a time, forwards and backwards in turn, so that anything may happen in between."""

    def __init__(self, prices: Prices, store: str, products: int, *, page: int = 64, clock: FrozenClock | None = None) -> None:
        self._prices = prices
        self._store = store
        self._products = products
        self._page = page
        self._clock = clock
        self._random = Random(products)
        self._seen: dict[str, int] = {}
        self._cursor: str | None = None
        self._version = 0  # of the last traversal
        self.done = 0
        self.across = 0
        self.versions: set[int] = set()
        self._mixtures: dict[int, str] = {}

    @property
    def mixtures(self) -> list[str]:
        """What was wrong, a line for each traversal that was a mixture."""
        return list(self._mixtures.values())

    @property
    def _backwards(self) -> bool:
        return self.done % 2 == 1

    async def step(self) -> None:
        """Read the next page, or begin the next traversal."""
        if self._backwards:
            page = await self._prices.of_store(self._store, page=PageArgs(last=self._page, before=self._cursor))
            self._cursor = page.start_cursor if page.has_previous else None
        else:
            page = await self._prices.of_store(self._store, page=PageArgs(first=self._page, after=self._cursor))
            self._cursor = page.end_cursor if page.has_next else None
        self._seen |= {node.product: node.amount.minor for node in page.nodes}
        if self._cursor is None:
            self._finish()

    async def finish(self) -> None:
        """Go on to the end of the traversal."""
        await self.step()
        while self._cursor is not None:
            await self.step()

    async def look_across(self, products: int = 4) -> None:
        """Look up some products across stores at the instant of the traversal that is done. Then the clock goes on."""
        for _ in range(products):
            number = self._random.randrange(self._products)
            page = await self._prices.of_product(f"P{number:04}", page=PageArgs())
            found = [node.amount.minor for node in page.nodes]
            if found != [self._version * VERSION + number]:
                self._mixed(self.done - 1, f"product {number} is {found} among prices of version {self._version}")
            self.across += 1
        if self._clock is not None:
            self._clock.go_on()

    def _finish(self) -> None:
        versions = {minor // VERSION for minor in self._seen.values()}
        self.versions |= versions
        self._version = min(versions)
        if len(versions) != 1 or self._seen != versioned(min(versions), self._products):
            self._mixed(self.done, f"{len(self._seen)} prices of the versions {sorted(versions)}")
        self._seen = {}
        self.done += 1

    def _mixed(self, traversal: int, how: str) -> None:
        self._mixtures.setdefault(traversal, f"traversal {traversal}: {how}")
