"""What readers of pricebook ask for: pages of 64 of a store, of a product and of upcoming changes, over GraphQL."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import cycle
from typing import Literal

import msgspec

from http_load import post
from pricebook.app import Pricebook
from pricebook.editions.staging import Staged
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import Head
from pricebook.money import Money
from pricebook.web.app import create_app
from pricebook_store import size

Kind = Literal["store", "product", "upcoming"]

PAGE = 64
OFTEN: tuple[Kind, ...] = ("store", "store", "product", "store")
# The seed's p95 is that of base prices of stores, and its p99 that of "complex product queries": those are more frequent here.
MIX: tuple[Kind, ...] = (*OFTEN, *OFTEN, "upcoming", "store", "product", "store", *OFTEN, *OFTEN)
TOKENS = 64  # tills: each may ask 50 times a second
MADE = 2_000  # different requests of a kind
UPCOMING = 20  # prices that change in a store

CONNECTION = """{
    edges { cursor node { store channel product price { minor currency } effectiveDate until } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }"""
QUERIES: dict[Kind, str] = {
    "store": f"query($of: ID!, $first: Int) {{ basePrices(store: $of, first: $first) {CONNECTION} }}",
    "product": f"query($of: ID!, $first: Int) {{ basePricesByProduct(product: $of, first: $first) {CONNECTION} }}",
    "upcoming": f"query($of: ID!, $first: Int) {{ upcomingPriceChanges(store: $of, first: $first) {CONNECTION} }}",
}


async def issue_tokens(book: Pricebook) -> list[str]:
    tokens = create_app(book).tokens
    return [(await tokens.issue(f"till {number}", ["read"]))[1] for number in range(TOKENS)]


async def let_prices_come(book: Pricebook, stores: Sequence[str]) -> None:
    """Give stores upcoming changes, for tomorrow."""
    catalogue, tomorrow = MadeCatalogue(1, size().products), book.now() + timedelta(days=1)
    for store in stores:
        head = await book.db.get(Head.key.id(store))
        if head is None or head.editions:
            continue
        number = await book.switch.open_edition(store, tomorrow)
        amounts = ((catalogue.product(n), Money(100 + n, "EUR")) for n in range(min(UPCOMING, size().products)))
        await book.switch.stage(store, number, [Staged("ALL", "Base", product, amount) for product, amount in amounts])
        await book.switch.seal(store, number)


def with_upcoming(stores: int) -> list[str]:
    """Return the stores that have upcoming changes, spread evenly."""
    number = min(size().pending, stores)
    catalogue = MadeCatalogue(stores, size().products)
    return [catalogue.store(n * stores // number) for n in range(number)]


def requests(kind: Kind, stores: int, tokens: Sequence[str]) -> Iterator[bytes]:
    """Yield requests for pages of random stores or products without end."""
    rng = random.Random(kind)
    catalogue = MadeCatalogue(stores, size().products)
    coming = with_upcoming(stores)
    choices: dict[Kind, Callable[[], str]] = {
        "store": lambda: catalogue.store(rng.randrange(stores)),
        "product": lambda: catalogue.product(rng.randrange(size().products)),
        "upcoming": lambda: rng.choice(coming),
    }
    choose = choices[kind]
    made = []
    for number in range(MADE):
        body = msgspec.json.encode({"query": QUERIES[kind], "variables": {"of": choose(), "first": PAGE}})
        made.append(post("/graphql", body, tokens[number % len(tokens)]))
    return cycle(made)


def mixed(stores: int, tokens: Sequence[str]) -> Iterator[bytes]:
    """Yield requests of all kinds in the proportions of MIX."""
    by_kind = {kind: requests(kind, stores, tokens) for kind in QUERIES}
    return (next(by_kind[kind]) for kind in cycle(MIX))
