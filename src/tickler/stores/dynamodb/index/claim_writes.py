"""The writes of a claim on its rows, shared by claims from the index and claims that open fires."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from tickler.dynamo.batches import Outcome
from tickler.dynamo.codec import Attribute, Item
from tickler.dynamo.statements import Condition, Statement
from tickler.errors import WorkerUnfit
from tickler.index.advance import ROW_FORMAT, AdvancePlan, DueRow, RowProblem, lacking_zones
from tickler.index.row_reports import OutdatedReport
from tickler.model.schedule import Id
from tickler.records.kinds import OUTDATED
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.layout import IN_INDEX, number, text
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.table import Table

LEFTOVER_MS = 24 * 3_600_000  # a finished row stays so long, outside the index, so that a repeated claim recognises it

log = logging.getLogger("tickler.index")


class DueReader:
    """Reads the rows of `due` for one claim. Skips malformed rows and rows of a newer format."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.newer_is_due = False

    def read(self, item: Item) -> DueRow | None:
        try:
            if layout.format_of(item) <= ROW_FORMAT:
                return layout.due_row(item)
        except (KeyError, ValueError):
            log.warning("%s: skipped a malformed due item, which Tickler did not write: %s", self._label, item)
            return None
        self.newer_is_due = True
        return None


class ClaimWrite(NamedTuple):
    """The attributes that a claim sets on a row, and those that it removes."""

    values: Item
    removed: list[str]


class ClaimWrites:
    """The write of each row of a claim, as decided by `advance`, and its undo."""

    def __init__(self, table: Table, result: AdvancePlan, shards: int, now_ms: int) -> None:
        self.token = text(layout.new_revision())  # identifies the writes of this claim
        self._table = table
        self._shards = shards
        self._now_ms = now_ms
        self._moved_to = {handle[0]["sk"]["S"]: at for handle, at in zip(result.moved, result.moved_to, strict=True)}
        self._problems = {problem.row.handle[0]["sk"]["S"]: problem for problem in result.problems}

    def of(self, row: DueRow) -> ClaimWrite:
        sort = row.handle[0]["sk"]["S"]
        if sort in self._moved_to:
            return self.to(row, self._moved_to[sort])
        values = _set_aside(row, self._problems[sort]) if sort in self._problems else _finish(row, self._now_ms)
        return ClaimWrite({**values, "claim": self.token}, list(IN_INDEX))

    def to(self, row: DueRow, next_fire_at: int) -> ClaimWrite:
        return ClaimWrite({"next_fire_at": number(next_fire_at), "due_shard": self._shard(row), "claim": self.token}, [])

    def aside(self, problem: RowProblem, condition: Condition, gone: Sequence[str] = ()) -> Statement:
        """Set aside a row found unreadable after it was claimed."""
        row: DueRow = problem.row
        values = {**_set_aside(row, problem), "claim": self.token}
        return self._table.update(row.handle[0], values, condition, [*IN_INDEX, *gone])

    def own(self, row: DueRow) -> Condition:
        """Return the condition that this claim got the row, and nobody has changed it since."""
        return {"claim": self.token, "revision": text(row.handle[2])}

    def undo(self, row: DueRow, write: ClaimWrite) -> Statement:
        """Restore a row as it was before the claim, unless somebody has changed it since."""
        values = {"next_fire_at": number(row.next_fire_at), "due_shard": self._shard(row)}
        if row.managed and "listed" in write.values:
            values["listed"] = text(layout.listed_in("active", Id(row.owner, row.key)))
        gone = [name for name in write.values if name not in (*IN_INDEX, "listed")]
        return self._table.update(row.handle[0], values, self.own(row), gone)

    def is_claimed(self, outcome: Outcome | Exception) -> bool:
        """Whether this claim got the row, if only by an earlier attempt whose response was lost."""
        if isinstance(outcome, Exception):
            return False
        return outcome.done or (outcome.lost and outcome.item is not None and outcome.item.get("claim") == self.token)

    def _shard(self, row: DueRow) -> Attribute:
        return text(layout.due_shard(Id(row.owner, row.key), self._table.home, self._shards))


async def check_zones(records: DynamodbRecords, result: AdvancePlan) -> None:
    """Raise `WorkerUnfit` if a row has a time zone that this machine lacks and another machine has."""
    lacking = await records.known_zones(lacking_zones(result.problems))
    if lacking:
        raise WorkerUnfit(lacking)


async def report_outdated(outdated: OutdatedReport, records: DynamodbRecords, now_ms: int) -> None:
    report = outdated.make(now_ms)
    if report is not None:
        value, expires_at = report
        await records.put(OUTDATED, outdated.name, value, now_ms=now_ms, expires_at=expires_at)


def seen(row: DueRow) -> Condition:
    """Return the condition that nobody has claimed or changed the row since it was read."""
    _, next_fire_at, revision = row.handle
    return {"next_fire_at": number(next_fire_at), "revision": text(revision)}


def _set_aside(row: DueRow, problem: RowProblem) -> Item:
    return {
        "aside": text("unreadable"),
        "reason": text(problem.reason[:200]),
        "was_due_at": number(row.next_fire_at),
        "listed": text(layout.listed_in("unreadable", Id(row.owner, row.key))),
    }


def _finish(row: DueRow, now_ms: int) -> Item:
    """Mark a schedule as finished. A row without a schedule is deleted by its time to live."""
    if row.managed:
        return {"aside": text("finished"), "listed": text(layout.listed_in("finished", Id(row.owner, row.key)))}
    return {"ttl": number((now_ms + LEFTOVER_MS) // 1000)}
