"""The head of a store: its editions, and from when they count. One write of it changes any number of prices."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pricebook.model.table import pricebook
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, attr

EditionState = Literal["open", "sealed", "settling"]


class Edition(Part):
    """A set of prices that count from one instant on. It is in the head from before the first is staged until all are settled.

    Rows hold its values under `slot`, a lower bound of `from_at`. It counts from `from_at` until `to_at`, which is there if it
    was cancelled. `untils` are the instants at which values of it end by themselves.
    """

    state: Attr[EditionState]
    slot: Attr[datetime]
    opened_at: Attr[datetime]
    from_at: Attr[datetime | Missing] = attr(default=MISSING)
    to_at: Attr[datetime | Missing] = attr(default=MISSING)
    sealed_at: Attr[datetime | Missing] = attr(default=MISSING)
    untils: Attr[list[datetime]] = attr(default=[])
    retracts: Attr[int | Missing] = attr(default=MISSING)  # the settled edition that this one takes back
    change_set: Attr[str | Missing] = attr(default=MISSING)  # whose prices it has

    def counts_at(self, at: datetime) -> bool:
        if self.state == "open" or self.from_at is MISSING:
            return False
        return self.from_at <= at and (self.to_at is MISSING or at < self.to_at)


class Head(Entity, table=pricebook):
    """What readers of a store read first."""

    store: Attr[str] = attr()
    tz: Attr[str] = attr(default="UTC")
    home: Attr[str] = attr(default="")  # the region whose consumer acts for this store
    channels: Attr[set[str]] = attr(default=set())  # that have prices
    editions: Attr[dict[int, Edition]] = attr(default={})
    next_edition: Attr[int] = attr(default=1)
    sealed_at: Attr[datetime | Missing] = attr(default=MISSING)  # when an edition was sealed last
    changed_at: Attr[datetime | Missing] = attr(default=MISSING)  # the last instant at which a settled edition changed a price
    untils: Attr[list[datetime]] = attr(default=[])  # at which settled values end
    rev: Attr[int] = attr(version=True, default=0)

    key = Key("STORE" / store, "!HEAD")


class Store(Entity, table=pricebook):
    """An entry for each store, in the list of all. It is apart from the head, so that a write of a head touches no index."""

    store: Attr[str] = attr()

    key = Key("STORE" / store, "!STORE")
    all = Index("gsi1", "STORES", store)


class UnsettledEdition(Entity, table=pricebook):
    """An entry for each edition of a head, so that editions are found by time and by day across stores.

    Until it is sealed, `from_at` is the instant for which it is staged, and `day` that day in the zone of the store.
    """

    store: Attr[str] = attr()
    number: Attr[int] = attr()
    from_at: Attr[datetime] = attr()
    day: Attr[date] = attr()

    key = Key("STORE" / store, "!EDITION" / number)
    by_instant = Index("gsi2", "UNSETTLED", from_at / store / number)
    of_day = Index("gsi1", "CHANGES" / day, "STORE" / store / number)
