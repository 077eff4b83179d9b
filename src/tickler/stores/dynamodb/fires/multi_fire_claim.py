"""A claim of one schedule that takes more than one write: several fires, something to remember, or one that is open already."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tickler.dynamo import Condition, Item
from tickler.dynamo.client import pause
from tickler.errors import TicklerError
from tickler.fires import claim
from tickler.fires.claim import ClaimBatch, ClaimPlan, OpenedFire
from tickler.fires.contract import ClaimRequest
from tickler.fires.settle import woken
from tickler.index.advance import DueRow
from tickler.model.fire import Claim, Fire
from tickler.model.schedule import Id
from tickler.model.schedule_json import read_body
from tickler.stores.dynamodb.fires.layout import fire_key
from tickler.stores.dynamodb.fires.transaction import FireTransaction, read_owing
from tickler.stores.dynamodb.index.claim_writes import ClaimWrite, ClaimWrites, seen
from tickler.stores.dynamodb.layout import place, whole_body
from tickler.stores.dynamodb.table import TRIES, Table
from tickler.stores.dynamodb.transactions import Insert

FIRES_TOGETHER = 90  # beside the head and the few entries there may be

log = logging.getLogger("tickler.fires")


class DueSchedule(NamedTuple):
    """A due row, and as much of its schedule as the index has."""

    row: DueRow
    version: int
    body: bytes
    size: int  # of the whole body, in bytes

    @property
    def id(self) -> Id:
        return Id(self.row.owner, self.row.key)

    def claimable(self) -> claim.DueSchedule:
        """Return the schedule as `ClaimBatch` takes it; the index does not know when it was written."""
        row: dict[str, Any] = msgspec.structs.asdict(self.row)
        return claim.DueSchedule(**row, version=self.version, created_at=0, updated_at=0, body=self.body)


class MultiFireClaim:
    """Opens the fires of one due schedule, in as many transactions as it takes.

    Each of them but the last leaves the schedule due at the first instant that is not opened yet: whoever comes after a crash
    goes on from there. `claims` are those that were opened, `opened` whether there were fires among them.
    """

    def __init__(
        self, table: Table, order: ClaimRequest, steps: ClaimWrites, due: DueSchedule, owed: ClaimPlan, share: OpenedFire
    ) -> None:
        self.claims: list[Claim] = []
        self.opened = False
        self._table = table
        self._order = order
        self._steps = steps
        self._due = due
        self._owed = owed
        self._share = share
        self._seen: Condition = seen(due.row)
        self._left: list[Fire] | None = None  # None before the first transaction
        self._there: set[tuple[str, str]] = set()  # items of fires that turned out to exist

    async def run(self) -> Item | None:
        """The head of the schedule; None when somebody else has got it. `InvalidSchedule` when it turns out not to read."""
        head: Item | None = None
        try:
            while self._left is None or self._left:
                if (found := await self._portion()) is None:
                    break
                head = found
        except TicklerError as error:
            if head is None:
                raise
            log.warning("a claim of %s got %d fires and then failed: %s", self._due.id, len(self.claims), error)
        return head

    async def _portion(self) -> Item | None:
        for attempt in range(1, TRIES + 1):
            owing = await read_owing(self._table, self._due.id)
            if owing is None or any(owing.head.get(name) != value for name, value in self._seen.items()):
                return None
            if self._left is None:
                _check_body(owing.head)
            if await self._written(owing):
                return owing.head
            await pause(attempt)
        raise self._table.contended(self._due.id)

    async def _written(self, owing: FireTransaction) -> bool:
        """Whether a portion was written. What it is depends on what is open, as long as nothing of it is."""
        if self._left is None and self._owed.schedule.policy.overlap != "allow":
            batch = ClaimBatch([self._due.claimable()], self._order)
            self._share = batch.open([self._due.id] if owing.busy else ())
        wanted = self._not_there(self._share.fires if self._left is None else self._left, owing)
        portion, rest = wanted[:FIRES_TOGETHER], wanted[FIRES_TOGETHER:]
        step = self._step(rest)
        owing.advance(step.values, step.removed, self._seen)
        for fire in portion:
            waits = fire.state == "waiting" and not owing.busy  # for what was settled meanwhile
            owing.add(woken(fire, self._order.now_ms) if waits else fire)
        if not rest:
            owing.remember(self._share.entries, self._order.expires_at)
        lost = await owing.write()
        if lost:
            self._there |= {place(write.item) for write in lost if isinstance(write, Insert)}
            return False
        written = {fire.id for fire in portion}
        self.opened = self.opened or bool(portion)
        self.claims += [claim for claim in self._share.claims if claim.fire is None or claim.fire.id in written]
        self._left = rest
        self._seen = {**self._seen, "next_fire_at": step.values.get("next_fire_at")}
        return True

    def _step(self, rest: Sequence[Fire]) -> ClaimWrite:
        if not rest:
            return self._steps.of(self._due.row)
        return self._steps.to(self._due.row, rest[0].nominal_at + self._due.row.offset_ms)

    def _not_there(self, fires: Sequence[Fire], owing: FireTransaction) -> list[Fire]:
        """Without those that exist: an instant that is claimed again has the same fire."""
        on_head = None if owing.on_head is None else owing.on_head.id
        return [fire for fire in fires if fire.id != on_head and place(fire_key(fire)) not in self._there]


def _check_body(head: Item) -> None:
    """`InvalidSchedule` when the body does not read, of which the index has only a part. One that lies apart is not looked at."""
    if "body_revision" not in head:
        read_body(0, 0, 0, whole_body(head, None))
