"""The stores in the schema."""

from __future__ import annotations

import strawberry

from pricebook.editions.pages import PageArgs
from pricebook.editions.transitions import version_of
from pricebook.graphql.connection import Connection, connection_of
from pricebook.graphql.context import Info
from pricebook.graphql.shown import shown
from pricebook.model import Head


@strawberry.type(description="A store that has prices.")
class Store:
    store: strawberry.ID = strawberry.field(name="id")
    tz: str = strawberry.field(description="Midnight of a date is that of this time zone, such as Europe/Paris.")
    channels: list[str] = strawberry.field(description="The channels that have had prices, in the order of the alphabet.")
    home: str = strawberry.field(description="The region that settles what has changed; empty if there is only one.")
    version: str = strawberry.field(description="Stays the same as long as all prices of the store do.")


async def _stores(
    info: Info,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[Store] | None:
    context = info.context

    def show(head: Head) -> Store:
        return shown(Store, head, channels=sorted(head.channels), version=version_of(head, context.now))

    page = await context.services.stores.page(context.caller, PageArgs(first, after, last, before))
    return connection_of(Store, page, show)


@strawberry.type
class StoreQueries:
    stores: Connection[Store] | None = strawberry.field(
        resolver=_stores, description="The stores that the caller may see, by id."
    )
