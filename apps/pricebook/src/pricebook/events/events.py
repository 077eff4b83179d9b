"""Notes what happens to editions, in the transaction in which it happens, and sends it to receivers, signed, once each.

A notice is deleted in the transaction that sends what it says. Where a process stops in between, the notice is still there, and
another one sends it; names of sends keep it from being sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from pricebook.editions.head_writes import Record, Transition
from pricebook.events.happened import Planned, events_of, following, notice_of
from pricebook.events.receiver import Receiver
from pricebook.model import Head, Notice
from tickler import HttpTarget, Policy, Tickler
from tickler.errors import SendConflict
from tickler.table import MISSING, OpenTable, Transaction

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
        """Return what was not sent yet of a store, by edition; also what is to be sent later."""
        return [notice async for notice in self._db.iterate(Notice.key(store))]

    async def send(self, notice: Notice, head: Head) -> int:
        """Send what a notice says, and delete it, or put the one that follows it.

        Returns how many sends there were: 0 if another process has sent it.
        """
        sends = [
            (receiver, planned)
            for planned in events_of(notice, head)
            for receiver in self._receivers
            if planned.is_legacy == receiver.legacy
        ]
        batches = [sends[n : n + SENT_AT_A_TIME] for n in range(0, len(sends), SENT_AT_A_TIME)] or [[]]
        sent = 0
        for batch in batches:
            sent += await self._send(notice, batch, is_last=batch is batches[-1])
        return sent

    async def _send(self, notice: Notice, sends: Sequence[tuple[Receiver, Planned]], *, is_last: bool) -> int:
        async def work(tx: Transaction) -> int:
            if await tx.get(notice.key) != notice:
                return 0  # another process has sent it, or it has changed
            for receiver, planned in sends:
                await self._send_one(receiver, planned, tx)
            if is_last:
                await self._end(notice, tx)
            return len(sends)

        return await self._db.transact(work)

    async def _send_one(self, receiver: Receiver, planned: Planned, tx: Transaction) -> None:
        target = HttpTarget(receiver.url, body="raw" if receiver.legacy else "json")
        payload = msgspec.json.decode(msgspec.json.encode(planned.event))
        try:
            await self._t.send(receiver.owner, planned.name, target, payload, policy=self._policy, using=tx)
        except SendConflict as error:
            log.warning("an event was sent before with other content: %s", error)

    async def _end(self, notice: Notice, tx: Transaction) -> None:
        """Replace a notice by the one that follows it. What ends of an edition that is taken back is no longer told."""
        after, edition = following(notice), notice.edition
        if after is not None:
            tx.put(after)
        if after is None or after.key != notice.key:
            tx.delete(notice.key)
        if notice.kind == "settled" and edition.retracts is not MISSING and edition.from_at is not MISSING:
            await self._forget_ends(notice.store, edition.retracts, edition.from_at, tx)

    async def _forget_ends(self, store: str, number: int, from_at: datetime, tx: Transaction) -> None:
        ends = await tx.get(Notice.key.id(store, number, "ended"))
        if ends is not None and ends.at >= from_at:
            tx.delete(ends.key)


def recorded_by(*records: Callable[[Transaction, Transition], None]) -> Record:
    """Return one `record` for a Switch that calls several."""

    def record(tx: Transaction, transition: Transition) -> None:
        for each in records:
            each(tx, transition)

    return record
