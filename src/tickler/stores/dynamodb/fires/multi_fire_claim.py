"""A claim of one schedule that takes a transaction: it has several fires, history entries, or a fire that is open already."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.statements import Condition
from tickler.errors import TicklerError
from tickler.fires import claim
from tickler.fires.claim import ClaimBatch, ClaimPlan, OpenPlan
from tickler.fires.contract import ClaimRequest
from tickler.fires.settle import woken
from tickler.index.advance import DueRow
from tickler.model.fire import Claim, Fire
from tickler.model.schedule import Id
from tickler.model.schedule_json import read_body
from tickler.stores.dynamodb.fires.layout import fire_key
from tickler.stores.dynamodb.fires.transaction import FireTransaction, read_owing
from tickler.stores.dynamodb.index.claim_writes import ClaimWrite, ClaimWrites, seen
from tickler.stores.dynamodb.layout import join_body, place
from tickler.stores.dynamodb.table import TRIES, Table
from tickler.stores.dynamodb.transactions import Insert

MAX_FIRES = 90  # per transaction, beside the head and a few entries

log = logging.getLogger("tickler.fires")


class DueSchedule(NamedTuple):
    """A due row, with the part of its schedule that the index projects."""

    row: DueRow
    version: int
    body: bytes
    size: int  # of the whole body, in bytes

    @property
    def id(self) -> Id:
        return Id(self.row.owner, self.row.key)

    def claimable(self) -> claim.DueSchedule:
        """Return the schedule as `ClaimBatch` takes it. The index does not project the times of the last writes."""
        row: dict[str, Any] = msgspec.structs.asdict(self.row)
        return claim.DueSchedule(**row, version=self.version, created_at=0, updated_at=0, body=self.body)


class MultiFireClaim:
    """Opens the fires of one due schedule, in as many transactions as it takes.

    Each transaction but the last leaves the schedule due at the first instant that is not opened yet, so that another worker
    can continue after a crash. `claims` are the resulting claims; `has_opened` tells whether any fire was opened.
    """

    def __init__(
        self, table: Table, request: ClaimRequest, writes: ClaimWrites, due: DueSchedule, plan: ClaimPlan, opened: OpenPlan
    ) -> None:
        self.claims: list[Claim] = []
        self.has_opened = False
        self._table = table
        self._request = request
        self._writes = writes
        self._due = due
        self._plan = plan
        self._opened = opened
        self._seen: Condition = seen(due.row)
        self._left: list[Fire] | None = None  # None before the first transaction
        self._existing: set[tuple[str, str]] = set()  # keys of fires found to exist

    async def run(self) -> Item | None:
        """Return the schedule's head, or None if another worker got it. Raises `InvalidSchedule` if its body is unreadable."""
        head: Item | None = None
        try:
            while self._left is None or self._left:
                if (found := await self._claim_part()) is None:
                    break
                head = found
        except TicklerError as error:
            if head is None:
                raise
            log.warning("claimed %d fires of %s, then failed: %s", len(self.claims), self._due.id, error)
        return head

    async def _claim_part(self) -> Item | None:
        for attempt in range(1, TRIES + 1):
            transaction = await read_owing(self._table, self._due.id)
            if transaction is None or any(transaction.head.get(name) != value for name, value in self._seen.items()):
                return None
            if self._left is None:
                _check_body(transaction.head)
            if await self._write_part(transaction):
                return transaction.head
            await pause(attempt)
        raise self._table.contended(self._due.id)

    async def _write_part(self, transaction: FireTransaction) -> bool:
        """Write one transaction, and return whether it succeeded. The first decides again by what is open now."""
        if self._left is None and self._plan.schedule.policy.overlap != "allow":
            batch = ClaimBatch([self._due.claimable()], self._request)
            self._opened = batch.open([self._due.id] if transaction.busy else ())
        wanted = self._missing(self._opened.fires if self._left is None else self._left, transaction)
        part, rest = wanted[:MAX_FIRES], wanted[MAX_FIRES:]
        write = self._head_write(rest)
        transaction.advance(write.values, write.removed, self._seen)
        for fire in part:
            is_free = fire.state == "waiting" and not transaction.busy  # the fire before it was settled in between
            transaction.add(woken(fire, self._request.now_ms) if is_free else fire)
        if not rest:
            transaction.remember(self._opened.entries, self._request.expires_at)
        lost = await transaction.write()
        if lost:
            self._existing |= {place(each.item) for each in lost if isinstance(each, Insert)}
            return False
        written = {fire.id for fire in part}
        self.has_opened = self.has_opened or bool(part)
        self.claims += [claim for claim in self._opened.claims if claim.fire is None or claim.fire.id in written]
        self._left = rest
        self._seen = {**self._seen, "next_fire_at": write.values.get("next_fire_at")}
        return True

    def _head_write(self, rest: Sequence[Fire]) -> ClaimWrite:
        if not rest:
            return self._writes.of(self._due.row)
        return self._writes.to(self._due.row, rest[0].nominal_at + self._due.row.offset_ms)

    def _missing(self, fires: Sequence[Fire], transaction: FireTransaction) -> list[Fire]:
        """Leave out fires that exist, because claiming an instant again leads to the same fire."""
        on_head = None if transaction.on_head is None else transaction.on_head.id
        return [fire for fire in fires if fire.id != on_head and place(fire_key(fire)) not in self._existing]


def _check_body(head: Item) -> None:
    """Raise `InvalidSchedule` for an unreadable body on the head. A body item is not checked here."""
    if "body_revision" not in head:
        read_body(0, 0, 0, join_body(head, None))
