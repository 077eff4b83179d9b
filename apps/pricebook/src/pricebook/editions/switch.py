"""Changes any number of prices of a store at one instant, by one conditional write of its head.

Write order: `open_edition` registers an edition, `stage` writes its prices to their rows, where nobody sees them, and `seal`
lets them count. A process that stops in between leaves nothing visible: another one stages again, or cancels the edition.
`cancel`, `move` and `roll_back` are a write of the head, too. `settle` clears up afterwards, whenever that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import partial

from pricebook.editions import transitions
from pricebook.editions.head_writes import Action, Cause, HeadWrites, Plan, Record
from pricebook.editions.point_in_time import PointInTime
from pricebook.editions.retraction import Retraction
from pricebook.editions.settlement import Settled, Settlements
from pricebook.editions.slots import open_edition
from pricebook.editions.staging import Staged, Staging
from pricebook.editions.storage import Storage
from pricebook.editions.timing import Now, Timing, midnight, whole_milliseconds
from pricebook.errors import NotAllowed, NotFound
from pricebook.model import Edition, Head, Store
from tickler.errors import ConditionFailed
from tickler.table import MISSING, OpenTable, Transaction

MAX_EDITIONS = 128  # of a store that are not settled: the head stays small

SYSTEM = Cause()


class Switch:
    """`record` is called with the transaction of each transition, and adds what is kept of it, such as an audit entry.

    With `using=`, a transition is written when that transaction commits.
    """

    def __init__(self, db: OpenTable, now: Now, timing: Timing | None = None, *, record: Record | None = None) -> None:
        self._db = db
        self._now: Now = lambda: whole_milliseconds(now())
        self._timing = timing or Timing()
        self._writes = HeadWrites(db, self._now, record, within=self._timing.longest_write)
        storage = Storage(db)
        self._staging = Staging(storage, self._writes, self._now, self._timing)
        self._settlements = Settlements(storage, self._writes, self._now, self._timing)
        self._retraction = Retraction(db, PointInTime(db, self._now, self._timing), self._timing)

    @property
    def timing(self) -> Timing:
        return self._timing

    async def open_store(self, store: str, *, tz: str = "UTC", home: str = "", channels: Iterable[str] = ()) -> Head:
        """Make the head of a store, unless it has one. `tz` is the zone in which its days begin."""
        midnight(date(2000, 1, 1), tz)  # refuses unknown zones
        try:
            async with self._db.transaction() as tx:
                tx.create(Head(store=store, tz=tz, home=home, channels=set(channels)))
                tx.put(Store(store=store))
        except ConditionFailed:
            pass  # it has one
        return await self._writes.head(store)

    async def open_edition(
        self,
        store: str,
        at: datetime | date | None = None,
        *,
        retracts: int | None = None,
        change_set: str | None = None,
        cause: Cause = SYSTEM,
        using: Transaction | None = None,
    ) -> int:
        """Register an edition of prices that shall count from an instant on, or from a day's beginning in the store's zone.

        Returns its number. None, or an instant that has passed: as soon as it is sealed.
        """

        def decide(head: Head) -> Plan:
            if len(head.editions) >= MAX_EDITIONS:
                raise NotAllowed(f"store {store} has {len(head.editions)} editions that are not settled: settle or cancel some")
            now, number = self._now(), head.next_edition
            edition = transitions.opened(
                _slot(at, head.tz, now + self._timing.margin),
                now,
                MISSING if retracts is None else retracts,
                MISSING if change_set is None else change_set,
            )
            return Plan(number, None, edition, (Head.next_edition.set(number + 1),), Head.next_edition == number)

        plan = await self._writes.write(store, "open", decide, cause, using)
        assert plan is not None, "an edition is always opened"
        return plan.number

    async def stage(self, store: str, edition: int, prices: Iterable[Staged]) -> int:
        """Write prices of an edition to their rows, where nobody sees them yet. Returns how many were not there.

        It may be repeated with the same prices, in whole or in part, by any process. `PriceConflict` names the edition that has
        a price for the same channel, product and instant; what was staged until then stays, and is never seen.
        """
        return await self._staging.stage(store, edition, prices)

    async def seal(
        self,
        store: str,
        edition: int,
        from_at: datetime | None = None,
        *,
        cause: Cause = SYSTEM,
        using: Transaction | None = None,
    ) -> Edition:
        """Let all staged prices of an edition count from an instant on, by default the one that it was opened for.

        An instant that has passed, or is too near for all readers to learn of it, becomes a minute from now.
        """
        at = None if from_at is None else whole_milliseconds(from_at)
        change = partial(transitions.sealed, from_at=at, timing=self._timing)
        return await self._change(store, edition, "seal", change, cause, using)

    async def move(
        self, store: str, edition: int, from_at: datetime, *, cause: Cause = SYSTEM, using: Transaction | None = None
    ) -> Edition:
        """Let a sealed edition that does not count yet count from another instant on, not before the one it was opened for."""
        change = partial(transitions.moved, from_at=whole_milliseconds(from_at), timing=self._timing)
        return await self._change(store, edition, "move", change, cause, using)

    async def cancel(self, store: str, edition: int, *, cause: Cause = SYSTEM, using: Transaction | None = None) -> Edition:
        """Let an edition never count, or count no more: all its prices go together. Refused once it is being settled."""
        return await self._change(store, edition, "cancel", partial(transitions.cancelled, timing=self._timing), cause, using)

    async def stage_retraction(self, store: str, edition: int, counted_from: datetime | None = None) -> int:
        """Stage what takes back the edition that `edition` was opened to retract. Returns how many rows it concerns.

        `counted_from` is from when on that one counted: where it is known, little of what is past is read.
        """
        head = await self._writes.head(store)
        opened = open_edition(head, edition)
        staged = 0
        async for values in self._retraction.values(head, edition, opened, counted_from):
            staged += await self._staging.stage_values(store, edition, values)
        return staged

    async def roll_back(self, store: str, edition: int, *, cause: Cause = SYSTEM) -> int:
        """Take an edition back as soon as possible: cancel it, or if it is settled, seal an edition that retracts it.

        Returns the number of the edition that was written.
        """
        head = await self._writes.head(store)
        found = head.editions.get(edition)
        if found is not None and found.state != "settling":
            await self.cancel(store, edition, cause=cause)
            return edition
        if edition >= head.next_edition:
            raise NotFound(f"edition of store {store}")
        await self.settle(store, cause=cause)
        number = await self.open_edition(store, retracts=edition, cause=cause)
        await self.stage_retraction(store, number)
        await self.seal(store, number, cause=cause)
        return number

    async def settle(self, store: str, *, cause: Cause = SYSTEM) -> Settled:
        """Let rows hold the prices of all editions that count, and forget those that were cancelled. Prices stay as they are."""
        return await self._settlements.settle(store, cause)

    async def _change(
        self,
        store: str,
        number: int,
        action: Action,
        change: Callable[..., Edition],
        cause: Cause,
        using: Transaction | None,
    ) -> Edition:
        def decide(head: Head) -> Plan:
            edition = head.editions.get(number)
            if edition is None:
                raise NotFound(f"edition of store {store}, or it is settled")
            now = self._now()
            try:
                after = change(edition, now=now)
            except NotAllowed as error:
                raise NotAllowed(f"edition {number} of store {store}: {error}") from None
            return Plan(number, edition, after, (Head.sealed_at.set(now),) if action == "seal" else ())

        plan = await self._writes.write(store, action, decide, cause, using)
        assert plan is not None
        assert plan.after is not None, "these transitions leave an edition"
        return plan.after


def _slot(at: datetime | date | None, tz: str, soonest: datetime) -> datetime:
    """Return the instant under which rows hold the prices of an edition: a lower bound of when it counts."""
    if at is None:
        return soonest
    return max(soonest, whole_milliseconds(at) if isinstance(at, datetime) else midnight(at, tz))
