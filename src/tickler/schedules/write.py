"""The pure middle of every write to a schedule: compares the declared with the stored schedule and decides what to change.

A schedule and its index row change together, so a change covers both. A store applies it in one transaction.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from tickler.errors import InvalidSchedule, NeverFires
from tickler.index.advance import AsideRow
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Id, Schedule, State, StoredSchedule, declared_fields
from tickler.model.schedule_json import encode_body
from tickler.when import At, Cron, Every, Unreadable, When, iso_utc

# keep: leave index and set-aside rows as they are, since a worker may be advancing them.
# enter: put `row` into the index. leave: take it out. finish: take it out and keep it as finished.
Move = Literal["keep", "enter", "leave", "finish"]

TAKEN_AHEAD_MS = 15_000  # may be claimed already: workers claim up to 10 s ahead, and clocks differ a little


class ScheduleChange(msgspec.Struct, frozen=True, gc=False):
    """Write this schedule, at this version, and move its index row."""

    schedule: Schedule
    body: bytes
    version: int
    created_at: int
    updated_at: int
    move: Move
    row: IndexRow | None = None
    reason: str | None = None  # why it is paused, if its owner did not pause it

    @property
    def has_target(self) -> bool:
        """Tell whether workers deliver it; otherwise it is left to callers of `claim_due`."""
        return self.schedule.target is not None

    def columns(self) -> tuple[str, str, str, str, bool, int, int, int, str]:
        """Return the schedule as SQL stores keep it; `stored_schedule` reads it back."""
        schedule, when = self.schedule, self.schedule.when
        times = (self.version, self.created_at, self.updated_at)
        return (schedule.owner, schedule.key, str(when), when.tz, schedule.enabled, *times, self.body.decode())

    def finished(self) -> AsideRow:
        """Return the row to keep outside the index when the move is `finish`."""
        schedule = self.schedule
        when, due_at = schedule.when, self.updated_at
        return AsideRow(*schedule.id, "finished", None, str(when), when.tz, due_at, schedule.ends_at, 0, managed=True)

    def stored(self, before: StoredSchedule | None) -> StoredSchedule:
        """Return the schedule after the change; `before` is the one stored until now."""
        kept = before if self.move == "keep" else None
        states: dict[Move, State] = {"enter": "active", "leave": "paused", "finish": "finished", "keep": "active"}
        return StoredSchedule(
            **declared_fields(self.schedule),
            version=self.version,
            created_at=self.created_at,
            updated_at=self.updated_at,
            state=kept.state if kept else states[self.move],
            next_fire_at=kept.next_fire_at if kept else (None if self.row is None else self.row.next_fire_at),
            reason=self.reason,
        )


class ScheduleRemoval(NamedTuple):
    """Delete this schedule and its index row, and cancel its fires; the history keeps that until `expires_at`."""

    id: Id
    at: int
    expires_at: int


def put(
    schedule: Schedule,
    current: StoredSchedule | None,
    now_ms: int,
    *,
    finished_is_fine: bool = False,
    reason: str | None = None,
) -> ScheduleChange | None:
    """Decide a put. None if the same schedule is stored already. `reason` says why a disabled schedule is paused.

    A put that does not change the times keeps the next fire, due or not, if it lies within the bounds; otherwise the schedule
    starts from `now_ms`. With `finished_is_fine`, a schedule whose last instant has passed is stored as finished instead of
    refused.
    """
    if type(schedule.when) is Unreadable:
        raise InvalidSchedule("when", f"{str(schedule.when)!r} is unreadable: {schedule.when.reason}")
    schedule = _anchored(schedule, current, now_ms)
    if current is not None and current.state in ("active", "paused", "finished") and _same(schedule, current):
        return None
    if not schedule.enabled:
        return _change(schedule, current, now_ms, "leave", reason=reason)
    if current is not None and current.state in ("active", "finished") and _times(schedule) == _times(current):
        as_before = current.next_fire_at is None or (schedule.target is None) == (current.target is None)
        if _bounds(schedule) == _bounds(current) and as_before:
            return _change(schedule, current, now_ms, "keep")
        if not _begins_earlier(schedule, current, now_ms) and (kept := _row_within(schedule, current)) is not None:
            return _change(schedule, current, now_ms, "enter", kept)
    if finished_is_fine and _has_passed(schedule, now_ms):
        return _change(schedule, current, now_ms, "finish")
    return _change(schedule, current, now_ms, "enter", first_row(schedule, now_ms))


def send(schedule: Schedule, nominal_at: int, now_ms: int) -> ScheduleChange:
    """Decide a new one-shot that is sent at `nominal_at`: it enters the index although that is not after now."""
    offset_ms = schedule.offset_ms()
    row = IndexRow(*schedule.id, schedule.when, nominal_at + offset_ms, schedule.ends_at, offset_ms, managed=True)
    return _change(schedule, None, now_ms, "enter", row)


def pause(current: StoredSchedule, now_ms: int, reason: str | None = None) -> ScheduleChange | None:
    """Decide a pause. None if it is paused already."""
    if not current.enabled:
        return None
    return _change(replace(current.declared(), enabled=False), current, now_ms, "leave", reason=reason)


def resume(current: StoredSchedule, now_ms: int) -> ScheduleChange | None:
    """Decide a resume from now on; instants during the pause were not missed. None if it is not paused."""
    if current.state in ("active", "finished"):
        return None
    schedule = replace(current.declared(), enabled=True)
    return _change(schedule, current, now_ms, "enter", first_row(schedule, now_ms))


def reindex(current: StoredSchedule, now_ms: int) -> ScheduleChange | None:
    """Put a schedule that lost its row back into the index, from now on, or keep it as finished if no instant is left.

    None if it is not lost, or unreadable.
    """
    if current.state != "unindexed" or _cannot_change(current):
        return None
    schedule = current.declared()
    try:
        return _change(schedule, current, now_ms, "enter", first_row(schedule, now_ms))
    except NeverFires:
        return _change(schedule, current, now_ms, "finish")


def recompute(current: StoredSchedule, now_ms: int) -> ScheduleChange | None:
    """Move an active schedule that waits for a wrong instant to its next one. None if its instant is right.

    If its next instant is so soon that a worker may have claimed it, the one after it is used if that is as soon, and otherwise
    the result is None. So nothing fires twice, and nothing is left out.
    """
    if not is_misplaced(current, now_ms):
        return None
    schedule, offset_ms = current.declared(), current.offset_ms()
    nominal_at = _owed_after(current, max(now_ms - offset_ms, min(current.updated_at, now_ms)))
    if nominal_at is not None and nominal_at + offset_ms <= now_ms + TAKEN_AHEAD_MS:
        following = _owed_after(current, now_ms - offset_ms + TAKEN_AHEAD_MS)
        nominal_at = following if following is not None and following - nominal_at <= TAKEN_AHEAD_MS else None
    if nominal_at is None:
        return None
    row = IndexRow(*schedule.id, schedule.when, nominal_at + offset_ms, schedule.ends_at, offset_ms, managed=True)
    return _change(schedule, current, now_ms, "enter", row)


def is_misplaced(current: StoredSchedule, now_ms: int) -> bool:
    """Tell whether an active schedule waits for an instant that is not its own, or for one after its next.

    A due schedule is not misplaced, and neither is one without another instant to wait for: it should fire.
    """
    if current.state != "active" or current.next_fire_at is None or current.next_fire_at <= now_ms or _cannot_change(current):
        return False
    nominal_at = current.next_fire_at - current.offset_ms()
    latest_at = _owed_after(current, now_ms + TAKEN_AHEAD_MS)
    is_its_own = current.when.last_before(nominal_at) == nominal_at and _is_within(current, nominal_at)
    if is_its_own:
        return latest_at is not None and nominal_at > latest_at
    return _owed_after(current, now_ms) is not None


def first_row(schedule: Schedule, now_ms: int) -> IndexRow:
    """Return the index row of a schedule that begins now. `NeverFires` if no future instant lies within its bounds."""
    after = now_ms if schedule.starts_at is None else max(now_ms, schedule.starts_at - 1)
    nominal_at = schedule.when.next_after(after)
    if nominal_at is None or (schedule.ends_at is not None and nominal_at > schedule.ends_at):
        raise NeverFires(schedule.owner, schedule.key, _why_never(schedule, nominal_at))
    offset_ms = schedule.offset_ms()
    return IndexRow(
        schedule.owner, schedule.key, schedule.when, nominal_at + offset_ms, schedule.ends_at, offset_ms, managed=True
    )


def _owed_after(schedule: Schedule, at: int) -> int | None:
    """Return the first nominal instant after `at` within the schedule's bounds."""
    after = at if schedule.starts_at is None else max(at, schedule.starts_at - 1)
    nominal_at = schedule.when.next_after(after)
    return None if nominal_at is None or not _is_within(schedule, nominal_at) else nominal_at


def _is_within(schedule: Schedule, nominal_at: int) -> bool:
    starts = schedule.starts_at is None or nominal_at >= schedule.starts_at
    return starts and (schedule.ends_at is None or nominal_at <= schedule.ends_at)


def _cannot_change(current: StoredSchedule) -> bool:
    """Tell whether this version can read only a part of the stored schedule."""
    return current.newer or isinstance(current.when, Unreadable)


def _change(
    schedule: Schedule,
    current: StoredSchedule | None,
    now_ms: int,
    move: Move,
    row: IndexRow | None = None,
    reason: str | None = None,
) -> ScheduleChange:
    if current is not None and current.newer:
        raise InvalidSchedule(
            "schedule", f"{current.id} was written by a newer Tickler, and would lose fields that this one cannot read: upgrade"
        )
    version, created_at = (1, now_ms) if current is None else (current.version + 1, current.created_at)
    return ScheduleChange(schedule, encode_body(schedule, reason), version, created_at, now_ms, move, row, reason)


def _anchored(schedule: Schedule, current: StoredSchedule | None, now_ms: int) -> Schedule:
    """Give an interval without a start one at its first put, and keep it afterwards."""
    when = schedule.when
    if type(when) is not Every or when.start is not None:
        return schedule
    before = current.when if current is not None else None
    same = isinstance(before, Every) and before.interval_ms == when.interval_ms
    anchored: When = before if same and before is not None else when.starting(now_ms)
    return replace(schedule, when=anchored)


def _same(schedule: Schedule, current: StoredSchedule) -> bool:
    """Compare as stored, because 1 == True in Python but not in JSON."""
    declared = (schedule.when, schedule.enabled) == (current.when, current.enabled)
    return declared and not current.newer and encode_body(schedule) == encode_body(current)


def _times(schedule: Schedule) -> tuple[object, ...]:
    return schedule.when, schedule.policy.spread


def _bounds(schedule: Schedule) -> tuple[object, ...]:
    return schedule.starts_at, schedule.ends_at


def _begins_earlier(schedule: Schedule, current: StoredSchedule, now_ms: int) -> bool:
    """Tell whether a schedule that has not begun now begins sooner, so that its first fire may differ."""
    before = current.starts_at
    return before is not None and before > now_ms and (schedule.starts_at is None or schedule.starts_at < before)


def _row_within(schedule: Schedule, current: StoredSchedule) -> IndexRow | None:
    """Return the row with its current next fire, if that lies within the schedule's new bounds."""
    if current.next_fire_at is None:
        return None
    offset_ms = schedule.offset_ms()
    nominal_at = current.next_fire_at - offset_ms
    if not _is_within(schedule, nominal_at):
        return None
    return IndexRow(*schedule.id, schedule.when, current.next_fire_at, schedule.ends_at, offset_ms, managed=True)


def _has_passed(schedule: Schedule, now_ms: int) -> bool:
    last = schedule.when.last_before(now_ms if schedule.ends_at is None else min(now_ms, schedule.ends_at))
    if last is None or (schedule.starts_at is not None and last < schedule.starts_at):
        return False
    following = schedule.when.next_after(now_ms)
    return following is None or (schedule.ends_at is not None and following > schedule.ends_at)


def _why_never(schedule: Schedule, nominal_at: int | None) -> str:
    when = schedule.when
    if nominal_at is not None and schedule.ends_at is not None:
        return f"it ends at {iso_utc(schedule.ends_at)}, before its first fire at {iso_utc(nominal_at)}"
    if isinstance(when, At):
        if when.at_ms is None:
            return f"that date does not exist in {when.tz}"
        return f"its only instant, {iso_utc(when.at_ms)}, has passed or lies before its start"
    if str(when) == "weekly()":
        return "every day of its weekly plan is off: give a day a time"
    if isinstance(when, Unreadable):
        return when.reason
    if isinstance(when, Cron):
        return "its years have passed, or lie before its start"
    return "no instant is left"


def id_of(change: ScheduleChange | ScheduleRemoval) -> Id:
    return change.id if isinstance(change, ScheduleRemoval) else change.schedule.id
