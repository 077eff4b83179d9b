"""Types of the schema for the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import strawberry

from pricebook.editions.pages import PageArgs
from pricebook.graphql.batch import BATCHED, OWN_READ, BatchedField, each
from pricebook.graphql.changes.states import ChangeSetState
from pricebook.graphql.changes.types import ChangeSet, read_change_sets
from pricebook.graphql.connection import Connection, connection_of
from pricebook.graphql.context import Info, RequestContext
from pricebook.graphql.prices.types import Money, PriceSubject
from pricebook.graphql.scalars import Instant
from pricebook.graphql.shown import shown
from pricebook.model import NO_COMBINATION, Edition
from pricebook.model import AuditedPrice as PriceItem
from pricebook.model import AuditEntry as EntryItem
from tickler.table import MISSING, Missing

PricesKey = tuple[str, int, PageArgs] | None


def _change_set_key(node: AuditEntry | AuditedPrice, _: RequestContext) -> str | None:
    return node.change_set_id


def _prices_key(node: AuditEntry, _: RequestContext, **page: Any) -> PricesKey:
    return None if node.store is None or node.edition is None else (node.store, node.edition, PageArgs(**page))


async def _read_prices(context: RequestContext, keys: Sequence[PricesKey]) -> Sequence[Any]:
    async def read(key: PricesKey) -> Connection[AuditedPrice] | None:
        if key is None:
            return None
        found = await context.services.audit.prices_of(context.caller, *key)
        return connection_of(AuditedPrice, found, audited_price)

    return await each(read, keys)


_CHANGE_SET = BatchedField(_change_set_key, read_change_sets)
_PRICES = BatchedField(_prices_key, _read_prices, OWN_READ)


async def _change_set(root: strawberry.Parent[Any], info: Info) -> ChangeSet | None:
    return cast("ChangeSet | None", await info.context.nested(_CHANGE_SET, root))


async def _prices(
    root: strawberry.Parent[Any],
    info: Info,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[AuditedPrice] | None:
    page = {"first": first, "after": after, "last": last, "before": before}
    return cast("Connection[AuditedPrice] | None", await info.context.nested(_PRICES, root, **page))


def _change_set_field() -> ChangeSet | None:
    field: ChangeSet | None = strawberry.field(
        resolver=_change_set, metadata={BATCHED: _CHANGE_SET}, description="The change set that it belongs to, as it is now."
    )
    return field


@strawberry.type(description="A set of prices of a store that count from one instant on, as it was.")
class AuditedEdition:
    state: str = strawberry.field(description="open, sealed or settling.")
    from_at: Instant | None = strawberry.field(name="effectiveDate", description="The instant from which it was to count.")
    to_at: Instant | None = strawberry.field(name="cancelledFrom", description="The instant from which it counts no more.")
    sealed_at: Instant | None
    retracts: int | None = strawberry.field(description="The number of the edition that it takes back.")


@strawberry.type(description="Something that happened to an edition of a store, or to a change set. Entries are never changed.")
class AuditEntry:
    id: strawberry.ID
    at: Instant
    actor: str
    action: str
    reason: str
    request: str = strawberry.field(description="The id of the HTTP request.")
    store: strawberry.ID | None
    edition: int | None = strawberry.field(description="The number of the edition of the store.")
    change_set_id: strawberry.ID | None
    before: AuditedEdition | None
    after: AuditedEdition | None
    state_before: ChangeSetState | None
    state_after: ChangeSetState | None
    lines: int | None = strawberry.field(description="How many prices were added or removed.")
    change_set: ChangeSet | None = _change_set_field()
    prices: Connection[AuditedPrice] | None = strawberry.field(
        resolver=_prices, metadata={BATCHED: _PRICES}, description="The prices of the edition."
    )


@strawberry.type(description="A price that was decided. Whether it came to count is told by the entries of its edition.")
class AuditedPrice(PriceSubject):
    edition: int = strawberry.field(description="The number of the edition of the store.")
    at: Instant = strawberry.field(description="The instant at which it was decided.")
    from_at: Instant = strawberry.field(name="effectiveDate", description="The instant from which it was to count.")
    actor: str
    reason: str
    request: str = strawberry.field(description="The id of the HTTP request.")
    before: Money | None = strawberry.field(description="The price that counted when it was decided.")
    after: Money | None
    change_set_id: strawberry.ID | None
    change_set: ChangeSet | None = _change_set_field()


def audit_entry(item: EntryItem) -> AuditEntry:
    return shown(AuditEntry, item, change_set_id=item.change_set, before=_edition(item.before), after=_edition(item.after))


def audited_price(item: PriceItem) -> AuditedPrice:
    return shown(
        AuditedPrice,
        item,
        combination=None if item.combination == NO_COMBINATION else item.combination,
        before=item.before(),
        after=item.after(),
        change_set_id=item.change_set or None,
    )


def _edition(edition: Edition | Missing) -> AuditedEdition | None:
    return None if edition is MISSING else shown(AuditedEdition, edition)
