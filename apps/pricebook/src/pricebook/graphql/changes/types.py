"""Types of the schema for change sets: prices that people change together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import strawberry

from pricebook.editions.pages import PageArgs
from pricebook.graphql.batch import BATCHED, OWN_READ, BatchedField, each
from pricebook.graphql.changes.report_types import ChangeReport
from pricebook.graphql.changes.states import ChangeSetState, ChangeStoreState
from pricebook.graphql.connection import Connection, connection_of
from pricebook.graphql.context import Info, RequestContext
from pricebook.graphql.prices.types import Money, PriceRecord, PriceSubject, as_of_field
from pricebook.graphql.scalars import Day, Instant
from pricebook.graphql.shown import shown
from pricebook.model import ChangeLine as LineItem
from pricebook.model import ChangeProgress as ProgressItem
from pricebook.model import ChangeSet as ChangeSetItem
from pricebook.model import ChangeStore as StoreItem

REPORT_READ = 15_000  # it reads all lines of the change set: three in a query are the most


@strawberry.type(description="A price that a change set gives a product in a store.")
class ChangeLine(PriceSubject):
    amount: Money | None = strawberry.field(name="price", description="None: the product has no price from then on.")
    as_of: PriceRecord | None = as_of_field()


@strawberry.type(description="A store of a change set.")
class ChangeStore:
    store: strawberry.ID
    state: ChangeStoreState
    edition: int | None = strawberry.field(description="The number of the store's edition that has its prices.")
    from_at: Instant | None = strawberry.field(name="effectiveDate", description="The instant from which it counts there.")


@strawberry.type(description="In how many of its stores a change set is staged, sealed and settled.")
class ChangeProgress:
    staged: int
    sealed: int
    settled: int


async def read_change_sets(context: RequestContext, ids: Sequence[str | None]) -> Sequence[ChangeSet | None]:
    """Read change sets in one go. Null for those that there are not, or not for this caller."""
    found = await context.services.change_sets.get_many(context.caller, [id for id in ids if id is not None])
    known = {item.id: change_set(item) for item in found if item is not None}
    return [None if id is None else known.get(id) for id in ids]


async def _read_progress(context: RequestContext, ids: Sequence[str]) -> Sequence[ProgressItem | Exception]:
    async def read(id: str) -> ProgressItem:
        return await context.services.change_sets.progress(context.caller, id)

    return await each(read, ids)


async def _read_reports(context: RequestContext, ids: Sequence[str]) -> Sequence[Any]:
    async def read(id: str) -> Any:
        return await context.services.change_sets.report(context.caller, id)

    return await each(read, ids)


def _lines_key(node: ChangeSet, _: RequestContext, store: str | None = None, **page: Any) -> tuple[str, str | None, PageArgs]:
    return node.id, store, PageArgs(**page)


async def _read_lines(context: RequestContext, keys: Sequence[tuple[str, str | None, PageArgs]]) -> Sequence[Any]:
    async def read(key: tuple[str, str | None, PageArgs]) -> Connection[ChangeLine]:
        id, store, page = key
        return connection_of(ChangeLine, await context.services.change_sets.lines(context.caller, id, page, store=store), _line)

    return await each(read, keys)


def _stores_key(node: ChangeSet, _: RequestContext, **page: Any) -> tuple[str, PageArgs]:
    return node.id, PageArgs(**page)


async def _read_stores(context: RequestContext, keys: Sequence[tuple[str, PageArgs]]) -> Sequence[Any]:
    async def read(key: tuple[str, PageArgs]) -> Connection[ChangeStore]:
        return connection_of(ChangeStore, await context.services.change_sets.stores(context.caller, *key), _store)

    return await each(read, keys)


_PROGRESS = BatchedField(lambda node, _: node.id, _read_progress, OWN_READ)
_REPORT = BatchedField(lambda node, _: node.id, _read_reports, REPORT_READ)
_LINES = BatchedField(_lines_key, _read_lines, OWN_READ)
_STORES = BatchedField(_stores_key, _read_stores, OWN_READ)


async def _progress(root: strawberry.Parent[ChangeSetItem], info: Info) -> ChangeProgress | None:
    return cast("ChangeProgress | None", await info.context.nested(_PROGRESS, root))


async def _report(root: strawberry.Parent[ChangeSetItem], info: Info) -> ChangeReport | None:
    return cast("ChangeReport | None", await info.context.nested(_REPORT, root))


async def _lines(
    root: strawberry.Parent[ChangeSetItem],
    info: Info,
    store: strawberry.ID | None = None,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[ChangeLine] | None:
    page = {"first": first, "after": after, "last": last, "before": before}
    return cast("Connection[ChangeLine] | None", await info.context.nested(_LINES, root, store=store, **page))


async def _stores(
    root: strawberry.Parent[ChangeSetItem],
    info: Info,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[ChangeStore] | None:
    page = {"first": first, "after": after, "last": last, "before": before}
    return cast("Connection[ChangeStore] | None", await info.context.nested(_STORES, root, **page))


@strawberry.type(description="Prices that people change together, in any number of stores.")
class ChangeSet:
    id: strawberry.ID
    title: str
    reason: str
    state: ChangeSetState
    rev: int = strawberry.field(
        description="Raised by each edit and each decision: send the one that you have read with the next."
    )
    at: Instant | None = strawberry.field(description="The instant from which it is to count.")
    day: Day | None = strawberry.field(description="It is to count from midnight of this date on, where each store is.")
    until_at: Instant | None = strawberry.field(description="The instant at which the former prices count again.")
    until_day: Day | None = strawberry.field(
        description="The former prices count again at midnight of this date, where each store is."
    )
    store_count: int = strawberry.field(description="How many stores it has, counted when it was submitted.")
    line_count: int = strawberry.field(description="How many prices it has, counted when it was submitted.")
    created_by: str
    created_at: Instant
    submitted_by: str | None
    submitted_at: Instant | None
    approved_by: str | None
    approved_at: Instant | None
    first_at: Instant | None = strawberry.field(
        name="firstEffectiveDate", description="The instant from which it counts in the first of its stores."
    )
    last_at: Instant | None = strawberry.field(
        name="lastEffectiveDate", description="The instant from which it counts in the last of its stores."
    )
    ended_at: Instant | None = strawberry.field(description="The instant at which it was settled, cancelled or superseded.")
    refused: str | None = strawberry.field(description="Why the last approval failed.")
    rolls_back: strawberry.ID | None = strawberry.field(
        name="rollsBackId", description="The change set that this one takes back."
    )
    superseded_by: strawberry.ID | None = strawberry.field(name="supersededById")
    progress: ChangeProgress | None = strawberry.field(resolver=_progress, metadata={BATCHED: _PROGRESS})
    report: ChangeReport | None = strawberry.field(
        resolver=_report, metadata={BATCHED: _REPORT}, description="What would happen if it were approved now."
    )
    lines: Connection[ChangeLine] | None = strawberry.field(
        resolver=_lines,
        metadata={BATCHED: _LINES},
        description="Its prices, by store and product; those of one store, if it is named.",
    )
    stores: Connection[ChangeStore] | None = strawberry.field(
        resolver=_stores, metadata={BATCHED: _STORES}, description="Its stores, by id."
    )


def change_set(item: ChangeSetItem) -> ChangeSet:
    """Return a change set of the table as one of the schema."""
    return shown(ChangeSet, item, store_count=item.stores, line_count=item.lines)


def _line(item: LineItem) -> ChangeLine:
    return shown(ChangeLine, item, amount=item.money(), combination=item.price_key().combination)


def _store(item: StoreItem) -> ChangeStore:
    return shown(ChangeStore, item)
