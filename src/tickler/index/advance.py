"""The pure middle of every claim: takes due rows and decides what to do with each.

A store selects and locks due rows, calls `advance`, and applies the plan in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tickler.errors import InvalidWhen, UnknownTimezone
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Id, State
from tickler.when import When, read_when

# Raised when rows are written in a way that earlier workers would misread; they leave such rows alone.
ROW_FORMAT = 1


class DueRow(msgspec.Struct, gc=False):
    """A row of the index as a store keeps it: the expression is still text. The order of fields is that of SQL columns."""

    handle: Any  # finds the row again: a key, or its place on disk
    owner: str
    key: str
    when_text: str
    tz: str
    next_fire_at: int
    ends_at: int | None
    offset_ms: int
    managed: bool

    @property
    def id(self) -> Id:
        return Id(self.owner, self.key)


class RowProblem(NamedTuple):
    """A due row that is unreadable here. `lacking_zone` is set when only its zone is unknown to this machine."""

    row: DueRow
    reason: str
    lacking_zone: str | None


class AsideRow(NamedTuple):
    """A row that is kept outside the index, because its schedule is finished or it is unreadable."""

    owner: str
    key: str
    state: State
    reason: str | None
    when_text: str
    tz: str
    next_fire_at: int
    ends_at: int | None
    offset_ms: int
    managed: bool


class AdvancePlan:
    """What a claim does: `moved[i]` advances to `moved_to[i]`; `finished` and `problems` leave the index."""

    __slots__ = ("claimed", "finished", "moved", "moved_to", "problems")

    def __init__(self) -> None:
        self.claimed: list[IndexRow] = []  # as they were, in the order in which they came
        self.moved: list[Any] = []  # handles
        self.moved_to: list[int] = []
        self.finished: list[DueRow] = []
        self.problems: list[RowProblem] = []

    def left(self) -> list[Any]:
        """Return the handles of rows that leave the index."""
        return [row.handle for row in self.finished] + [problem.row.handle for problem in self.problems]

    def aside(self) -> list[AsideRow]:
        """Return the rows to keep outside the index: those of finished schedules, and unreadable ones."""
        finished = [_aside(row, None) for row in self.finished if row.managed]
        return finished + [_aside(problem.row, problem.reason) for problem in self.problems]


def _aside(row: DueRow, reason: str | None) -> AsideRow:
    state: State = "finished" if reason is None else "unreadable"
    due_at, ends_at = row.next_fire_at, row.ends_at
    return AsideRow(row.owner, row.key, state, reason, row.when_text, row.tz, due_at, ends_at, row.offset_ms, row.managed)


def advance(rows: Iterable[DueRow], now_ms: int) -> AdvancePlan:
    """Decide what a claim at `now_ms` does with each row.

    A row's next fire is the first instant that, moved by the row's offset, lies after `now_ms`; a row that is claimed ahead of
    its time gets the instant after that. Each (expression, zone) is parsed and computed once.
    """
    result = AdvancePlan()
    claimed, moved, moved_to = result.claimed.append, result.moved.append, result.moved_to.append
    readings: dict[tuple[str, str], tuple[When, int | None] | None] = {}
    problems: dict[tuple[str, str], RowProblem] = {}
    last_instants: dict[When, int | None] = {}
    for row in rows:
        spelled = (row.when_text, row.tz)
        reading = readings.get(spelled)
        if reading is None:
            if spelled not in problems:
                reading = readings[spelled] = _read(row, now_ms, problems)
            if reading is None:
                result.problems.append(problems[spelled]._replace(row=row))
                continue
        when, next_at = reading
        next_fire_at, ends_at, offset_ms = row.next_fire_at, row.ends_at, row.offset_ms
        if next_fire_at > now_ms:
            next_at = when.next_after(next_fire_at - offset_ms)
        elif offset_ms:
            if when not in last_instants:
                last_instants[when] = when.last_before(now_ms)
            last_at = last_instants[when]
            if last_at is not None and last_at + offset_ms > now_ms:
                next_at = last_at  # its spread puts it after now
        claimed(IndexRow(row.owner, row.key, when, next_fire_at, ends_at, offset_ms, bool(row.managed)))
        if next_at is None or (ends_at is not None and next_at > ends_at):
            result.finished.append(row)
        else:
            moved(row.handle)
            moved_to(next_at + offset_ms)
    return result


def _read(row: DueRow, now_ms: int, problems: dict[tuple[str, str], RowProblem]) -> tuple[When, int | None] | None:
    try:
        when = read_when(row.when_text, row.tz)
    except InvalidWhen as error:
        zone = error.name if isinstance(error, UnknownTimezone) else None
        problems[row.when_text, row.tz] = RowProblem(row, str(error), zone)
        return None
    return when, when.next_after(now_ms)


def lacking_zones(problems: Iterable[RowProblem]) -> set[str]:
    """Return zones that this machine lacks. Where another machine wrote one, this worker is at fault and not the row."""
    return {problem.lacking_zone for problem in problems if problem.lacking_zone is not None}


def readable(rows: Iterable[DueRow]) -> list[IndexRow]:
    """Return the rows that this worker can read."""
    found: list[IndexRow] = []
    for row in rows:
        try:
            when = read_when(row.when_text, row.tz)
        except InvalidWhen:
            continue
        found.append(IndexRow(row.owner, row.key, when, row.next_fire_at, row.ends_at, row.offset_ms, bool(row.managed)))
    return found


def reads(when_text: str, tz: str) -> bool:
    """Tell whether this worker can read a row."""
    try:
        read_when(when_text, tz)
    except InvalidWhen:
        return False
    return True
