"""What the resolvers of one request share: what its caller may read and do, and the batches of nested reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import strawberry

from pricebook.access.allowed_prices import AllowedPrices
from pricebook.access.caller import Caller
from pricebook.access.price_reader import PriceReader
from pricebook.audit import AuditTrail
from pricebook.change_sets import ChangeSets
from pricebook.graphql.batch import Batch, BatchedField, ReadMany
from pricebook.stores import Stores


class Services(Protocol):
    """What answers requests; a `Pricebook` is one. Roles and stores are enforced by these, and for prices by `AllowedPrices`."""

    @property
    def prices(self) -> PriceReader: ...

    @property
    def change_sets(self) -> ChangeSets: ...

    @property
    def audit(self) -> AuditTrail: ...

    @property
    def stores(self) -> Stores: ...


class RequestContext:
    """One request. `now` is its instant, and `request` its id, for the audit."""

    def __init__(self, services: Services, caller: Caller, now: datetime, *, request: str = "") -> None:
        self.services = services
        self.prices = AllowedPrices(services.prices, caller)
        self.caller = caller
        self.now = now
        self.request = request
        self._batches: dict[ReadMany, Batch[Any, Any]] = {}

    def batch(self, field: BatchedField) -> Batch[Any, Any]:
        """Return what was read of a field in this request."""
        found = self._batches.get(field.read)
        if found is None:

            async def read(keys: Sequence[Any]) -> Sequence[Any]:
                return await field.read(self, keys)

            found = self._batches[field.read] = Batch(read)
        return found

    async def nested(self, field: BatchedField, node: object, **arguments: Any) -> Any:
        """Read a field of a node, together with those that are asked for at the same time."""
        return await self.batch(field).one(field.key(node, self, **arguments))

    def forget(self) -> None:
        """Forget what was read, since a mutation changes it."""
        self._batches.clear()


Info = strawberry.Info[RequestContext, None]
