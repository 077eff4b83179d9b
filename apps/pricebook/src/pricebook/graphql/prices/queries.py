"""The queries of prices, as the seed names them."""

from __future__ import annotations

from typing import cast

import strawberry

from pricebook.editions.pages import PageArgs
from pricebook.graphql.connection import Connection, connection_of
from pricebook.graphql.context import Info
from pricebook.graphql.prices.types import BasePriceRecord, PriceChange, PriceRecord
from pricebook.graphql.scalars import Day, Instant
from pricebook.graphql.versions import VERSIONED_BY
from pricebook.model import ALL

ID = strawberry.ID
BASE = "Base"
_OF_ONE_STORE = {VERSIONED_BY: "store"}


async def _base_prices(
    info: Info,
    store: ID,
    channel: str = ALL,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[BasePriceRecord] | None:
    page = PageArgs(first, after, last, before)
    return connection_of(BasePriceRecord, await info.context.prices.of_store(store, channel=channel, type=BASE, page=page))


async def _base_prices_by_product(
    info: Info,
    product: ID,
    channel: str = ALL,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[BasePriceRecord] | None:
    page = PageArgs(first, after, last, before)
    return connection_of(BasePriceRecord, await info.context.prices.of_product(product, channel=channel, type=BASE, page=page))


async def _prices(
    info: Info,
    store: ID,
    type: str = BASE,
    product_prefix: str = "",
    channel: str = ALL,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[PriceRecord] | None:
    page = PageArgs(first, after, last, before)
    prices = info.context.prices
    found = await prices.of_store(store, channel=channel, type=type, product_prefix=product_prefix, page=page)
    return connection_of(PriceRecord, found)


async def _price_as_of(
    info: Info,
    store: ID,
    product: ID,
    at: Instant,
    channel: str = ALL,
    type: str = BASE,
    combination: str | None = None,
) -> PriceRecord | None:
    found = await info.context.prices.as_of(store, product, at, channel=channel, type=type, combination=combination)
    return cast("PriceRecord | None", found)


async def _upcoming_price_changes(
    info: Info,
    store: ID,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[PriceChange] | None:
    page = PageArgs(first, after, last, before)
    return connection_of(PriceChange, await info.context.prices.upcoming(store, page=page))


async def _changes_on(
    info: Info,
    date: Day,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[PriceChange] | None:
    page = PageArgs(first, after, last, before)
    return connection_of(PriceChange, await info.context.prices.changes_on(date, page=page))


@strawberry.type
class PriceQueries:
    base_prices: Connection[BasePriceRecord] | None = strawberry.field(
        resolver=_base_prices,
        metadata=_OF_ONE_STORE,
        description="The base prices of a store, by product: the channel's own, else those of ALL.",
    )
    base_prices_by_product: Connection[BasePriceRecord] | None = strawberry.field(
        resolver=_base_prices_by_product, description="The base prices of a product in all stores, by store."
    )
    prices: Connection[PriceRecord] | None = strawberry.field(
        resolver=_prices, metadata=_OF_ONE_STORE, description="The prices of a type in a store, by product."
    )
    price_as_of: PriceRecord | None = strawberry.field(
        resolver=_price_as_of, description="The price of a product in a store at an instant, past or future."
    )
    upcoming_price_changes: Connection[PriceChange] | None = strawberry.field(
        resolver=_upcoming_price_changes,
        description="What is still to count in a store, the earliest first. That a price for a time ends is told by `until` of "
        "the price or change, and is not a change of its own.",
    )
    changes_on: Connection[PriceChange] | None = strawberry.field(
        resolver=_changes_on, description="What counts from a date on in all stores, each in its own zone, by store."
    )
