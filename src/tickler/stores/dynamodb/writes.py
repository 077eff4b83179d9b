"""Writing schedules: optimistic, each whole or not at all, and never twice where an answer was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.changes import Change, Removal
from tickler.dynamo import Condition, Item, Outcome, Statement, TransactionCancelled, execute_many
from tickler.dynamo.batches import in_turns
from tickler.dynamo.client import pause
from tickler.dynamo.failures import worth_another_try
from tickler.errors import PartlyWritten, StoreUnavailable, TicklerError
from tickler.schedule import Id
from tickler.schedules import Decide
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.reads import Known, read
from tickler.stores.dynamodb.records import TRIES, DynamodbRecords
from tickler.stores.dynamodb.table import LOST, Table, refused

CHUNK = 1000  # schedules that are written together before the next


class Plan(NamedTuple):
    """What is to be said to write one change: one statement, or more in a transaction."""

    id: Id
    statements: list[Statement]
    revision: str | None  # None: it is deleted


class Writer:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._records = records

    async def change(self, known: dict[Id, Known], decide: Decide) -> None:
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

    async def _plan_all(self, changes: Sequence[Change | Removal], known: Mapping[Id, Known]) -> list[Plan]:
        settings = await self._table.settings.get()
        plans = [self._plan(change, known.get(_id(change)), settings.write_shards) for change in changes]
        await self._records.remember_zones({change.schedule.tz for change in changes if isinstance(change, Change)})
        return plans

    async def _still_undone(self, lost: Sequence[Plan], known: dict[Id, Known]) -> set[Id]:
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

    def _plan(self, change: Change | Removal, before: Known | None, shards: int) -> Plan:
        id = _id(change)
        if isinstance(change, Removal):
            assert before is not None
            statements = [self._table.delete(layout.head_key(id), _unchanged(before.head))]
            if "body_revision" in before.head:
                statements.append(self._table.delete(layout.body_key(id, before.head["body_revision"]), {}))
            return Plan(id, statements, None)
        head_before = None if before is None else before.head
        home = self._table.home if head_before is None else head_before["home"]["S"]
        new = layout.written(change, head_before, None if before is None else before.body, home, shards)
        if head_before is None:
            statements = [self._table.insert(new.head)]
        else:
            values = {name: value for name, value in new.head.items() if name not in ("pk", "sk")}
            statements = [self._table.update(layout.head_key(id), values, _unchanged(head_before), new.removed)]
        statements += self._plan_body(id, new, head_before)
        return Plan(id, statements, new.head["revision"]["S"])

    def _plan_body(self, id: Id, new: layout.Written, head_before: Item | None) -> list[Statement]:
        statements = [] if new.body is None else [self._table.insert(new.body)]
        apart = None if head_before is None else head_before.get("body_revision")
        if apart is not None and (new.body is not None or new.body_goes):
            statements.append(self._table.delete(layout.body_key(id, apart), {}))
        return statements

    async def _write(self, plans: Sequence[Plan], written_before: int) -> list[Plan]:
        """Write, some at a time; those that were lost to somebody else. `PartlyWritten` says how far it came."""
        lost: list[Plan] = []
        done = written_before
        for start in range(0, len(plans), CHUNK):
            chunk = plans[start : start + CHUNK]
            single = [plan for plan in chunk if len(plan.statements) == 1]
            double = [plan for plan in chunk if len(plan.statements) > 1]
            outcomes = await execute_many(self._table.client, [plan.statements[0] for plan in single])
            outcomes += await in_turns(double, self._transact)
            results = [_done(outcome) for outcome in outcomes]
            done += sum(result is True for result in results)
            lost += [plan for plan, result in zip([*single, *double], results, strict=True) if result is False]
            for result in results:
                if isinstance(result, Exception):
                    raise self._cut_short(result, done, written_before + len(plans))
        return lost

    def _cut_short(self, failure: Exception, done: int, total: int) -> Exception:
        if done == 0:
            return failure
        return PartlyWritten(self._table.label, done, total, failure)

    async def _transact(self, plan: Plan) -> Outcome:
        """A head and its body, both or neither. A transaction in the way of another one is tried again."""
        token = layout.new_revision()  # the same for every attempt: what was done is not done twice
        request = {
            "TransactStatements": [{"Statement": each.text, "Parameters": each.parameters} for each in plan.statements],
            "ClientRequestToken": token,
        }
        for attempt in range(1, TRIES + 1):
            try:
                await self._table.client.call("ExecuteTransaction", request)
            except TransactionCancelled as cancelled:
                codes = {code for code, _ in cancelled.reasons if code is not None}
                if not codes or not all(map(worth_another_try, codes)):
                    return Outcome("ConditionalCheckFailed" if codes & LOST else f"{sorted(codes)}", None)
                await pause(attempt)
            else:
                return Outcome(None, None)
        raise StoreUnavailable(f"{self._table.label}: {plan.id} was written by others {TRIES} times in a row: try again")


def _id(change: Change | Removal) -> Id:
    return change.id if isinstance(change, Removal) else change.schedule.id


def _unchanged(head: Item) -> Condition:
    """The condition that a head is as it was read: not written, not claimed, not set aside."""
    return {"revision": head["revision"], "next_fire_at": head.get("next_fire_at")}


def _done(outcome: Outcome | Exception) -> bool | Exception:
    """Whether it was written; False when it was lost to somebody else."""
    if isinstance(outcome, Exception):
        return outcome
    return outcome.done if outcome.done or outcome.code in LOST else refused(outcome)
