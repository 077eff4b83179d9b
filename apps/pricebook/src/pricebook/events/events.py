"""Notes what happens to editions, in the transaction in which it happens, and sends it to receivers, signed, once each.

A notice is deleted in the transaction that sends what it says. Where a process stops in between, the notice is still there, and
another one sends it; names of sends keep it from being sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from pricebook.editions.head_writes import Record, Transition
from pricebook.events.happened import Planned, events_of, notice_of
from pricebook.events.receiver import Receiver
from pricebook.model import Head, Notice
from tickler import HttpTarget, Policy, Tickler
from tickler.errors import SendConflict
from tickler.table import OpenTable, Transaction

SENT_AT_A_TIME = 20  # sends in one transaction: DynamoDB allows 100 operations, and a send takes up to three

log = logging.getLogger("pricebook.events")


class Events:
    def __init__(self, t: Tickler, db: OpenTable, receivers: Iterable[Receiver] = (), *, policy: Policy | None = None) -> None:
        self._t = t
        self._db = db
        self._receivers = tuple(receivers)
        self._policy = policy or Policy()

    def record(self, tx: Transaction, transition: Transition) -> None:
        """Add what is to be told of a transition to its transaction: pass it as `Switch(record=…)`, or to `recorded_by`."""
        notice = notice_of(transition)
        if notice is not None:
            tx.put(notice)

    async def pending(self, store: str) -> list[Notice]:
        """Return what was not sent yet of a store, by edition."""
        return [notice async for notice in self._db.iterate(Notice.key(store))]

    async def send(self, notice: Notice, head: Head) -> int:
        """Send what a notice says, and delete it. Returns how many sends there were; a repeated call sends nothing twice."""
        sends = [
            (receiver, planned)
            for receiver in self._receivers
            for planned in events_of(notice, head)
            if planned.is_legacy == receiver.legacy
        ]
        batches = [sends[n : n + SENT_AT_A_TIME] for n in range(0, len(sends), SENT_AT_A_TIME)] or [[]]
        for batch in batches:
            await self._send(batch, notice if batch is batches[-1] else None)
        return len(sends)

    async def _send(self, sends: Sequence[tuple[Receiver, Planned]], done: Notice | None) -> None:
        async def work(tx: Transaction) -> None:
            for receiver, planned in sends:
                await self._send_one(receiver, planned, tx)
            if done is not None and await tx.get(done.key) == done:
                tx.delete(done.key)

        await self._db.transact(work)

    async def _send_one(self, receiver: Receiver, planned: Planned, tx: Transaction) -> None:
        target = HttpTarget(receiver.url, body="raw" if receiver.legacy else "json")
        payload = msgspec.to_builtins(planned.event)
        try:
            await self._t.send(receiver.owner, planned.name, target, payload, at=planned.at, policy=self._policy, using=tx)
        except SendConflict as error:
            log.warning("an event was sent before with other content: %s", error)


def recorded_by(*records: Callable[[Transaction, Transition], None]) -> Record:
    """Return one `record` for a Switch that calls several."""

    def record(tx: Transaction, transition: Transition) -> None:
        for each in records:
            each(tx, transition)

    return record
