"""Types of the schema. Their fields read the attributes of prices and changes as the table has them, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

import strawberry

from pricebook.editions.pages import ChangeNode, PriceNode
from pricebook.graphql.batch import BATCHED, BatchedField
from pricebook.graphql.context import Info, RequestContext
from pricebook.graphql.scalars import Instant, MinorUnits
from pricebook.model import PriceKey

AsOf = tuple[PriceKey, datetime]


def _as_of_key(node: PriceNode | ChangeNode, context: RequestContext, at: datetime | None = None) -> AsOf:
    return PriceKey(node.store, node.channel, node.type, node.product, node.combination), at or context.now


async def _read_as_of(context: RequestContext, keys: Sequence[AsOf]) -> list[PriceNode | Exception | None]:
    """Read prices at instants: one read for each instant, which are as many as the query names, and fail one by one."""
    found: dict[AsOf, PriceNode | Exception | None] = {}
    for at in dict.fromkeys(at for _, at in keys):
        prices = [key for key, its in keys if its == at]
        results: Sequence[PriceNode | Exception | None]
        try:
            results = await context.prices.as_of_many(prices, at)
        except Exception as error:
            results = [error] * len(prices)
        found.update(zip(((key, at) for key in prices), results, strict=True))
    return [found[key] for key in keys]


_AS_OF = BatchedField(_as_of_key, _read_as_of)


async def _as_of(root: strawberry.Parent[PriceNode], info: Info, at: Instant | None = None) -> PriceRecord | None:
    return cast(
        "PriceRecord | None", await info.context.nested(_AS_OF, root, at=at)
    )  # a type only says which attributes are read


def as_of_field() -> PriceRecord | None:
    """Return the field of a node that has the price of the same product and channel at an instant."""
    field: PriceRecord | None = strawberry.field(
        resolver=_as_of,
        metadata={BATCHED: _AS_OF},
        description="The price of the same product and channel at an instant; by default now.",
    )
    return field


@strawberry.type(description="An amount of money.")
class Money:
    minor: MinorUnits = strawberry.field(description="Such as 1999 for 19.99 EUR.")
    currency: str = strawberry.field(description="An ISO 4217 code.")


@strawberry.type(description="What a price is of.")
class PriceSubject:
    store: strawberry.ID
    channel: str
    type: str = strawberry.field(name="recordType", description="Such as Base or Swap.")
    product: strawberry.ID
    combination: str | None = strawberry.field(description="The combination that a Swap is of.")


@strawberry.type(description="A base price that counts.")
class BasePriceRecord:
    store: strawberry.ID
    channel: str = strawberry.field(description="The channel that the price was set for: ALL, unless a channel has its own.")
    product: strawberry.ID
    amount: Money = strawberry.field(name="price")
    effective_from: Instant = strawberry.field(name="effectiveDate", description="The instant from which it counts.")
    until: Instant | None = strawberry.field(description="The instant at which the former price counts again.")
    lowest_30_days: Money | None = strawberry.field(
        name="lowest30Days", description="The lowest price of the 30 days before it was reduced."
    )
    as_of: PriceRecord | None = as_of_field()


@strawberry.type(description="A price of any type that counts.")
class PriceRecord(BasePriceRecord):
    type: str = strawberry.field(name="recordType", description="Such as Base or Swap.")
    combination: str | None = strawberry.field(description="The combination that a Swap is of.")


@strawberry.type(description="A price that will count from an instant on.")
class PriceChange:
    store: strawberry.ID
    channel: str
    type: str = strawberry.field(name="recordType", description="Such as Base or Swap.")
    product: strawberry.ID
    combination: str | None = strawberry.field(description="The combination that a Swap is of.")
    amount: Money | None = strawberry.field(name="price", description="None: the product has no price from then on.")
    effective_from: Instant = strawberry.field(name="effectiveDate", description="The instant from which it counts.")
    until: Instant | None = strawberry.field(description="The instant at which the former price counts again.")
    lowest_30_days: Money | None = strawberry.field(
        name="lowest30Days", description="The lowest price of the 30 days before it is reduced."
    )
    edition: int = strawberry.field(description="The number of the store's edition that it is part of.")
    as_of: PriceRecord | None = as_of_field()
