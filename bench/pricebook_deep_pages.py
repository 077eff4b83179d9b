"""pricebook: page 1,000 of the stores of a product beside page 1, forward and backward, on SQLite and PostgreSQL."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext

from measure import Result
from pricebook.app import Settings, open_pricebook
from pricebook.editions.pages import Edge, PageArgs, PriceNode
from pricebook.editions.reading import Prices
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook_store import postgres_server, postgres_url, size, sqlite_url

FIRST = 8
DEEP = 1_000
LARGEST = 2_048
ROUNDS = 300
MOST = 1.2


async def deep_pages(say: Callable[[str], None]) -> list[Result]:
    results = []
    for store in ("SQLite", "PostgreSQL"):
        say(f"{store}: page {_deep():,} of {FIRST} stores of a product, and page 1")
        with postgres_server() if store == "PostgreSQL" else nullcontext() as server:
            url = await sqlite_url(size().stores) if server is None else await postgres_url(server)
            async with open_pricebook(Settings(store=url)) as book:
                results += await _compared(store, book.prices)
    return results


def _deep() -> int:
    return min(DEEP, size().stores // FIRST)


async def _compared(store: str, prices: Prices) -> list[Result]:
    product = MadeCatalogue().product(size().products // 2)
    edges: list[Edge[PriceNode]] = []
    has_next, after = True, None
    while has_next:
        page = await prices.of_product(product, page=PageArgs(first=LARGEST, after=after))
        edges += page.edges
        has_next, after = page.has_next, page.end_cursor
    before_deep = (_deep() - 1) * FIRST
    pairs = {
        "forward": (PageArgs(first=FIRST), PageArgs(first=FIRST, after=edges[before_deep - 1].cursor)),
        "backward": (PageArgs(last=FIRST), PageArgs(last=FIRST, before=edges[-before_deep].cursor)),
    }
    results = []
    for direction, (one, deep) in pairs.items():
        found = await prices.of_product(product, page=deep)
        assert len(found.edges) == FIRST
        first_s, deep_s = await _typical(prices, product, one, deep)
        results.append(
            Result(
                f"pricebook: {store}: page {_deep():,} {direction}",
                f"{deep_s * 1e6:,.0f} µs",
                f"{first_s * 1e6:,.0f} µs",
                f"page 1, first: {FIRST}",
                deep_s / first_s,
                MOST,
                at_most=True,
            )
        )
    return results


async def _typical(prices: Prices, product: str, *pages: PageArgs) -> list[float]:
    """Return the seconds that each page takes when nothing else gets in its way, read in turns: three of four take longer.

    They are not processor time, since PostgreSQL's is not that of this process.
    """
    seconds: list[list[float]] = [[] for _ in pages]
    for _ in range(ROUNDS):
        for page, its in zip(pages, seconds, strict=True):
            began = time.perf_counter()
            await prices.of_product(product, page=page)
            its.append(time.perf_counter() - began)
    return [statistics.quantiles(each, n=4)[0] for each in seconds]
