"""Writing schedules: optimistic, each whole or not at all, and never twice where an answer was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo import Item, Outcome
from tickler.dynamo.batches import in_turns
from tickler.dynamo.client import pause
from tickler.errors import PartlyWritten, StoreUnavailable, TicklerError
from tickler.model.schedule import Id
from tickler.schedules.contract import Decide
from tickler.schedules.write import ScheduleChange, ScheduleRemoval
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.schedules.cancellation import cancellations, deletable, unchanged
from tickler.stores.dynamodb.schedules.reads import StoredItem, read
from tickler.stores.dynamodb.table import LOST, TRIES, Table, all_of, refused
from tickler.stores.dynamodb.transactions import Delete, Insert, Update, Write, write_all

CHUNK = 1000  # schedules that are written together before the next


class WritePlan(NamedTuple):
    """What is to be written for one change: together, if it is more than one thing."""

    id: Id
    writes: list[Write]
    revision: str | None  # None: it is deleted


class Writer:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._records = records

    async def change(self, known: dict[Id, StoredItem], decide: Decide) -> None:
        """Decide on all that was read, write, and once more for what was lost; what is written stays written.

        `decide` is always shown the whole: what is written already as it was before, so that its counts are right.
        """
        undone: set[Id] | None = None  # all of them
        written = 0
        for attempt in range(1, TRIES + 1):
            try:
                changes = decide({id: each.stored for id, each in known.items() if each.stored is not None})
                if undone is not None:
                    changes = [change for change in changes if _id(change) in undone]
                plans = await self._plan_all(changes, known)
                lost = await self._write(plans, written)
                written += len(plans) - len(lost)
                undone = await self._still_undone(lost, known)
            except PartlyWritten:
                raise
            except TicklerError as error:
                raise self._cut_short(error, written, written + len(undone or ())) from error
            if not undone:
                return
            await pause(attempt)
        failure = StoreUnavailable(f"{self._table.label}: others changed the same schedules {TRIES} times in a row: try again")
        raise self._cut_short(failure, written, written + len(undone or ()))

    async def _plan_all(
        self, changes: Sequence[ScheduleChange | ScheduleRemoval], known: Mapping[Id, StoredItem]
    ) -> list[WritePlan]:
        settings = await self._table.settings.get()
        plans = [
            self._plan(change, known.get(_id(change)), settings.write_shards)
            for change in changes
            if isinstance(change, ScheduleChange)
        ]
        removals = [change for change in changes if isinstance(change, ScheduleRemoval)]
        plans += all_of(await in_turns(removals, lambda removal: self._plan_removal(removal, known[removal.id].head)))
        await self._records.remember_zones({change.schedule.tz for change in changes if isinstance(change, ScheduleChange)})
        return plans

    async def _still_undone(self, lost: Sequence[WritePlan], known: dict[Id, StoredItem]) -> set[Id]:
        """Those whose write was lost to somebody else, with `known` brought up to date."""
        again = await read(self._table, [plan.id for plan in lost])
        undone = set()
        for plan in lost:
            now = again.get(plan.id)
            if now is None and plan.revision is None:
                continue  # it is gone, as it should be
            if now is not None and now.head["revision"]["S"] == plan.revision:
                continue  # written by an earlier attempt whose answer was lost
            undone.add(plan.id)
            known.pop(plan.id, None)
            if now is not None:
                known[plan.id] = now
        return undone

    async def _plan_removal(self, removal: ScheduleRemoval, head: Item) -> WritePlan:
        """A schedule goes with its body and with all that it owes."""
        writes: list[Write] = [Delete(layout.head_key(removal.id), deletable(head))]
        if "body_revision" in head:
            writes.append(Delete(layout.body_key(removal.id, head["body_revision"]), {}))
        return WritePlan(removal.id, [*writes, *await cancellations(self._table, removal, head)], None)

    def _plan(self, change: ScheduleChange, before: StoredItem | None, shards: int) -> WritePlan:
        id = change.schedule.id
        head_before = None if before is None else before.head
        home = self._table.home if head_before is None else head_before["home"]["S"]
        new = layout.written(change, head_before, None if before is None else before.body, home, shards)
        writes: list[Write] = [Insert(new.head)]
        if head_before is not None:
            values = {name: value for name, value in new.head.items() if name not in ("pk", "sk")}
            writes = [Update(layout.head_key(id), values, unchanged(head_before), new.removed)]
        if new.body is not None:
            writes.append(Insert(new.body))
        apart = None if head_before is None else head_before.get("body_revision")
        if apart is not None and (new.body is not None or new.body_goes):
            writes.append(Delete(layout.body_key(id, apart), {}))
        return WritePlan(id, writes, new.head["revision"]["S"])

    async def _write(self, plans: Sequence[WritePlan], written_before: int) -> list[WritePlan]:
        """Write, some at a time; those that were lost to somebody else. `PartlyWritten` says how far it came."""
        lost: list[WritePlan] = []
        done = written_before
        for start in range(0, len(plans), CHUNK):
            chunk = plans[start : start + CHUNK]
            results = [_done(outcome) for outcome in await write_all(self._table, [plan.writes for plan in chunk])]
            done += sum(result is True for result in results)
            lost += [plan for plan, result in zip(chunk, results, strict=True) if result is False]
            for result in results:
                if isinstance(result, Exception):
                    raise self._cut_short(result, done, written_before + len(plans))
        return lost

    def _cut_short(self, failure: Exception, done: int, total: int) -> Exception:
        if done == 0:
            return failure
        return PartlyWritten(self._table.label, done, total, failure)


def _id(change: ScheduleChange | ScheduleRemoval) -> Id:
    return change.id if isinstance(change, ScheduleRemoval) else change.schedule.id


def _done(outcome: Outcome | Exception) -> bool | Exception:
    """Whether it was written; False when it was lost to somebody else."""
    if isinstance(outcome, Exception):
        return outcome
    return outcome.done if outcome.done or outcome.code in LOST else refused(outcome)
