"""*Products*: find one, and see what it costs in all stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from litestar import Response, get

from pricebook.editions.pages import PageArgs, PriceNode
from pricebook.model import ALL, PRICE_TYPES, PriceKey
from pricebook.money import Money
from pricebook.pages.environment import in_path
from pricebook.pages.rendering import page
from pricebook.pages.requests import asked, caller_of, page_args, page_links, part, prices_of
from pricebook.pages.steps import next_steps
from pricebook.web.context import HttpRequest, book_of

LISTED = 100
PRICES = 50
AHEAD = timedelta(days=400)
MAX_BARS = 12


class Level(NamedTuple):
    """Stores with the same price, and their share of the most that there are of any price."""

    amount: Money
    number: int
    share: float


@get("/products")
async def products(request: HttpRequest) -> Response[str]:
    """List the products of one store: there is no list of all of them."""
    book, caller, prefix = book_of(request), caller_of(request), asked(request, "q")
    heads = (await book.stores.page(caller, PageArgs(first=1))).nodes
    store = heads[0].store if heads else None
    nodes: Sequence[PriceNode] = ()
    if store is not None:
        nodes = (await prices_of(request).of_store(store, product_prefix=prefix, page=PageArgs(first=LISTED))).nodes
    return await page(request, "products", "products", q=prefix, store=store, nodes=nodes, listed=LISTED)


@get("/products/{product:str}")
async def product(request: HttpRequest) -> Response[str]:
    name, channel, type = part(request, "product"), asked(request, "channel") or ALL, asked(request, "type")
    type = type if type in PRICE_TYPES else "Base"
    found = await prices_of(request).of_product(name, channel=channel, type=type, page=page_args(request, PRICES))
    keys = [PriceKey(node.store, channel, type, name, node.combination) for node in found.nodes]
    now = book_of(request).now()
    spans = await book_of(request).timelines.spans(caller_of(request), keys, now, now + AHEAD) if keys else {}
    following = next_steps(spans, now)
    path = f"/products/{in_path(name)}"
    asked_for = {"channel": "" if channel == ALL else channel, "type": "" if type == "Base" else type}
    return await page(
        request,
        "product",
        "products",
        product=name,
        channel=channel,
        type=type,
        path=path,
        lines=[(node, following.get(key)) for node, key in zip(found.nodes, keys, strict=True)],
        levels=levels_of(found.nodes),
        links=page_links(found, path, **asked_for),
    )


HANDLERS = [products, product]


def levels_of(nodes: Sequence[PriceNode]) -> list[Level]:
    """Return how many stores have which price, by price; nothing if there are too many to draw."""
    counts = Counter(node.amount for node in nodes)
    if not 1 < len(counts) <= MAX_BARS:
        return []
    most = max(counts.values())
    ordered = sorted(counts.items(), key=lambda each: (each[0].currency, each[0].minor))
    return [Level(amount, count, round(100 * count / most, 1)) for amount, count in ordered]
