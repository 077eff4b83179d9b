"""Gives stores the schedules that they need: each is written in a transaction that fails if the head changes meanwhile.

A schedule that is still to fire is left as it is, since it reads the head when it does: a repeated or a late change is harmless.
One that is firing, or has finished, gets a successor: nothing that it may have missed is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pricebook.model import Head, Notice
from pricebook.settling.jobs import SOON, Jobs, ends_key, is_change, jobs_of, owner_of
from pricebook.settling.options import SettlingOptions
from pricebook.utc_now import utc_now
from tickler import At, Policy, Schedule, Tickler
from tickler.table import OpenTable, Transaction

AT_A_TIME = 20  # schedules in one transaction: DynamoDB allows 100 operations
TIMEOUT_S = 120
WAITING = ("active", "paused")  # one that somebody has paused stays so, and is overdue


class SettleSchedules:
    def __init__(self, t: Tickler, db: OpenTable, options: SettlingOptions) -> None:
        self._t = t
        self._db = db
        self._options = options
        self._later = Policy(attempts=20, backoff=[5, 30, 120, 600], timeout=TIMEOUT_S, spread=options.spread)
        self._soon = Policy(attempts=20, backoff=[5, 30, 120, 600], timeout=TIMEOUT_S)

    async def follow(self, store: str, keys: Iterable[str]) -> int:
        """Give each job the schedule that it needs by the head as it is now, or none. Returns how many were written.

        A store whose home is elsewhere needs none.
        """
        wanted, written = sorted(keys), 0
        for some in (wanted[n : n + AT_A_TIME] for n in range(0, len(wanted), AT_A_TIME)):
            written += await self._follow(store, some)
        return written

    async def follow_end(self, notice: Notice) -> None:
        """Give a store the schedule that tells when values end."""

        async def work(tx: Transaction) -> None:
            head = await tx.get(Head.key.id(notice.store))
            if head is None or not self._options.acts_for(head) or await tx.get(notice.key) != notice:
                return
            await self._ensure(notice.store, ends_key(notice.at), notice.at, tx)

        await self._db.transact(work)

    async def soon(self, store: str) -> int:
        """Look after a store a minute from now, whatever there is to do. Returns how many schedules were written."""

        async def work(tx: Transaction) -> int:
            return await self._ensure(store, SOON, None, tx)

        return await self._db.transact(work)

    async def reconcile(self, store: str) -> None:
        """Give a store all schedules that it needs. One whose home is elsewhere loses those that it has here."""
        head = await self._db.get(Head.key.id(store))
        if head is not None and self._options.acts_for(head):
            await self.follow(store, jobs_of(head))
        else:
            await self.follow(store, await self._keys(store))

    async def _keys(self, store: str) -> list[str]:
        owner, keys, after = owner_of(store), list[str](), None
        while True:
            page = await self._t.schedules.list(owner=owner, after=after)
            keys += [schedule.key for schedule in page.items]
            if page.next is None:
                return keys
            after = page.next

    async def _follow(self, store: str, keys: list[str]) -> int:
        async def work(tx: Transaction) -> int:
            head = await tx.get(Head.key.id(store))
            is_ours = head is not None and self._options.acts_for(head)
            jobs: Jobs = jobs_of(head) if head is not None and is_ours else {}
            written = 0
            for key in keys:
                if key in jobs:
                    written += await self._ensure(store, key, jobs[key], tx)
                elif is_change(key) or not is_ours:
                    await self._t.schedules.delete(owner_of(store), key, using=tx)
            return written

        return await self._db.transact(work)

    async def _ensure(self, store: str, key: str, at: datetime | None, tx: Transaction) -> int:
        stored = await self._t.schedules.get(owner_of(store), key, using=tx)
        if stored is not None and stored.state in WAITING:
            return 0
        await self._t.schedules.put(self._schedule(store, key, at), using=tx)
        return 1

    def _schedule(self, store: str, key: str, at: datetime | None) -> Schedule:
        """Return a schedule that fires once: at its instant, or a minute from now if that is past or nearer."""
        soonest = utc_now(self._t) + self._options.timing.buffer
        is_later = at is not None and at > soonest
        return Schedule(
            owner=owner_of(store),
            key=key,
            when=At(at if at is not None and is_later else soonest),
            target=self._options.target,
            payload={"store": store},
            policy=self._later if is_later else self._soon,
        )
