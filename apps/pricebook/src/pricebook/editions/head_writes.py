"""Writes a transition of an edition to the head of its store, conditionally, and its audit entry in the same transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from pricebook.editions.timing import Now
from pricebook.errors import NotAllowed, NotFound
from pricebook.model import Edition, Head, UnsettledEdition
from tickler.errors import ConditionFailed, TransactionConflict
from tickler.table import MISSING, Change, Condition, OpenTable, Transaction

TRIES = 8

Action = Literal["open", "stage", "seal", "move", "cancel", "settle", "drop"]


class Cause(Struct, frozen=True):
    """Who makes a transition, and why: for the audit."""

    actor: str = "pricebook"
    reason: str = ""
    request: str = ""


class Transition(Struct, frozen=True):
    """What happens to an edition of a head. `before` is None where it is opened, `after` where it leaves the head.

    `rev` is that of the head when it was decided.
    """

    store: str
    edition: int
    action: Action
    before: Edition | None
    after: Edition | None
    at: datetime
    cause: Cause
    rev: int = 0


Record = Callable[[Transaction, Transition], None]  # adds what is kept of a transition, such as its audit entry


class Plan(Struct, frozen=True):
    """What to write to a head. `changes` are those beside the edition itself."""

    number: int
    before: Edition | None
    after: Edition | None
    changes: tuple[Change[Head], ...] = ()
    when: Condition[Head] | None = None  # beside that the edition is as it was


Decide = Callable[[Head], Plan | None]


class HeadWrites:
    """`within` is how long a write may take: what it decides has to be there before it takes effect."""

    def __init__(self, db: OpenTable, now: Now, record: Record | None, *, within: timedelta) -> None:
        self._db = db
        self._now = now
        self._record = record
        self._within = within

    async def head(self, store: str) -> Head:
        head = await self._db.get(Head.key.id(store))
        if head is None:
            raise NotFound("store")
        return head

    async def write(
        self, store: str, action: Action, decide: Decide, cause: Cause, using: Transaction | None = None
    ) -> Plan | None:
        """Decide by the head as it is, and write that on the condition that the edition has not changed. None: nothing to do.

        Others may change other editions meanwhile. With `using` it is written when that transaction commits.
        """
        if using is not None:
            return await self._add_to(using, store, action, decide, cause)
        plan: Plan | None = None
        for _ in range(TRIES):
            head = await self.head(store)
            if plan is not None and plan.after is not None and head.editions.get(plan.number) == plan.after:
                return plan  # it was written, but too slowly to tell
            plan = decide(head)
            if plan is None or await self._write_now(head, action, plan, cause):
                return plan
        raise NotAllowed(f"store {store}: others change its editions all the time: try again")

    async def _add_to(self, tx: Transaction, store: str, action: Action, decide: Decide, cause: Cause) -> Plan | None:
        head = await tx.get(Head.key.id(store))
        if head is None:
            raise NotFound("store")
        plan = decide(head)
        if plan is not None:
            self._add(tx, head, action, plan, cause)
        return plan

    async def _write_now(self, head: Head, action: Action, plan: Plan, cause: Cause) -> bool:
        """Write a plan. False if the head has changed, or if that takes too long."""
        try:
            async with asyncio.timeout(self._within.total_seconds()):
                if self._record is None and plan.after is not None and _entry(head, plan) is None:
                    await self._db.update(head.key, *_changes(plan), when=_unchanged(plan))
                else:
                    async with self._db.transaction() as tx:
                        self._add(tx, head, action, plan, cause)
        except TimeoutError:
            return False
        except (ConditionFailed, TransactionConflict) as error:
            if error.name != repr(head.key):
                raise  # it is of what is recorded with it
            return False
        return True

    def _add(self, tx: Transaction, head: Head, action: Action, plan: Plan, cause: Cause) -> None:
        tx.update(head.key, *_changes(plan), when=_unchanged(plan))
        entry = _entry(head, plan)
        if entry is not None:
            tx.put(entry)
        if plan.after is None:
            tx.delete(UnsettledEdition.key.id(head.store, plan.number))
        if self._record is not None:
            happened = Transition(head.store, plan.number, action, plan.before, plan.after, self._now(), cause, head.rev)
            self._record(tx, happened)


def _changes(plan: Plan) -> list[Change[Head]]:
    edition = Head.editions[plan.number]
    return [edition.remove() if plan.after is None else edition.set(plan.after), *plan.changes]


def _unchanged(plan: Plan) -> Condition[Head]:
    edition = Head.editions[plan.number]
    same = edition.missing() if plan.before is None else edition == plan.before
    return same if plan.when is None else same & plan.when


def _entry(head: Head, plan: Plan) -> UnsettledEdition | None:
    """Return the entry by which an edition is found across stores, if it has to be written."""
    if plan.after is None:
        return None
    at = _expected_at(plan.after)
    if plan.before is not None and _expected_at(plan.before) == at:
        return None
    return UnsettledEdition(store=head.store, number=plan.number, from_at=at, day=at.astimezone(ZoneInfo(head.tz)).date())


def _expected_at(edition: Edition) -> datetime:
    return edition.slot if edition.from_at is MISSING else edition.from_at
