"""The steps of a change set in one store. Each can be repeated, stopped anywhere, and taken by two processes at once.

    pending ──open──▶ open ──prices staged──▶ staged ──seal──▶ sealed ──▶ settled
       ▲                                                          │
       └───────────────────────── take back ──────────────────────┘

A step writes the store of the change set in the transaction that writes the head of the store. So there is never a second
edition, and a process that carries out an older decision finds a later round, and stops: `Overtaken`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from pricebook.change_sets.instants import ends_too_early, wanted_at
from pricebook.change_sets.store_prices import StorePrices
from pricebook.editions.head_writes import Cause
from pricebook.editions.switch import Switch
from pricebook.editions.timing import Now
from pricebook.errors import NotAllowed, NotFound, PriceConflict, StagedOtherwise
from pricebook.model import ChangeSet, ChangeStore, Edition, Head
from pricebook.points import AtPoint
from tickler import RetryLater
from tickler.errors import TransactionConflict
from tickler.table import MISSING, OpenTable, Transaction, evolve

TRIES = 20
RESTARTS = 3

Work = Callable[[Transaction, ChangeStore], Awaitable[ChangeStore | None]]  # None: there is nothing to write


class Overtaken(Exception):
    """Somebody has decided otherwise meanwhile, or another process is further."""


class StoreSteps:
    def __init__(self, db: OpenTable, switch: Switch, prices: StorePrices, now: Now, at_point: AtPoint) -> None:
        self._db = db
        self._switch = switch
        self._prices = prices
        self._now = now
        self._at_point = at_point

    async def stage(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Open an edition, and stage the prices of the change set there, where nobody sees them."""
        for _ in range(RESTARTS):
            store = await self._open(found, store)
            if store.state != "open":
                return store
            head, edition = await self.opened(store)
            try:
                if edition is not None and not self._is_stale(edition):
                    await self._prices.stage(found, store, head, edition)
                    await self._at_point("change_set.prices_staged")
                    return await self.mark_staged(found, store, edition)
            except StagedOtherwise:
                pass  # other prices were approved since a process staged these, and stopped
            except NotAllowed as error:
                is_wanted = edition is None or edition.slot == store.wanted_at
                if is_wanted or not isinstance(error, PriceConflict):
                    store = await self._further(found, store, error)
                    continue
            store = await self.restart(found, store)  # with an instant and prices as they are now
        raise RetryLater(after=timedelta(seconds=1), reason=f"store {store.store}: other prices change all the time")

    async def seal(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Let the staged prices count from their instant on, or if that is too late, a minute from now."""
        cause = cause_of_decision(found)

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.state != "staged":
                return None
            assert store.edition is not MISSING, "a staged store has an edition"
            edition = await self._switch.seal(store.store, store.edition, self._sealed_from(store), cause=cause, using=tx)
            if edition.from_at is not MISSING and edition.untils and max(edition.untils) <= edition.from_at:
                raise NotAllowed(ends_too_early(store.store))  # it was staged in time, and that was long ago
            return evolve(store, state="sealed", from_at=edition.from_at)

        return await self.step(found, store, work, in_time=True)

    async def restart(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        """Cancel an edition that is not sealed, so that another one is opened."""
        number = store.edition

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.state not in ("open", "staged") or store.edition != number:
                return None
            await self._cancel(tx, store, cause_of_decision(found))
            return evolve(store, state="pending", edition=MISSING, wanted_at=MISSING, from_at=MISSING)

        return await self.step(found, store, work)

    async def step(self, found: ChangeSet, store: ChangeStore, work: Work, *, in_time: bool = False) -> ChangeStore:
        """Write a store and its head together, by how both are now. With `in_time`, as fast as what is decided needs."""

        async def run(tx: Transaction) -> ChangeStore:
            present = await tx.get(store.key)
            if present is None or present.round > found.rev:
                raise Overtaken
            try:
                after = await work(tx, present)
            except (NotAllowed, RetryLater):
                if await self._db.get(store.key) != present:
                    raise TransactionConflict(repr(store.key)) from None  # it was read before others wrote, and its head after
                raise
            if after is not None:
                tx.put(after)
            return after or present

        if not in_time:
            return await self._db.transact(run, tries=TRIES)
        for _ in range(TRIES):
            try:
                async with asyncio.timeout(self._switch.timing.longest_write.total_seconds()):
                    return await self._db.transact(run, tries=TRIES)
            except TimeoutError:
                continue  # it may be written: what is there now tells
        raise RetryLater(after=timedelta(seconds=5), reason=f"store {store.store}: the database takes too long")

    async def head(self, store: str) -> Head:
        head = await self._db.get(Head.key.id(store))
        if head is None:
            raise NotFound(f"store as {store}")
        return head

    async def _open(self, found: ChangeSet, store: ChangeStore) -> ChangeStore:
        if store.state != "pending":
            return store
        cause = cause_of_decision(found)

        async def work(tx: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.state != "pending":
                return None
            head = await tx.get(Head.key.id(store.store))
            if head is None:
                raise NotFound(f"store as {store.store}")
            wanted = wanted_at(found, head.tz)
            number = await self._switch.open_edition(store.store, wanted, change_set=found.id, cause=cause, using=tx)
            return evolve(store, state="open", edition=number, wanted_at=wanted or MISSING, round=found.rev)

        opened = await self.step(found, store, work)
        await self._at_point("change_set.opened")
        return opened

    async def opened(self, store: ChangeStore) -> tuple[Head, Edition | None]:
        """Return the head of a store, and the edition of the change set if it is open."""
        assert store.edition is not MISSING, "an open store has an edition"
        head = await self.head(store.store)
        edition = head.editions.get(store.edition)
        is_open = edition is not None and edition.state == "open" and edition.to_at is MISSING
        return head, edition if is_open else None

    async def _further(self, found: ChangeSet, store: ChangeStore, error: NotAllowed) -> ChangeStore:
        """Return a store as it is, if another process is further, which is why something was refused; otherwise refuse it."""
        present = await self._db.get(store.key)
        if present is None or present.round > found.rev:
            raise Overtaken
        if present == store:
            raise error
        return present

    async def mark_staged(self, found: ChangeSet, store: ChangeStore, edition: Edition) -> ChangeStore:
        number = store.edition

        async def work(_: Transaction, store: ChangeStore) -> ChangeStore | None:
            if store.state != "open" or store.edition != number:
                return None
            return evolve(store, state="staged", from_at=edition.slot)

        staged = await self.step(found, store, work)
        await self._at_point("change_set.staged")
        return staged

    async def _cancel(self, tx: Transaction, store: ChangeStore, cause: Cause) -> None:
        """Cancel the edition of a store, unless it is cancelled or forgotten already."""
        assert store.edition is not MISSING, "it has an edition"
        head = await tx.get(Head.key.id(store.store))
        edition = None if head is None else head.editions.get(store.edition)
        if edition is not None and edition.to_at is MISSING:
            await self._switch.cancel(store.store, store.edition, cause=cause, using=tx)

    def _is_stale(self, edition: Edition) -> bool:
        """Tell whether an edition was opened so long ago that rows may soon give up what counted at its instant."""
        return edition.slot < self._now() - self._switch.timing.retention / 2

    def _sealed_from(self, store: ChangeStore) -> datetime | None:
        if store.wanted_at is MISSING or store.from_at is MISSING:
            return None
        return self._now() if store.wanted_at < store.from_at else store.wanted_at  # now is too late: it gets the buffer


def cause_of_decision(found: ChangeSet) -> Cause:
    if found.decision is MISSING:
        return Cause()
    return Cause(found.decision.actor, found.decision.reason or found.reason, found.decision.request)
