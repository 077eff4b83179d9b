"""Opens a pricebook: settings become everything that works on its one table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial

from msgspec import Struct

import tickler
from pricebook.app.handlers import register
from pricebook.app.settings import Settings
from pricebook.audit import AuditTrail
from pricebook.bulk import BulkJobs, BulkSettings
from pricebook.change_sets import ChangeSets
from pricebook.editions.reading import Prices
from pricebook.editions.switch import Switch
from pricebook.editions.timing import Timing
from pricebook.events import Events, Receiver, recorded_by
from pricebook.model import pricebook
from pricebook.people import People
from pricebook.points import AtPoint, pass_on
from pricebook.settling import Settling, SettlingOptions, StoreSettlement
from pricebook.stores import Stores
from pricebook.timelines.coming import ComingChanges
from pricebook.timelines.timelines import Timelines
from pricebook.utc_now import utc_now
from tickler import Clock, Tickler
from tickler.table import OpenTable


class Pricebook(Struct, frozen=True, kw_only=True, eq=False):
    """Everything that an installation does, on one store."""

    settings: Settings
    t: Tickler
    db: OpenTable
    timing: Timing
    prices: Prices
    switch: Switch
    audit: AuditTrail
    events: Events
    change_sets: ChangeSets
    settling: Settling
    bulk: BulkJobs
    people: People
    timelines: Timelines
    coming: ComingChanges
    stores: Stores

    def now(self) -> datetime:
        return utc_now(self.t)


@asynccontextmanager
async def open_pricebook(
    settings: Settings, *, clock: Clock | None = None, timing: Timing | None = None, at_point: AtPoint = pass_on
) -> AsyncIterator[Pricebook]:
    """Open the store, make what is missing in it, and register the handlers. `at_point` is for tests of crashes."""
    async with AsyncExitStack() as stack:
        t = await stack.enter_async_context(
            tickler.connect(settings.store, clock=clock, allow_networks=settings.allow_networks, create=True)
        )
        db = await stack.enter_async_context(pricebook.connect(t, name=settings.table, create=True))
        book = _assembled(settings, t, db, timing or Timing(), at_point)
        register(book)
        yield book


def _assembled(settings: Settings, t: Tickler, db: OpenTable, timing: Timing, at_point: AtPoint) -> Pricebook:
    now = partial(utc_now, t)
    audit = AuditTrail(db, now)
    events = Events(t, db, [Receiver.read(each) for each in settings.receivers])
    switch = Switch(db, now, timing, record=recorded_by(audit.record, events.record))
    prices, people = Prices(db, now, timing), People(db, now)
    change_sets = ChangeSets(t, db, switch, large_change=settings.large_change, four_eyes=settings.four_eyes, at_point=at_point)
    return Pricebook(
        settings=settings,
        t=t,
        db=db,
        timing=timing,
        prices=prices,
        switch=switch,
        audit=audit,
        events=events,
        change_sets=change_sets,
        settling=Settling(t, db, StoreSettlement(db, switch, events, change_sets, at_point), _settling_options(settings, timing)),
        bulk=BulkJobs(t, db, people, prices, change_sets, BulkSettings(at_point=at_point)),
        people=people,
        timelines=Timelines(db),
        coming=ComingChanges(db, now),
        stores=Stores(db, now, timing),
    )


def _settling_options(settings: Settings, timing: Timing) -> SettlingOptions:
    return SettlingOptions(region=settings.region, url=settings.settle_url, secrets=settings.settle_secrets, timing=timing)
