"""The events that receivers get, as msgspec Structs. A type with a version never changes: what is new gets a new version.

Instants are in UTC. `local_time` is the same instant as clocks show it where the store is. Prices are not in an event: receivers
ask for those of the store, as far as they want them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct


class PricesApproved(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="prices.approved.v1"):
    """Prices of a store will change at `effective_from`. A second one for the same edition says that it was moved."""

    store: str
    edition: int
    effective_from: datetime
    local_time: str
    time_zone: str
    ends: tuple[datetime, ...]  # when some of these prices end by themselves
    takes_back: int | None  # the edition whose prices no longer count from then on


class PricesWithdrawn(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="prices.withdrawn.v1"):
    """Prices that were announced will not count, or count no more from `until` on."""

    store: str
    edition: int
    effective_from: datetime
    until: datetime


class PricesChanged(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="prices.changed.v1"):
    """Prices of a store have changed. `reason`: they began to count, some of them ended, or they were withdrawn after a while."""

    store: str
    edition: int
    effective_from: datetime
    local_time: str
    time_zone: str
    reason: Literal["began", "ended", "withdrawn"]


class LegacyPriceUpdated(Struct, frozen=True, kw_only=True, rename="camel"):
    """What readers of the first pricing service know: prices of one channel of a store have changed.

    `effective_date` has no offset: it is the time of day where the store is.
    """

    store: str
    channel: str
    effective_date: str


PriceEvent = PricesApproved | PricesWithdrawn | PricesChanged
