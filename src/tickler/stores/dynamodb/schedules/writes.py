"""Writes schedules with optimistic locking, each atomically, and never twice if a response was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo.batches import Outcome, run_concurrently
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.transactions import TransactionPart
from tickler.errors import PartlyWritten, StoreUnavailable, TicklerError
from tickler.model.schedule import Id
from tickler.schedules.contract import Decide
from tickler.schedules.write import ScheduleChange, ScheduleRemoval, id_of
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.schedules.cancellation import cancellations, deletable, unchanged
from tickler.stores.dynamodb.schedules.reads import StoredItem, read
from tickler.stores.dynamodb.table import LOST, TRIES, Table, all_of, refused
from tickler.stores.dynamodb.transactions import Delete, Insert, Update, Write, write_all

CHUNK_SIZE = 1000  # schedules that are written concurrently


class WritePlan(NamedTuple):
    """The writes of one change, in one transaction if there are several."""

    id: Id
    writes: list[Write]
    revision: str | None  # None for a deletion


class Writer:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._records = records

    async def change(self, known: dict[Id, StoredItem], decide: Decide) -> None:
        """Let `decide` plan the changes, and write them. Repeats those that lost a race; the others stay written.

        `decide` always gets all schedules, including those already written, as they were before, so that its counts are right.
        """
        undone: set[Id] | None = None  # None means all
        written = 0
        for attempt in range(1, TRIES + 1):
            try:
                changes = decide({id: each.stored for id, each in known.items() if each.stored is not None})
                if undone is not None:
                    changes = [change for change in changes if id_of(change) in undone]
                plans = await self._plan_all(changes, known)
                lost = await self._write(plans, written)
                written += len(plans) - len(lost)
                undone = await self._still_undone(lost, known)
            except PartlyWritten:
                raise
            except TicklerError as error:
                raise self._with_progress(error, written, written + len(undone or ())) from error
            if not undone:
                return
            await pause(attempt)
        failure = StoreUnavailable(f"{self._table.label}: others changed the same schedules {TRIES} times in a row: try again")
        raise self._with_progress(failure, written, written + len(undone or ()))

    async def parts(
        self, known: dict[Id, StoredItem], decide: Decide
    ) -> tuple[Sequence[ScheduleChange | ScheduleRemoval], list[TransactionPart]]:
        """Return the changes that `decide` plans as parts of another transaction. Their conditions guard what was read."""
        changes = decide({id: each.stored for id, each in known.items() if each.stored is not None})
        plans = await self._plan_all(changes, known, joins=True)
        return changes, [
            TransactionPart(write.part(self._table.name), f"the schedule {plan.id}") for plan in plans for write in plan.writes
        ]

    async def plan(self, change: ScheduleChange, before: StoredItem | None) -> list[Write]:
        """Return the writes of one change for another transaction."""
        known = {} if before is None else {change.schedule.id: before}
        (plan,) = await self._plan_all([change], known)
        return plan.writes

    async def _plan_all(
        self, changes: Sequence[ScheduleChange | ScheduleRemoval], known: Mapping[Id, StoredItem], *, joins: bool = False
    ) -> list[WritePlan]:
        settings = await self._table.settings.get()
        plans = [
            self._plan(change, known.get(id_of(change)), settings.write_shards)
            for change in changes
            if isinstance(change, ScheduleChange)
        ]
        removals = [change for change in changes if isinstance(change, ScheduleRemoval)]
        plans += all_of(
            await run_concurrently(removals, lambda removal: self._plan_removal(removal, known[removal.id].head, joins))
        )
        await self._records.remember_zones({change.schedule.tz for change in changes if isinstance(change, ScheduleChange)})
        return plans

    async def _still_undone(self, lost: Sequence[WritePlan], known: dict[Id, StoredItem]) -> set[Id]:
        """Return the ids whose write lost a race to another writer, and refresh them in `known`."""
        again = await read(self._table, [plan.id for plan in lost])
        undone = set()
        for plan in lost:
            now = again.get(plan.id)
            if now is None and plan.revision is None:
                continue  # deleted, as intended
            if now is not None and now.head["revision"]["S"] == plan.revision:
                continue  # written by an earlier attempt whose response was lost
            undone.add(plan.id)
            known.pop(plan.id, None)
            if now is not None:
                known[plan.id] = now
        return undone

    async def _plan_removal(self, removal: ScheduleRemoval, head: Item, joins: bool) -> WritePlan:
        """Plan to delete a schedule with its body and its fires."""
        writes: list[Write] = [Delete(layout.head_key(removal.id), deletable(head))]
        if "body_revision" in head:
            writes.append(Delete(layout.body_key(removal.id, head["body_revision"]), {}))
        return WritePlan(removal.id, [*writes, *await cancellations(self._table, removal, head, joins=joins)], None)

    def _plan(self, change: ScheduleChange, before: StoredItem | None, shards: int) -> WritePlan:
        id = change.schedule.id
        head_before = None if before is None else before.head
        home = self._table.home if head_before is None else head_before["home"]["S"]
        new = layout.schedule_items(change, head_before, None if before is None else before.body, home, shards)
        writes: list[Write] = [Insert(new.head)]
        if head_before is not None:
            values = {name: value for name, value in new.head.items() if name not in ("pk", "sk")}
            writes = [Update(layout.head_key(id), values, unchanged(head_before), new.removed)]
        if new.body is not None:
            writes.append(Insert(new.body))
        old_body = None if head_before is None else head_before.get("body_revision")
        if old_body is not None and (new.body is not None or new.is_body_obsolete):
            writes.append(Delete(layout.body_key(id, old_body), {}))
        return WritePlan(id, writes, new.head["revision"]["S"])

    async def _write(self, plans: Sequence[WritePlan], written_before: int) -> list[WritePlan]:
        """Write in chunks, and return the plans that lost a race. Raises `PartlyWritten` if a failure stops it half-way."""
        lost: list[WritePlan] = []
        done = written_before
        for start in range(0, len(plans), CHUNK_SIZE):
            chunk = plans[start : start + CHUNK_SIZE]
            results = [_done(outcome) for outcome in await write_all(self._table, [plan.writes for plan in chunk])]
            done += sum(result is True for result in results)
            lost += [plan for plan, result in zip(chunk, results, strict=True) if result is False]
            for result in results:
                if isinstance(result, Exception):
                    raise self._with_progress(result, done, written_before + len(plans))
        return lost

    def _with_progress(self, failure: Exception, done: int, total: int) -> Exception:
        if done == 0:
            return failure
        return PartlyWritten(self._table.label, done, total, failure)


def _done(outcome: Outcome | Exception) -> bool | Exception:
    """Whether it was written. False if another writer was first."""
    if isinstance(outcome, Exception):
        return outcome
    return outcome.done if outcome.done or outcome.code in LOST else refused(outcome)
