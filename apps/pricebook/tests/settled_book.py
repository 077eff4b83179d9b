"""A price book that is settled by schedules from the stream of its table: what happens in it, in few words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import msgspec

import tickler
from book import Book, staged
from event_receiver import EventReceiver, share_secrets
from pricebook.editions.switch import Switch
from pricebook.events import Events
from pricebook.identifiers import SETTLE
from pricebook.model import Notice, pricebook
from pricebook.points import AtPoint, pass_on
from pricebook.settling import ChangeSetStores, Settling, SettlingOptions, StoreSettlement
from tickler import Delivery, ManualClock, StoredSchedule, Tickler
from tickler.table import OpenTable
from tickler.testing import Played, play

HERE = ("127.0.0.0/8",)
MINUTE = timedelta(minutes=1)
AT_ONCE = SettlingOptions(spread=timedelta(0))  # so that schedules fire at their instants


class ToldChangeSets:
    """Notes which settled editions change sets are told of."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, int]] = []

    async def store_settled(self, change_set: str, store: str, edition: int) -> None:
        self.told.append((change_set, store, edition))


class _Payload(msgspec.Struct):
    store: str


class Setup(msgspec.Struct, kw_only=True):
    """How a process works on a price book."""

    url: str
    receivers: list[EventReceiver]
    options: SettlingOptions
    change_sets: ChangeSetStores
    at_point: AtPoint


class SettledBook(Book):
    def __init__(self, t: Tickler, db: OpenTable, clock: ManualClock, setup: Setup) -> None:
        super().__init__(db, clock)
        self.t = t
        self.url = setup.url
        self.options = setup.options
        self.events = Events(t, db, [each.receiver for each in setup.receivers])
        self.switch = Switch(db, self.now, self.timing, record=self.events.record)
        stores = StoreSettlement(db, self.switch, self.events, setup.change_sets, setup.at_point)
        self.settling = Settling(t, db, stores, setup.options)

        @t.handler(SETTLE)
        async def settle(delivery: Delivery) -> str:
            return await self.settling.settle(msgspec.convert(delivery.payload, _Payload).store)

    async def follow(self) -> int:
        """Let the consumer follow what has changed. Returns how many changes it got."""
        return await self.settling.consume()

    async def play(self, until: datetime | timedelta) -> Played:
        """Let time pass and schedules fire, and the consumer follow what they change."""
        played = await play(self.t, self.clock, until=until)
        await self.follow()
        return played

    async def schedules(self, store: str = "1") -> dict[str, StoredSchedule]:
        page = await self.t.schedules.list(owner=f"store/{store}")
        return {schedule.key: schedule for schedule in page.items}

    async def due(self, store: str = "1") -> dict[str, datetime]:
        """Return by key when each schedule of a store fires."""
        found = await self.schedules(store)
        return {
            key: each.when.upcoming(1, after=datetime.min.replace(tzinfo=self.now().tzinfo))[0] for key, each in found.items()
        }

    async def notices(self, store: str = "1") -> list[tuple[int, str]]:
        return [(each.number, each.kind) async for each in self.db.iterate(Notice.key(store))]

    async def stage_to(
        self, store: str, edition: int, prices: Mapping[str, int | None], *, until: datetime | None = None
    ) -> None:
        await self.switch.stage(store, edition, staged(prices, until=until))

    async def a_store(self, store: str = "1", prices: Mapping[str, int | None] | None = None, *, tz: str = "UTC") -> str:
        """Make a store whose prices count and are settled, and of which nothing is left to tell."""
        await self.switch.open_store(store, tz=tz, home=self.options.region)
        if prices:
            await Book.change(self, prices, store=store)
            self.pass_()
            await self.settling.settle(store)
        return store


def names_of(url: str) -> tuple[str, str]:
    """Return the URL of a store, and the name of a table beside it: on DynamoDB it is a table of its own."""
    table = url.removeprefix("dynamodb://").partition("?")[0] + "_prices" if url.startswith("dynamodb") else "pricebook"
    return url, table


@asynccontextmanager
async def open_settled_book(
    url: str,
    clock: ManualClock,
    receivers: Iterable[EventReceiver] = (),
    *,
    options: SettlingOptions = AT_ONCE,
    change_sets: ChangeSetStores | None = None,
    at_point: AtPoint = pass_on,
) -> AsyncIterator[SettledBook]:
    """Open a price book, as one process does. TICKLER_KEY has to be set where there are receivers."""
    url, table = names_of(url)
    told = ToldChangeSets() if change_sets is None else change_sets
    setup = Setup(url=url, receivers=list(receivers), options=options, change_sets=told, at_point=at_point)
    async with (
        tickler.connect(url, clock=clock, allow_networks=HERE, create=True) as t,
        pricebook.connect(t, name=table, create=True) as db,
    ):
        await share_secrets(t, setup.receivers)
        yield SettledBook(t, db, clock, setup)
