"""Settles the editions of a store that count, or were cancelled: rows hold their prices for good, then the head forgets them.

It may run late, be spread over time, stop anywhere, and run twice at once: readers see the same prices all the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct

from pricebook.editions import transitions
from pricebook.editions.head_writes import Cause, HeadWrites, Plan
from pricebook.editions.row_scan import row_pages
from pricebook.editions.settled_row import SettledRow, Settlement, settled_row
from pricebook.editions.staging import AT_ONCE, STAGED_AT_A_TIME, batches
from pricebook.editions.storage import Storage
from pricebook.editions.timing import Now, Timing
from pricebook.errors import NotAllowed
from pricebook.model import CombinationPrice, Edition, Head, Past, Price, PriceRow, key_of, past_of, row_id
from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table import Change, Transaction

TRIES = 5


class Settled(Struct, frozen=True):
    """Which editions of a store were settled, and how many rows hold their prices."""

    editions: tuple[int, ...] = ()
    rows: int = 0


class Settlements:
    def __init__(self, storage: Storage, writes: HeadWrites, now: Now, timing: Timing) -> None:
        self._storage = storage
        self._db = storage.db
        self._writes = writes
        self._now = now
        self._timing = timing

    async def settle(self, store: str, cause: Cause) -> Settled:
        """Settle all editions of a store that are due, in one pass over its rows."""
        head = await self._begin(store, cause)
        due = {n: each for n, each in head.editions.items() if each.state == "settling" or _is_over(each, self._now())}
        if not due:
            return Settled()
        others = {n: each for n, each in head.editions.items() if n not in due}
        settlement = Settlement(due, others, head.next_edition, self._now() - self._timing.retention)
        written = 0
        async for rows in row_pages(self._db, store):
            for some in batches([row for row in rows if settlement.concerns(row.values)], STAGED_AT_A_TIME):
                written += await self._write(some, settlement)
        for number in sorted(due, key=lambda n: transitions.order_of(n, due[n])):
            await self._drop(store, number, cause)
        return Settled(tuple(sorted(due)), written)

    async def _begin(self, store: str, cause: Cause) -> Head:
        """Let nobody change the editions any more that are settled now."""
        head = await self._writes.head(store)
        due = [n for n, each in head.editions.items() if each.state == "sealed" and transitions.is_due(each, self._now())]
        for number in due:
            await self._writes.write(store, "settle", partial(_begun, number), cause)
        return await self._writes.head(store) if due else head

    async def _write(self, rows: Sequence[PriceRow], settlement: Settlement) -> int:
        """Write some rows, in one transaction where that is cheaper. Returns how many were changed."""
        if await self._storage.has_snapshots():
            try:
                async with self._db.transaction() as tx:
                    for row in rows:
                        _add(tx, row, settled_row(row.values, settlement))
            except (ConditionFailed, ItemNotFound):
                pass  # others have staged to one of the rows meanwhile
            else:
                return len(rows)
        for some in batches(rows, AT_ONCE):
            outcomes = await asyncio.gather(*(self._write_one(row, settlement) for row in some), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
        return len(rows)

    async def _write_one(self, row: PriceRow, settlement: Settlement) -> None:
        """Write what is past before the row, so that a value is in both places rather than in none."""
        found: PriceRow | None = row
        for _ in range(TRIES):
            if found is None or not settlement.concerns(found.values):
                return
            settled = settled_row(found.values, settlement)
            await self._db.put_many(_past(found, settled))
            id = row_id(found)
            try:
                if settled.values:
                    await self._db.update(id, _values(found).set(settled.values), when=_values(found) == found.values)
                else:
                    await self._db.delete(id, when=_values(found) == found.values)
            except (ConditionFailed, ItemNotFound):
                found = await self._db.get(id)
            else:
                return
        raise NotAllowed(f"store {row.store}: others write {row.key!r} all the time: try again")

    async def _drop(self, store: str, number: int, cause: Cause) -> None:
        await self._writes.write(store, "drop", partial(_dropped, number, self._now()), cause)


def _is_over(edition: Edition, now: datetime) -> bool:
    """Tell whether an edition was cancelled before it was sealed. Nobody can change it any more."""
    return edition.state == "open" and transitions.is_due(edition, now)


def _begun(number: int, head: Head) -> Plan | None:
    edition = head.editions.get(number)
    if edition is None or edition.state == "settling":
        return None  # another process was first
    return Plan(number, edition, transitions.settling(edition))


def _dropped(number: int, now: datetime, head: Head) -> Plan | None:
    """Let the head forget an edition, but not when its prices change. The whole head must not change meanwhile."""
    edition = head.editions.get(number)
    if edition is None:
        return None
    changes: list[Change[Head]] = []
    last = transitions.last_change(head, now)
    if last is not None:
        changes.append(Head.changed_at.set(last))
    untils = {each for each in (*head.untils, *(edition.untils if transitions.ever_counts(edition) else ())) if each > now}
    changes.append(Head.untils.set(sorted(untils)))
    return Plan(number, edition, None, tuple(changes), Head.rev == head.rev)


def _add(tx: Transaction, row: PriceRow, settled: SettledRow) -> None:
    id = row_id(row)
    for past in _past(row, settled):
        tx.put(past)
    if settled.values:
        tx.update(id, _values(row).set(settled.values), when=_values(row) == row.values)
    else:
        tx.delete(id, when=_values(row) == row.values)


def _past(row: PriceRow, settled: SettledRow) -> list[Past]:
    return [past_of(key_of(row), from_at, value) for from_at, value in settled.past.items()]


def _values(row: PriceRow) -> Any:
    return CombinationPrice.values if isinstance(row, CombinationPrice) else Price.values
