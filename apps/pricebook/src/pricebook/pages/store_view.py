"""What the page of a store shows: a page of its prices, the changes that are known, and a drawing of some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pricebook.editions.pages import PageArgs, PriceNode, PricePage
from pricebook.model import ALL, PRICE_TYPES, Head, PriceKey
from pricebook.pages.change_titles import titles_of
from pricebook.pages.clock import PageClock
from pricebook.pages.environment import in_path
from pricebook.pages.price_chart import NARROW, RANGE_NAMES, RANGES, WIDE, Lane, PriceChart, draw, fitting_range, window
from pricebook.pages.requests import PageLinks, asked, caller_of, page_args, page_links, prices_of, with_parameters
from pricebook.pages.steps import Step, StepGroup, grouped, next_steps, steps_of
from pricebook.timelines.spans import Span
from pricebook.web.context import HttpRequest, book_of

PRICES = 50  # on one page
MAX_UPCOMING = 200
MAX_DRAWN = 8
SEPARATOR = " / "  # between a product and its combination
DRAWN = 5  # if nobody has chosen
AHEAD = timedelta(days=400)  # how far changes are looked for

Spans = Mapping[PriceKey, Sequence[Span]]


class StoreQuery(Struct, frozen=True):
    """What the address of a store's page asks for."""

    store: str
    channel: str
    type: str
    prefix: str
    clock: Literal["store", "mine"]
    range: str
    shown: tuple[str, ...]

    @classmethod
    def read(cls, request: HttpRequest, store: str) -> StoreQuery:
        type, range = asked(request, "type"), asked(request, "range")
        return cls(
            store,
            asked(request, "channel") or ALL,
            type if type in PRICE_TYPES else "Base",
            asked(request, "product"),
            "mine" if asked(request, "clock") == "mine" else "store",
            range if range in RANGES else "",
            tuple(dict.fromkeys(request.query_params.getall("show", [])))[:MAX_DRAWN],
        )

    def path(self, **changes: Any) -> str:
        """Return the address of this page, with some of it changed."""
        return with_parameters(self._base, **replace(self, **changes)._parameters)

    def links(self, found: PricePage) -> PageLinks:
        return page_links(found, self._base, **self._parameters)

    @property
    def _base(self) -> str:
        return f"/stores/{in_path(self.store)}"

    @property
    def _parameters(self) -> dict[str, str | Sequence[str]]:
        return {
            "channel": "" if self.channel == ALL else self.channel,
            "type": "" if self.type == "Base" else self.type,
            "product": self.prefix,
            "clock": "" if self.clock == "store" else self.clock,
            "range": self.range,
            "show": self.shown,
        }

    def key(self, product: str) -> PriceKey:
        """Return the price that a name stands for: a product, or a product and its combination."""
        if self.type == "Base":
            return PriceKey(self.store, self.channel, self.type, product)
        name, _, combination = product.rpartition(SEPARATOR)
        return PriceKey(self.store, self.channel, self.type, name or product, combination or "-")


def name_of(key: PriceKey | PriceNode) -> str:
    """Return a product, with its combination if it has one."""
    return key.product if key.combination is None else f"{key.product}{SEPARATOR}{key.combination}"


class PriceLine(NamedTuple):
    """A price of the table, and what becomes of it."""

    name: str
    node: PriceNode
    next: Step | None
    is_drawn: bool


class StoreView(NamedTuple):
    page: PricePage
    lines: list[PriceLine]
    groups: list[StepGroup]
    has_more_changes: bool
    wide: PriceChart | None
    narrow: PriceChart | None
    left_out: int  # products that change and are not drawn
    range: str
    titles: Mapping[str, str]
    ranges: Sequence[tuple[str, str]] = tuple(RANGE_NAMES.items())


async def store_view(request: HttpRequest, query: StoreQuery, head: Head, clock: PageClock) -> StoreView:
    """Read what the page shows. However much the store changes, the number of reads stays the same."""
    prices, timelines = prices_of(request), book_of(request).timelines
    page = await prices.of_store(
        query.store,
        channel=query.channel,
        type=query.type,
        product_prefix=query.prefix,
        page=page_args(request, PRICES),
    )
    coming = await prices.upcoming(query.store, page=PageArgs(first=MAX_UPCOMING))
    ending = await timelines.ending(caller_of(request), head, clock.now, MAX_UPCOMING)
    upcoming = [PriceKey(each.store, each.channel, each.type, each.product, each.combination) for each in coming.nodes]
    changing = list(dict.fromkeys([*upcoming, *ending.keys]))
    listed = [query.key(name_of(node)) for node in page.nodes]
    chosen = [query.key(each) for each in query.shown if each.strip()]
    start, _ = window(clock.now, RANGES["30d"])
    keys = list(dict.fromkeys([*listed, *chosen, *changing, *(_seen_in(query, key) for key in changing)]))
    spans = await timelines.spans(caller_of(request), keys, start, clock.now + AHEAD)
    steps = [step for key in changing for step in steps_of(key, spans[key], clock.now)]
    candidates = list(dict.fromkeys(_seen_in(query, step.key) for step in sorted(steps, key=lambda each: (each.at, each.key))))
    of_this_view = [key for key in candidates if (key.channel, key.type) == (query.channel, query.type)]
    drawn = chosen or of_this_view[:DRAWN]
    wide, narrow, range = _charts(query, drawn, spans, clock)
    following = next_steps({key: spans[key] for key in listed}, clock.now)
    groups = grouped(steps)
    return StoreView(
        page,
        [PriceLine(name_of(node), node, following.get(key), key in drawn) for node, key in zip(page.nodes, listed, strict=True)],
        groups,
        coming.has_next or ending.has_more,
        wide,
        narrow,
        0 if chosen else len(of_this_view) - len(drawn),
        range,
        await titles_of(request, [head.editions[each.edition] for each in groups if each.edition in head.editions]),
    )


def _seen_in(query: StoreQuery, key: PriceKey) -> PriceKey:
    """Return a price as it is seen in the channel of the page: that of ALL counts where the channel has none."""
    return PriceKey(key.store, query.channel, key.type, key.product, key.combination) if key.channel == ALL else key


def _charts(
    query: StoreQuery, drawn: Sequence[PriceKey], spans: Spans, clock: PageClock
) -> tuple[PriceChart | None, PriceChart | None, str]:
    if not drawn:
        return None, None, query.range
    instants = [step.at for key in drawn for step in steps_of(key, spans[key], clock.now)]
    range = query.range or fitting_range(clock.now, instants)
    lanes = [Lane(name_of(key), spans[key]) for key in drawn]
    return draw(lanes, clock, RANGES[range], WIDE), draw(lanes, clock, RANGES[range], NARROW), range
