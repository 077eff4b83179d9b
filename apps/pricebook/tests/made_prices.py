"""Prices made from the arguments of each read: the same arguments give the same prices, and some of them are broken."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from pricebook.editions.pages import ChangeNode, Edge, NodePage, PageArgs, PriceNode, PricePage, UpcomingPage
from pricebook.errors import InvalidCursor, NotFound
from pricebook.model import PriceKey
from pricebook.money import Money

AT = datetime(2026, 3, 15, 7, 30, tzinfo=UTC)

BROKEN_TEXTS: list[Any] = [None, 7, True, ValueError("a value that is an error"), b"bytes", ["list"]]
BROKEN_INSTANTS: list[Any] = [None, datetime(2026, 3, 15), "2026-03-15", 7]
BROKEN_AMOUNTS: list[Any] = [None, 1999, "19.99", KeyError("no amount")]


class MadePrices:
    """A price reader. `broken` is how likely a value is of a wrong kind; `calls` counts the reads."""

    def __init__(self, broken: float = 0.0, nodes: int | None = None) -> None:
        self.broken = broken
        self.nodes = nodes
        self.calls = 0

    async def of_store(
        self, store: str, *, channel: str = "ALL", type: str = "Base", product_prefix: str = "", page: PageArgs
    ) -> PricePage:
        drawn = self._begin(page, store, channel, type, product_prefix)
        return self._page(drawn, page, lambda n: self._price(drawn, store, channel, type, f"{product_prefix}P{n}"))

    async def of_product(self, product: str, *, channel: str = "ALL", type: str = "Base", page: PageArgs) -> PricePage:
        drawn = self._begin(page, product, channel, type)
        return self._page(drawn, page, lambda n: self._price(drawn, f"S{n}", channel, type, product))

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
        drawn = self._begin(PageArgs(), store, product, at, channel, type, combination)
        return self._price(drawn, store, channel, type, product) if drawn.random() < 0.7 else None

    async def as_of_many(self, keys: Sequence[PriceKey], at: datetime) -> list[PriceNode | None]:
        self.calls += 1
        if self.broken and at.year == 1999:
            raise NotFound("price")
        found = []
        for key in keys:
            drawn = random.Random(repr((key, at)))
            price = self._price(drawn, key.store, key.channel, key.type, key.product)
            found.append(price if drawn.random() < 0.7 else None)
        return found

    async def upcoming(self, store: str, *, page: PageArgs) -> UpcomingPage:
        drawn = self._begin(page, store)
        return self._page(drawn, page, lambda n: self._change(drawn, store, f"P{n}"))

    async def changes_on(self, day: date, *, page: PageArgs) -> UpcomingPage:
        drawn = self._begin(page, day)
        return self._page(drawn, page, lambda n: self._change(drawn, f"S{n}", f"P{n}"))

    async def version(self, store: str) -> str:
        return str(self._begin(PageArgs(), store, "version").random())

    def _begin(self, page: PageArgs, *arguments: object) -> random.Random:
        self.calls += 1
        page.check()
        if "forged" in (page.after, page.before):
            raise InvalidCursor("the cursor is not one of ours: begin with the first page")
        if "nobody" in arguments:
            raise NotFound("store")
        if "down" in arguments:
            raise RuntimeError("a secret of the machine")
        return random.Random(repr((page, arguments)))

    def _page(self, drawn: random.Random, page: PageArgs, make: Callable[[int], Any]) -> NodePage[Any]:
        number = min(page.size, drawn.choice([0, 1, 1, 2, 3, 5]) if self.nodes is None else self.nodes)
        edges: Any = [Edge(make(n), (str(n),), lambda where: f"after {where[0]}") for n in range(number)]
        if drawn.random() < self.broken:
            edges = drawn.choice([None, tuple(edges), [*edges, None], 5])
        return NodePage(edges, drawn.random() < 0.5, drawn.random() < 0.5, AT)

    def _price(self, drawn: random.Random, store: str, channel: str, type: str, product: str) -> PriceNode:
        until, lowest = self._instant(drawn), self._money(drawn)
        return PriceNode(
            store,  # a batch of keys with a broken store fails as a whole, and there may be several ways to make batches
            self._text(drawn, channel),
            self._text(drawn, type),
            self._text(drawn, product),
            self._money(drawn),
            self._instant(drawn),
            until if drawn.random() < 0.3 else None,
            lowest if drawn.random() < 0.3 else None,
            "MENU1" if type == "Swap" else None,
        )

    def _change(self, drawn: random.Random, store: str, product: str) -> ChangeNode:
        edition: Any = drawn.choice([0, 7, 2**31 - 1])
        if drawn.random() < self.broken:
            edition = drawn.choice([2**31, True, 3.0, "7", None])
        return ChangeNode(
            store,
            "ALL",
            "Base",
            self._text(drawn, product),
            self._money(drawn) if drawn.random() < 0.8 else None,
            self._instant(drawn),
            edition,
        )

    def _text(self, drawn: random.Random, text: str) -> Any:
        if drawn.random() < self.broken:
            return drawn.choice([*BROKEN_TEXTS, 'a "quoted" ünïcode \u2028 text'])
        return text

    def _instant(self, drawn: random.Random) -> Any:
        at = AT + timedelta(milliseconds=drawn.randrange(10**9))
        if drawn.random() < self.broken:
            return drawn.choice([*BROKEN_INSTANTS, at.astimezone(timezone(timedelta(hours=5, minutes=30)))])
        return at

    def _money(self, drawn: random.Random) -> Any:
        if drawn.random() < self.broken:
            return drawn.choice(BROKEN_AMOUNTS)
        return Money(drawn.choice([0, 1999, -5, 10**15]), drawn.choice(["EUR", "JPY"]))
