"""The pure middle of every claim: due rows in, what to do with each of them out.

A store selects and locks what is due, asks `advance`, and applies the answer in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tickler.errors import InvalidWhen, UnknownTimezone
from tickler.model.index_row import IndexRow
from tickler.when import When, read_when

# Bumped when rows are written in a way that earlier workers would misread. They leave such rows alone.
ROW_FORMAT = 1


class RowProblem(NamedTuple):
    """A due row that does not read. `lacking_zone` is set when only its zone is unknown here."""

    row: Any
    reason: str
    lacking_zone: str | None


def unreadable(problem: RowProblem) -> tuple[Any, ...]:
    """The row as `AdvancePlan.aside` has it."""
    row = tuple(problem.row)
    return (*row[1:3], "unreadable", problem.reason, *row[3:])


class AdvancePlan:
    """What a claim does: `moved[i]` goes to `moved_to[i]`, `finished` and `problems` leave the index."""

    __slots__ = ("claimed", "finished", "moved", "moved_to", "problems")

    def __init__(self) -> None:
        self.claimed: list[IndexRow] = []  # as they were, in the order they came
        self.moved: list[Any] = []  # handles
        self.moved_to: list[int] = []
        self.finished: list[Any] = []
        self.problems: list[RowProblem] = []

    def aside(self) -> list[tuple[Any, ...]]:
        """What is kept outside the index: schedules that are finished, and rows that do not read.

        Each is `(owner, key, state, reason, when_text, tz, next_fire_at, ends_at, offset_ms, managed)`.
        """
        finished = [(*row[1:3], "finished", None, *row[3:]) for row in map(tuple, self.finished) if row[-1]]
        return [*finished, *map(unreadable, self.problems)]


def advance(rows: Iterable[Iterable[Any]], now_ms: int) -> AdvancePlan:
    """Decide for rows of `(handle, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed)`.

    The handle is whatever finds the row again. The next fire is the first instant that, moved by the row's offset, lies
    after `now_ms`; of a row that is taken ahead of its time, the one after that. Each (expression, zone) is read and computed
    once.
    """
    result = AdvancePlan()
    claimed, moved, moved_to = result.claimed.append, result.moved.append, result.moved_to.append
    readings: dict[tuple[str, str], tuple[When, int | None] | RowProblem] = {}
    last_instants: dict[When, int | None] = {}
    for row in rows:
        handle, owner, key, text, tz, next_fire_at, ends_at, offset_ms, managed = row
        reading = readings.get((text, tz))
        if reading is None:
            reading = readings[text, tz] = _read(text, tz, now_ms)
        if isinstance(reading, RowProblem):
            result.problems.append(reading._replace(row=row))
            continue
        when, next_at = reading
        if next_fire_at > now_ms:
            next_at = when.next_after(next_fire_at - offset_ms)
        elif offset_ms:
            if when not in last_instants:
                last_instants[when] = when.last_before(now_ms)
            last_at = last_instants[when]
            if last_at is not None and last_at + offset_ms > now_ms:
                next_at = last_at  # its spread puts it after now
        claimed(IndexRow(owner, key, when, next_fire_at, ends_at, offset_ms, bool(managed)))
        if next_at is None or (ends_at is not None and next_at > ends_at):
            result.finished.append(row)
        else:
            moved(handle)
            moved_to(next_at + offset_ms)
    return result


def _read(text: str, tz: str, now_ms: int) -> tuple[When, int | None] | RowProblem:
    try:
        when = read_when(text, tz)
    except UnknownTimezone as error:
        return RowProblem((), str(error), error.name)
    except InvalidWhen as error:
        return RowProblem((), str(error), None)
    return when, when.next_after(now_ms)


def lacking_zones(problems: Iterable[RowProblem]) -> set[str]:
    """Zones that this machine lacks. Where another machine has written one, this worker is at fault, not the row."""
    return {problem.lacking_zone for problem in problems if problem.lacking_zone is not None}


def readable(rows: Iterable[Iterable[Any]]) -> list[IndexRow]:
    """Of rows of `(owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed)`, those that this worker can read."""
    found: list[IndexRow] = []
    for owner, key, text, tz, next_fire_at, ends_at, offset_ms, managed in rows:
        try:
            when = read_when(text, tz)
        except InvalidWhen:
            continue
        found.append(IndexRow(owner, key, when, next_fire_at, ends_at, offset_ms, bool(managed)))
    return found


def reads(when_text: str, tz: str) -> bool:
    """Whether this worker can read a row."""
    try:
        read_when(when_text, tz)
    except InvalidWhen:
        return False
    return True
