"""From write to event: the stream of changes gives each store and instant one schedule, which settles the store when it fires.

    edition sealed ──stream──▶ schedule `store/{store}`, its instant ──fires──▶ rows settled ──▶ change sets told ──▶ events sent
        moved, cancelled ──▶ the schedule is replaced, or deleted

Each step may be repeated, by any process: it does what the head and the notices say, not what it was called for. `sweep` gives
a schedule to what was lost in spite of that.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any

from pricebook.editions.head_writes import Cause
from pricebook.editions.switch import SYSTEM
from pricebook.errors import NotFound
from pricebook.model import Head, Notice, UnsettledEdition
from pricebook.settling.homes import move_home
from pricebook.settling.jobs import OWNER_PREFIX, SOON, changed_jobs
from pricebook.settling.options import SettlingOptions
from pricebook.settling.overdue import Late, late_work
from pricebook.settling.schedules import SettleSchedules
from pricebook.settling.store_settlement import StoreSettlement
from pricebook.utc_now import utc_now
from tickler import Tickler, verify
from tickler.errors import InvalidSignature
from tickler.table import ItemChange, OpenTable, changed, created

log = logging.getLogger("pricebook.settling")


class Settling:
    def __init__(self, t: Tickler, db: OpenTable, stores: StoreSettlement, options: SettlingOptions | None = None) -> None:
        self._t = t
        self._db = db
        self._stores = stores
        self._options = options or SettlingOptions()
        self._schedules = SettleSchedules(t, db, self._options)
        self._is_following = False
        self._consumer = db.consumer(self._options.consumer)
        self._consumer.on(created(Head), changed(Head))(self._head_changed)
        self._consumer.on(created(Notice), changed(Notice))(self._noticed)
        self._consumer.on_lost(self.reconcile)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the changes of the table while the block runs. Any number of processes may: they share the work."""
        with self._following():
            async with self._consumer.running():
                yield

    async def consume(self, *, budget_ms: int = 10_000) -> int:
        """Follow the changes that there are, for hosts without a running process. Returns how many there were.

        Where this process follows them already, there is nothing left to do, and none were.
        """
        if self._is_following:
            return 0
        with self._following():
            return (await self._consumer.consume(budget_ms=budget_ms)).delivered

    @contextmanager
    def _following(self) -> Iterator[None]:
        self._is_following = True
        try:
            yield
        finally:
            self._is_following = False

    async def consume_event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Follow the changes of an event that AWS Lambda gets from the stream of the table. Returns what the function returns."""
        return await self._consumer.consume_event(event)

    async def settle(self, store: str) -> str:
        """Settle what is due in a store, and tell of it. What is returned is for the history.

        It is the handler of the schedules, and may be called at any time: prices stay as they are.
        """
        head = await self._db.get(Head.key.id(store))
        if head is None:
            raise NotFound("store")
        if not self._options.acts_for(head):
            return f"nothing to do: {head.home or 'a process without a region'} acts for this store"
        settled = await self._stores.settle(store)
        sent = await self._stores.tell(store, self._now())
        return f"settled {len(settled.editions)} editions in {settled.rows} rows, and sent {sent} events"

    async def receive(self, body: bytes, headers: Mapping[str, str]) -> str:
        """Settle a store for a signed delivery of its schedule. One that comes twice finds nothing to do the second time.

        `InvalidSignature` if it is not signed with one of the secrets, or is not one of a store's schedules.
        """
        if not self._options.secrets:
            raise NotFound("page")
        received = verify(body, headers, self._options.secrets, clock=self._t.clock)
        if not received.owner.startswith(OWNER_PREFIX):
            raise InvalidSignature("it is not of the schedule of a store", "sign with this secret only what goes here")
        return await self.settle(received.owner.removeprefix(OWNER_PREFIX))

    async def sweep(self) -> int:
        """Give a schedule to what is late and has none. Returns how many were made. It reads what is late, and no more."""
        made = 0
        async for late in self._late():
            if self._options.acts_for(late.head):
                made += await self._mended(late)
        if made:
            log.warning("%d schedules of late changes or events were missing, and were made again", made)
        return made

    async def overdue(self, most: int | None = None) -> int:
        """Return how many editions and events are late: those of this region, and those of stores that have no home.

        With `most`, it stops counting there.
        """
        found = 0
        async for late in self._late():
            found += self._options.acts_for(late.head) or not late.head.home
            if found == most:
                break
        return found

    async def move_home(self, store: str, region: str, *, cause: Cause = SYSTEM) -> None:
        """Let another region act for a store, also if the former one no longer answers.

        Each region learns of it when the change reaches its replica: one deletes its schedules, the other makes them.
        """
        await move_home(self._db, store, region, self._now(), cause)

    async def reconcile(self) -> None:
        """Give schedules to all that is unsettled or not sent. Needed after changes were lost; safe at any time."""
        stores = {entry.store async for entry in self._db.iterate(UnsettledEdition.by_instant())}
        stores |= {notice.store async for notice in self._db.iterate(Notice.pending())}
        for store in sorted(stores):
            await self._take_over(store)

    async def _take_over(self, store: str) -> None:
        """Make what a store needs here, and delete the rest if another region acts for it."""
        await self._schedules.reconcile(store)
        async for notice in self._db.iterate(Notice.key(store)):
            await self._follow_notice(notice)

    async def _head_changed(self, change: ItemChange[Head | None, Head]) -> None:
        old, new = change.old, change.new
        is_ours = self._options.acts_for(new)
        if old is not None and self._options.acts_for(old) != is_ours:
            await self._take_over(new.store)
        elif is_ours and (keys := changed_jobs(old, new)):
            await self._schedules.follow(new.store, keys)

    async def _noticed(self, change: ItemChange[Notice | None, Notice]) -> None:
        await self._follow_notice(change.new)

    async def _follow_notice(self, notice: Notice) -> None:
        """Tell what a notice says, or at its instant if that is still to come."""
        if notice.kind == "ended" and notice.at > self._now():
            await self._schedules.follow_end(notice)
            return
        head = await self._db.get(Head.key.id(notice.store))
        if head is not None and self._options.acts_for(head):
            await self._stores.tell(notice.store, self._now())

    async def _mended(self, late: Late) -> int:
        store = late.head.store
        return await (self._schedules.soon(store) if late.key == SOON else self._schedules.follow(store, [late.key]))

    def _late(self) -> AsyncIterator[Late]:
        return late_work(self._db, self._now() - self._options.late_after)

    def _now(self) -> datetime:
        return utc_now(self._t)
