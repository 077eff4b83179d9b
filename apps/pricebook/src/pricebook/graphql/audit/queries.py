"""The queries of the audit."""

from __future__ import annotations

import strawberry

from pricebook.editions.pages import PageArgs
from pricebook.errors import InvalidField
from pricebook.graphql.audit.types import AuditedPrice, AuditEntry, audit_entry, audited_price
from pricebook.graphql.connection import Connection, connection_of
from pricebook.graphql.context import Info
from pricebook.graphql.scalars import Day

_ONE_OF = "store, changeSet, actor or day"


async def _audit(
    info: Info,
    store: strawberry.ID | None = None,
    change_set: strawberry.ID | None = None,
    actor: strawberry.ID | None = None,
    day: Day | None = None,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[AuditEntry] | None:
    if sum(each is not None for each in (store, change_set, actor, day)) != 1:
        raise InvalidField("audit", f"name one of {_ONE_OF}, and no other")
    audit, caller, page = info.context.services.audit, info.context.caller, PageArgs(first, after, last, before)
    if store is not None:
        found = await audit.of_store(caller, store, page)
    elif change_set is not None:
        found = await audit.of_change_set(caller, change_set, page)
    elif actor is not None:
        found = await audit.of_actor(caller, actor, page)
    else:
        assert day is not None
        found = await audit.of_day(caller, day, page)
    return connection_of(AuditEntry, found, audit_entry)


async def _audited_prices(
    info: Info,
    product: strawberry.ID,
    type: str = "Base",
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[AuditedPrice] | None:
    page = PageArgs(first, after, last, before)
    found = await info.context.services.audit.of_product(info.context.caller, type, product, page)
    return connection_of(AuditedPrice, found, audited_price)


@strawberry.type
class AuditQueries:
    audit: Connection[AuditEntry] | None = strawberry.field(
        resolver=_audit, description=f"What happened, the latest first. Name one of {_ONE_OF}, which is a date in UTC."
    )
    audited_prices: Connection[AuditedPrice] | None = strawberry.field(
        resolver=_audited_prices, description="Which prices were decided for a product in all stores, the latest first."
    )
