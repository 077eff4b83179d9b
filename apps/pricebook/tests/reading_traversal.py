"""A reader that goes through the prices of a store page by page, and notices if they are of two versions."""

from __future__ import annotations

from pricebook.editions.pages import PageArgs
from pricebook.editions.reading import Prices

VERSION = 1_000_000  # prices of version 3 are 3,000,000 and the number of the product


def versioned(version: int, products: int) -> dict[str, int]:
    return {f"P{n:04}": version * VERSION + n for n in range(products)}


class Traversals:
    """Reads one page at a time, forwards and backwards in turn, so that anything may happen in between."""

    def __init__(self, prices: Prices, store: str, products: int, *, page: int = 64) -> None:
        self._prices = prices
        self._store = store
        self._products = products
        self._page = page
        self._seen: dict[str, int] = {}
        self._cursor: str | None = None
        self.done = 0
        self.versions: set[int] = set()
        self.mixtures: list[str] = []

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

    def _finish(self) -> None:
        versions = {minor // VERSION for minor in self._seen.values()}
        self.versions |= versions
        if len(versions) != 1 or self._seen != versioned(min(versions), self._products):
            self.mixtures.append(f"traversal {self.done}: {len(self._seen)} prices of the versions {sorted(versions)}")
        self._seen = {}
        self.done += 1
