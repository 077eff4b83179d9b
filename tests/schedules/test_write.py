"""The pure decisions behind every write to a schedule: what is declared and stored in, what to change out."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tickler.errors import InvalidInput, InvalidSchedule, NeverFires
from tickler.index.advance import DueRow, advance
from tickler.model.index_row import IndexRow
from tickler.model.policy import Policy
from tickler.model.schedule import Schedule, State, StoredSchedule
from tickler.model.schedule_json import encode_body
from tickler.schedules.write import (
    TAKEN_AHEAD_MS,
    Move,
    ScheduleChange,
    first_row,
    is_misplaced,
    pause,
    put,
    recompute,
    reindex,
    resume,
)
from tickler.when import At, Cron, Every, Unreadable, Weekly, When

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z, a Wednesday
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
CREATED_MS = NOW_MS - 30 * DAY_MS
SOAK = os.environ.get("TICKLER_SOAK") == "1"

HOURLY = Cron("0 * * * *")
PAST = At("2030-11-20T11:00:00Z")
AHEAD = At("2030-11-20T13:00:00Z")
UNREADABLE = Unreadable("never", "UTC", "expression of 'never': write five fields")


def schedule(when: object = HOURLY, **fields: object) -> Schedule:
    given: dict[str, object] = {"owner": "u1", "key": "digest", "when": when, **fields}
    return Schedule(**given)  # type: ignore[arg-type]  # any field of a schedule


def stored(declared: Schedule, state: State = "active", next_fire_at: int | None = NOW_MS + HOUR_MS) -> StoredSchedule:
    """It has been there for a while, at version 4."""
    return StoredSchedule(
        **{name: getattr(declared, name) for name in Schedule.__struct_fields__},
        version=4,
        created_at=CREATED_MS,
        updated_at=CREATED_MS + 1,
        state=state,
        next_fire_at=next_fire_at if state == "active" else None,
    )


def checked(change: ScheduleChange | None, declared: Schedule, current: StoredSchedule | None) -> ScheduleChange:
    """What holds of every change."""
    assert change is not None
    assert change.schedule.id == declared.id
    assert change.body == encode_body(declared)
    assert change.updated_at == NOW_MS
    assert (change.version, change.created_at) == ((1, NOW_MS) if current is None else (5, CREATED_MS))
    assert (change.row is not None) == (change.move == "enter"), "a row comes with entering and with nothing else"
    return change


# Put.


def test_a_new_schedule_enters_the_index_with_its_first_fire() -> None:
    change = checked(put(schedule(), None, NOW_MS), schedule(), None)
    assert change.row == IndexRow("u1", "digest", HOURLY, NOW_MS + HOUR_MS, managed=True)


def test_a_new_schedule_that_is_not_enabled_stays_out_of_the_index() -> None:
    declared = schedule(enabled=False)
    assert checked(put(declared, None, NOW_MS), declared, None).move == "leave"


ANY_STATE: list[StoredSchedule] = [
    stored(schedule()),
    stored(schedule(), next_fire_at=NOW_MS - DAY_MS),
    stored(schedule(enabled=False), "paused"),
    stored(schedule(PAST), "finished"),
]


@pytest.mark.parametrize("current", ANY_STATE, ids=lambda current: f"{current.state} {current.next_fire_at}")
def test_putting_what_is_stored_already_changes_nothing(current: StoredSchedule) -> None:
    assert put(current.declared(), current, NOW_MS) is None


@pytest.mark.parametrize("current", ANY_STATE, ids=lambda current: f"{current.state} {current.next_fire_at}")
def test_putting_back_what_was_got_changes_nothing(current: StoredSchedule) -> None:
    """Get, look, put back: what `get` returns is a Schedule too."""
    assert put(current, current, NOW_MS) is None


@pytest.mark.parametrize("state", ["unindexed", "unreadable"])
def test_putting_the_same_mends_a_schedule_that_should_be_in_the_index_and_is_not(state: State) -> None:
    """It is enabled and reads, here and now, and yet would not fire."""
    current = stored(schedule(), state)
    change = checked(put(schedule(), current, NOW_MS), schedule(), current)
    assert change.row == first_row(schedule(), NOW_MS)


@pytest.mark.parametrize(
    "current",
    [stored(schedule(UNREADABLE), "unreadable"), stored(schedule(UNREADABLE, enabled=False), "paused")],
    ids=lambda current: current.state,
)
def test_a_put_that_reads_mends_one_that_does_not(current: StoredSchedule) -> None:
    assert checked(put(schedule(), current, NOW_MS), schedule(), current).row == first_row(schedule(), NOW_MS)


NOT_THE_TIMES: list[dict[str, object]] = [
    {"payload": "new"},
    {"policy": Policy(missed="all", attempts=3)},
    {"delete_after": True},
]
THE_TIMES: list[dict[str, object]] = [
    {"when": Cron("30 * * * *")},
    {"when": Cron("0 * * * *", tz="Asia/Kolkata")},
    {"when": Every(hours=1, start=NOW_MS)},
    {"starts_at": NOW_MS + 5 * HOUR_MS},
    {"policy": Policy(spread=600)},
]


@pytest.mark.parametrize("fields", NOT_THE_TIMES, ids=str)
@pytest.mark.parametrize("next_fire_at", [NOW_MS + HOUR_MS, NOW_MS + 1, NOW_MS, NOW_MS - DAY_MS])
def test_a_put_that_does_not_change_the_times_keeps_the_next_fire_due_or_not(
    fields: dict[str, object], next_fire_at: int
) -> None:
    current, declared = stored(schedule(), next_fire_at=next_fire_at), schedule(**fields)
    change = checked(put(declared, current, NOW_MS), declared, current)
    assert change.move == "keep"
    after = change.stored(current)
    assert (after.state, after.next_fire_at, after.declared()) == ("active", next_fire_at, declared)


@pytest.mark.parametrize("starts_at", [None, NOW_MS - DAY_MS, NOW_MS + 2 * HOUR_MS])
def test_one_that_is_to_begin_sooner_gets_a_new_first_fire(starts_at: int | None) -> None:
    current = stored(schedule(starts_at=NOW_MS + DAY_MS), next_fire_at=NOW_MS + DAY_MS)
    declared = schedule(starts_at=starts_at)
    change = checked(put(declared, current, NOW_MS), declared, current)
    assert change.row == first_row(declared, NOW_MS)
    assert change.row.next_fire_at < NOW_MS + DAY_MS


@pytest.mark.parametrize("next_fire_at", [NOW_MS + HOUR_MS, NOW_MS + 1, NOW_MS, NOW_MS - DAY_MS])
def test_a_put_that_gives_or_takes_a_target_keeps_the_next_fire_and_tells_the_index(next_fire_at: int) -> None:
    """Whether a runner delivers it is written in its row."""
    aimless, aimed = schedule(), schedule(target="https://example.org/")
    for current, declared in ((aimless, aimed), (aimed, aimless)):
        before = stored(current, next_fire_at=next_fire_at)
        change = checked(put(declared, before, NOW_MS), declared, before)
        assert (change.move, change.has_target) == ("enter", declared is aimed)
        assert change.row == IndexRow("u1", "digest", HOURLY, next_fire_at, managed=True)
    elsewhere = schedule(target="https://example.com/")
    before = stored(aimed, next_fire_at=next_fire_at)
    assert checked(put(elsewhere, before, NOW_MS), elsewhere, before).move == "keep"


@pytest.mark.parametrize("fields", THE_TIMES, ids=str)
@pytest.mark.parametrize("next_fire_at", [NOW_MS + HOUR_MS, NOW_MS - DAY_MS])
def test_a_put_that_changes_the_times_computes_the_next_fire_from_now(fields: dict[str, object], next_fire_at: int) -> None:
    current, declared = stored(schedule(), next_fire_at=next_fire_at), schedule(**fields)
    change = checked(put(declared, current, NOW_MS), declared, current)
    assert change.move == "enter"
    assert change.row == first_row(declared, NOW_MS)
    assert change.row.next_fire_at > NOW_MS


def test_a_put_that_changes_the_end_gives_the_row_the_new_end_and_keeps_the_fire_that_lies_ahead() -> None:
    current, declared = stored(schedule()), schedule(ends_at=NOW_MS + 5 * HOUR_MS)
    change = checked(put(declared, current, NOW_MS), declared, current)
    assert change.row == first_row(declared, NOW_MS)
    assert (change.row.next_fire_at, change.row.ends_at) == (NOW_MS + HOUR_MS, NOW_MS + 5 * HOUR_MS)


@pytest.mark.parametrize("fields", [*NOT_THE_TIMES, *THE_TIMES], ids=str)
def test_a_put_of_a_paused_schedule_leaves_it_paused_or_begins_from_now_as_it_says(fields: dict[str, object]) -> None:
    current = stored(schedule(enabled=False), "paused")
    still = schedule(**{**fields, "enabled": False})
    assert checked(put(still, current, NOW_MS), still, current).move == "leave"
    again = schedule(**fields)
    assert checked(put(again, current, NOW_MS), again, current).row == first_row(again, NOW_MS)


@pytest.mark.parametrize("state", ["active", "finished", "unreadable", "unindexed"])
def test_a_put_that_is_not_enabled_takes_it_out_of_the_index(state: State) -> None:
    current, declared = stored(schedule(), state), schedule(enabled=False)
    assert checked(put(declared, current, NOW_MS), declared, current).move == "leave"


def test_a_finished_one_shot_stays_finished_until_its_times_change() -> None:
    current = stored(schedule(PAST), "finished")
    with_payload = schedule(PAST, payload="new")
    change = checked(put(with_payload, current, NOW_MS), with_payload, current)
    assert change.move == "keep"
    assert (change.stored(current).state, change.stored(current).next_fire_at) == ("finished", None)
    again = schedule(AHEAD)
    assert checked(put(again, current, NOW_MS), again, current).row == first_row(again, NOW_MS)
    with pytest.raises(NeverFires):
        put(schedule(At("2030-11-20T10:00:00Z")), current, NOW_MS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": False}),
        ([1], [1.0]),
        (1, True),
    ],
    ids=str,
)
def test_a_payload_that_is_another_in_json_is_a_change_though_python_calls_them_equal(before: object, after: object) -> None:
    current, declared = stored(schedule(payload=before)), schedule(payload=after)
    assert encode_body(current.declared()) != encode_body(declared)
    checked(put(declared, current, NOW_MS), declared, current)


@pytest.mark.parametrize("payload", [float("nan"), {1, 2}, (1,), "x" * 300_000], ids=lambda payload: type(payload).__name__)
def test_a_payload_that_cannot_be_kept_is_refused(payload: object) -> None:
    for current in (None, stored(schedule())):
        with pytest.raises(InvalidSchedule, match=r"^payload: "):
            put(schedule(payload=payload), current, NOW_MS)


def test_a_when_that_does_not_read_is_refused() -> None:
    for enabled in (True, False):
        with pytest.raises(InvalidInput, match="five fields"):
            put(schedule(UNREADABLE, enabled=enabled), None, NOW_MS)


# Intervals and their anchors.


@pytest.mark.parametrize(
    ("current", "declared", "anchored"),
    [
        (None, Every(minutes=10), Every(minutes=10, start=NOW_MS)),
        (None, Every(minutes=10, start=NOW_MS - 5), Every(minutes=10, start=NOW_MS - 5)),
        (HOURLY, Every(minutes=10), Every(minutes=10, start=NOW_MS)),
        (Every(minutes=20, start=NOW_MS - 7), Every(minutes=10), Every(minutes=10, start=NOW_MS)),
        (Every(minutes=10, start=NOW_MS - 7), Every(minutes=10, start=NOW_MS - 5), Every(minutes=10, start=NOW_MS - 5)),
        (Every(seconds=1.001, start=NOW_MS - 7), Every(seconds=1.002), Every(seconds=1.002, start=NOW_MS)),
    ],
    ids=str,
)
def test_an_interval_without_a_start_is_stamped_with_the_instant_of_the_put(
    current: When | None, declared: When, anchored: When
) -> None:
    before = None if current is None else stored(schedule(current))
    change = checked(put(schedule(declared), before, NOW_MS), schedule(declared), before)
    assert change.schedule.when == anchored
    assert change.row is not None
    assert change.row.when == anchored
    assert change.row.next_fire_at > NOW_MS


@pytest.mark.parametrize("state", ["active", "paused", "finished", "unindexed"])
def test_later_puts_of_the_same_interval_keep_the_anchor(state: State) -> None:
    anchored = Every(minutes=10, start=NOW_MS - 7 * MINUTE_MS)
    current = stored(schedule(anchored, enabled=state != "paused"), state)
    change = put(schedule(Every(minutes=10), payload="new"), current, NOW_MS)
    assert change is not None
    assert change.schedule.when == anchored
    if change.row is not None:
        assert change.row.next_fire_at == NOW_MS + 3 * MINUTE_MS


def test_putting_the_same_interval_again_changes_nothing() -> None:
    current = stored(schedule(Every(minutes=10, start=NOW_MS - 7)), next_fire_at=NOW_MS - 5)
    assert put(schedule(Every(minutes=10)), current, NOW_MS) is None


# What can never fire.


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (schedule(PAST), "2030-11-20T11:00:00Z, has passed"),
        (schedule(At("2030-11-20T12:00:00Z")), "has passed"),
        (schedule(AHEAD, starts_at=NOW_MS + 2 * HOUR_MS), "before its start"),
        (schedule(At("2011-12-30T10:00:00", tz="Pacific/Apia")), "does not exist in Pacific/Apia"),
        (schedule(Weekly({})), "every day of its weekly plan is off"),
        (
            schedule(ends_at=NOW_MS + HOUR_MS - 1),
            "ends at 2030-11-20T12:59:59.999Z, before its first fire at 2030-11-20T13:00:00Z",
        ),
        (schedule(ends_at=NOW_MS - DAY_MS), "ends at 2030-11-19T12:00:00Z"),
        (schedule(starts_at=NOW_MS + 1, ends_at=NOW_MS + 2), "ends at"),
        (schedule(AHEAD, ends_at=NOW_MS), "ends at"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else str(value.when),
)
def test_a_schedule_that_would_never_fire_is_refused_with_a_reason_and_taken_when_it_is_not_enabled(
    declared: Schedule, why: str
) -> None:
    for current in (None, stored(schedule()), stored(schedule(enabled=False), "paused")):
        with pytest.raises(NeverFires, match=why) as refused:
            put(declared, current, NOW_MS)
        assert (refused.value.owner, refused.value.key) == ("u1", "digest")
        asleep = replace(declared, enabled=False)
        assert checked(put(asleep, current, NOW_MS), asleep, current).move == "leave"


@pytest.mark.parametrize(
    ("declared", "move"),
    [
        (schedule(PAST), "finish"),
        (schedule(At("2030-11-20T12:00:00Z")), "finish"),
        (schedule(ends_at=NOW_MS + HOUR_MS - 1), "finish"),
        (schedule(ends_at=NOW_MS - 300 * DAY_MS), "finish"),
        (schedule(starts_at=NOW_MS - DAY_MS, ends_at=NOW_MS), "finish"),
        (schedule(AHEAD), "enter"),
        (schedule(), "enter"),
        (schedule(starts_at=NOW_MS + DAY_MS), "enter"),
        (schedule(PAST, enabled=False), "leave"),
        (schedule(Weekly({}), enabled=False), "leave"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.when} {value.starts_at} {value.ends_at}",
)
def test_a_static_schedule_whose_last_instant_has_passed_is_kept_as_finished(declared: Schedule, move: Move) -> None:
    change = checked(put(declared, None, NOW_MS, finished_is_fine=True), declared, None)
    assert change.move == move
    if move == "finish":
        assert (change.stored(None).state, change.stored(None).next_fire_at) == ("finished", None)


@pytest.mark.parametrize(
    "declared",
    [
        schedule(Weekly({})),
        schedule(At("2011-12-30T10:00:00", tz="Pacific/Apia")),
        schedule(AHEAD, starts_at=NOW_MS + 2 * HOUR_MS),
        schedule(PAST, starts_at=NOW_MS - HOUR_MS + 1),
        schedule(starts_at=NOW_MS + 1, ends_at=NOW_MS + 2),
        schedule(starts_at=NOW_MS - HOUR_MS + 1, ends_at=NOW_MS - 1),
        schedule(Cron("0 0 1 1 *"), starts_at=datetime(2029, 3, 1, tzinfo=UTC), ends_at=datetime(2029, 4, 1, tzinfo=UTC)),
    ],
    ids=lambda value: f"{value.when} {value.starts_at} {value.ends_at}",
)
def test_a_static_schedule_that_never_had_an_instant_is_refused_all_the_same(declared: Schedule) -> None:
    with pytest.raises(NeverFires):
        put(declared, None, NOW_MS, finished_is_fine=True)


# The first row.


@pytest.mark.parametrize(
    ("declared", "next_fire_at"),
    [
        (schedule(), NOW_MS + HOUR_MS),
        (schedule(Cron("0 9 * * *", tz="Asia/Tokyo")), NOW_MS + 12 * HOUR_MS),
        (schedule(AHEAD), NOW_MS + HOUR_MS),
        (schedule(Every(minutes=10, start=NOW_MS)), NOW_MS + 10 * MINUTE_MS),
        (schedule(Every(minutes=10, start=NOW_MS + 5)), NOW_MS + 5),
        # Bounds are inclusive, and a start that has passed is none.
        (schedule(starts_at=NOW_MS + 3 * HOUR_MS), NOW_MS + 3 * HOUR_MS),
        (schedule(starts_at=NOW_MS + 3 * HOUR_MS + 1), NOW_MS + 4 * HOUR_MS),
        (schedule(starts_at=NOW_MS + HOUR_MS, ends_at=NOW_MS + HOUR_MS), NOW_MS + HOUR_MS),
        (schedule(starts_at=NOW_MS), NOW_MS + HOUR_MS),
        (schedule(starts_at=NOW_MS - DAY_MS), NOW_MS + HOUR_MS),
        (schedule(ends_at=NOW_MS + HOUR_MS), NOW_MS + HOUR_MS),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else f"{value.when} {value.starts_at} {value.ends_at}",
)
def test_the_first_fire_is_the_first_instant_after_now_within_the_bounds(declared: Schedule, next_fire_at: int) -> None:
    row = first_row(declared, NOW_MS)
    assert row == IndexRow("u1", "digest", declared.when, next_fire_at, declared.ends_at, managed=True)


def test_a_spread_moves_the_fire_and_not_the_nominal_instant_nor_the_end() -> None:
    declared = schedule(policy=Policy(spread=1800), ends_at=NOW_MS + HOUR_MS)
    row = first_row(declared, NOW_MS)
    assert 0 < declared.offset_ms() < 1_800_000
    assert row.offset_ms == declared.offset_ms()
    assert row.nominal_at == row.next_fire_at - row.offset_ms == NOW_MS + HOUR_MS
    assert row.ends_at == NOW_MS + HOUR_MS


# Pause and resume.


@pytest.mark.parametrize("state", ["active", "finished", "unindexed"])
def test_a_pause_takes_it_out_of_the_index_and_changes_nothing_else(state: State) -> None:
    current = stored(schedule(payload=[1], policy=Policy(missed="all")), state)
    paused = replace(current.declared(), enabled=False)
    change = checked(pause(current, NOW_MS), paused, current)
    assert change.move == "leave"
    assert change.schedule == paused
    assert (change.stored(current).state, change.stored(current).next_fire_at) == ("paused", None)


def test_pausing_what_is_paused_changes_nothing() -> None:
    assert pause(stored(schedule(enabled=False), "paused"), NOW_MS) is None


def test_a_schedule_that_does_not_read_can_be_paused() -> None:
    """One bad row must not stop `pause_all`, and what does not read is what an operator wants to silence first."""
    current = stored(schedule(UNREADABLE, payload=[1]), "unreadable")
    change = pause(current, NOW_MS)
    assert change is not None
    assert change.move == "leave"
    assert (str(change.schedule.when), change.schedule.tz, change.schedule.enabled) == ("never", "UTC", False)


@pytest.mark.parametrize("state", ["active", "finished"])
def test_resuming_what_is_not_paused_changes_nothing_overdue_or_not(state: State) -> None:
    assert resume(stored(schedule(), state, NOW_MS - DAY_MS), NOW_MS) is None


@pytest.mark.parametrize("state", ["paused", "unindexed", "unreadable"])
@pytest.mark.parametrize(
    "declared", [schedule(), schedule(Every(minutes=7, start=CREATED_MS)), schedule(policy=Policy(spread=60))]
)
def test_a_resumed_schedule_begins_from_now(declared: Schedule, state: State) -> None:
    current = stored(replace(declared, enabled=state != "paused"), state)
    change = checked(resume(current, NOW_MS), declared, current)
    assert change.schedule == declared
    assert change.row == first_row(declared, NOW_MS)
    assert change.row.next_fire_at > NOW_MS, "what lay in between was not missed"


@pytest.mark.parametrize("when", [PAST, Weekly({}), UNREADABLE], ids=str)
def test_what_can_never_fire_again_cannot_be_resumed(when: When) -> None:
    with pytest.raises(InvalidInput):
        resume(stored(schedule(when, enabled=False), "paused"), NOW_MS)


# Repairs.


@pytest.mark.parametrize("declared", [schedule(), schedule(starts_at=NOW_MS + DAY_MS), schedule(policy=Policy(spread=600))])
def test_what_should_be_in_the_index_and_is_not_is_put_there_from_now_on(declared: Schedule) -> None:
    current = stored(declared, "unindexed")
    change = checked(reindex(current, NOW_MS), declared, current)
    assert change.row == first_row(declared, NOW_MS)


@pytest.mark.parametrize("declared", [schedule(PAST), schedule(ends_at=NOW_MS + 1)], ids=lambda each: str(each.when))
def test_what_is_not_in_the_index_and_has_no_instant_left_is_finished(declared: Schedule) -> None:
    current = stored(declared, "unindexed")
    assert checked(reindex(current, NOW_MS), declared, current).move == "finish"


@pytest.mark.parametrize("state", ["active", "paused", "finished", "unreadable"])
def test_what_is_where_it_belongs_is_not_put_into_the_index(state: State) -> None:
    assert reindex(stored(schedule(enabled=state != "paused"), state), NOW_MS) is None


def test_what_does_not_read_is_not_mended_by_a_guess() -> None:
    assert reindex(stored(schedule(UNREADABLE), "unindexed"), NOW_MS) is None
    assert reindex(replace(stored(schedule(), "unindexed"), newer=True), NOW_MS) is None
    for misplaced in (stored(schedule(UNREADABLE), next_fire_at=NOW_MS + 1), replace(stored(schedule()), newer=True)):
        assert recompute(replace(misplaced, next_fire_at=NOW_MS + DAY_MS + 1), NOW_MS) is None


SPREAD = schedule(policy=Policy(spread=1800))
OFFSET_MS = SPREAD.offset_ms()


@pytest.mark.parametrize(
    ("declared", "next_fire_at"),
    [
        (schedule(), NOW_MS + HOUR_MS),
        (schedule(), NOW_MS),
        (schedule(), NOW_MS - 1),
        (schedule(), NOW_MS - 7 * DAY_MS + 1),
        (schedule(AHEAD), NOW_MS + HOUR_MS),
        (schedule(Every(minutes=7, start=NOW_MS - 1)), NOW_MS + 7 * MINUTE_MS - 1),
        (schedule(starts_at=NOW_MS + DAY_MS), NOW_MS + DAY_MS),
        (schedule(ends_at=NOW_MS + HOUR_MS), NOW_MS + HOUR_MS),
        (SPREAD, NOW_MS + HOUR_MS + OFFSET_MS),
        (SPREAD, NOW_MS + OFFSET_MS),
        (schedule(Cron("0 9 * * *", tz="Europe/Berlin")), NOW_MS + 20 * HOUR_MS),
        (schedule(PAST), NOW_MS + 3 * HOUR_MS),
        (schedule(ends_at=NOW_MS + HOUR_MS - 1), NOW_MS + 5 * MINUTE_MS),
    ],
)
def test_what_waits_for_its_next_instant_or_is_due_or_has_no_other_instant_is_where_it_belongs(
    declared: Schedule, next_fire_at: int
) -> None:
    current = stored(declared, next_fire_at=next_fire_at)
    assert not is_misplaced(current, NOW_MS)
    assert recompute(current, NOW_MS) is None


@pytest.mark.parametrize(
    ("declared", "next_fire_at", "right"),
    [
        (schedule(), NOW_MS + 2 * HOUR_MS, NOW_MS + HOUR_MS),
        (schedule(), NOW_MS + 30 * MINUTE_MS, NOW_MS + HOUR_MS),
        (schedule(AHEAD), NOW_MS + 2 * HOUR_MS, NOW_MS + HOUR_MS),
        (schedule(starts_at=NOW_MS + DAY_MS), NOW_MS + HOUR_MS, NOW_MS + DAY_MS),
        (schedule(ends_at=NOW_MS + HOUR_MS), NOW_MS + 2 * HOUR_MS, NOW_MS + HOUR_MS),
        (SPREAD, NOW_MS + HOUR_MS, NOW_MS + OFFSET_MS),
        (SPREAD, NOW_MS + 2 * HOUR_MS + OFFSET_MS, NOW_MS + OFFSET_MS),
        (schedule(Cron("0 9 * * *", tz="Europe/Berlin")), NOW_MS + 19 * HOUR_MS, NOW_MS + 20 * HOUR_MS),
    ],
)
def test_what_waits_for_an_instant_that_is_not_its_next_is_moved_to_that(
    declared: Schedule, next_fire_at: int, right: int
) -> None:
    current = stored(declared, next_fire_at=next_fire_at)
    assert is_misplaced(current, NOW_MS)
    change = checked(recompute(current, NOW_MS), declared, current)
    assert change.row is not None
    assert (change.row.next_fire_at, change.row.offset_ms, change.row.ends_at) == (right, declared.offset_ms(), declared.ends_at)
    assert not is_misplaced(change.stored(current), NOW_MS)


def test_what_was_put_lately_is_not_moved_to_an_instant_before_that() -> None:
    """Its spread would put that one after now."""
    current = replace(stored(SPREAD, next_fire_at=NOW_MS + 5 * HOUR_MS), updated_at=NOW_MS)
    change = recompute(current, NOW_MS)
    assert change is not None
    assert change.row is not None
    assert change.row.nominal_at == NOW_MS + HOUR_MS


@pytest.mark.parametrize("before_ms", [1, 5_000, TAKEN_AHEAD_MS])
def test_an_instant_that_a_worker_may_have_taken_already_is_not_given_again(before_ms: int) -> None:
    """A worker that claims ahead has moved it on already: that is where it belongs. One that waits elsewhere is left for now."""
    now_ms = NOW_MS + HOUR_MS - before_ms
    assert not is_misplaced(stored(schedule(), next_fire_at=NOW_MS + 2 * HOUR_MS), now_ms)
    elsewhere = stored(schedule(), next_fire_at=NOW_MS + 9 * HOUR_MS)
    assert is_misplaced(elsewhere, now_ms)
    assert recompute(elsewhere, now_ms) is None
    assert recompute(elsewhere, NOW_MS + HOUR_MS) is not None


def test_what_fires_more_often_than_workers_look_ahead_is_moved_all_the_same() -> None:
    often = schedule(Every(seconds=5, start=NOW_MS))
    change = recompute(stored(often, next_fire_at=NOW_MS + DAY_MS), NOW_MS)
    assert change is not None
    assert change.row is not None
    assert change.row.next_fire_at == NOW_MS + TAKEN_AHEAD_MS + 5_000


def test_what_is_stored_after_a_change_is_what_the_change_says() -> None:
    declared = schedule(payload=[1])
    before = stored(schedule(), next_fire_at=NOW_MS - 5)
    row = first_row(declared, NOW_MS)
    expected: dict[Move, tuple[State, int | None]] = {
        "keep": ("active", NOW_MS - 5),
        "enter": ("active", NOW_MS + HOUR_MS),
        "leave": ("paused", None),
        "finish": ("finished", None),
    }
    for move, (state, next_fire_at) in expected.items():
        change = ScheduleChange(declared, b"{}", 7, 1, 2, move, row if move == "enter" else None)
        assert change.stored(before) == StoredSchedule(
            owner="u1",
            key="digest",
            when=HOURLY,
            payload=[1],
            version=7,
            created_at=1,
            updated_at=2,
            state=state,
            next_fire_at=next_fire_at,
        )


# Any sequence.


class World(msgspec.Struct):
    """One schedule through its life, applied as a store would."""

    now_ms: int = NOW_MS
    current: StoredSchedule | None = None

    def apply(self, change: ScheduleChange | None) -> None:
        before, version = self.current, 0 if self.current is None else self.current.version
        if change is None:
            return
        self.current = change.stored(before)
        assert self.current.version == version + 1, "versions count changes, one by one"
        assert self.current.created_at == (self.now_ms if before is None else before.created_at)
        assert self.current.updated_at == self.now_ms
        assert before is None or self.current != before
        if change.row is not None:
            assert (change.row.owner, change.row.key, change.row.managed) == ("u1", "digest", True)
            assert change.row.next_fire_at == self.current.next_fire_at
            assert change.row.nominal_at == change.row.next_fire_at - change.schedule.offset_ms()
            assert change.row.when == self.current.when
        if change.move == "keep":
            assert before is not None
            assert self.current.next_fire_at == before.next_fire_at
        self.check(kept_at=before.next_fire_at if before is not None and before.state == "active" else None)

    def check(self, kept_at: int | None) -> None:
        current = self.current
        assert current is not None
        if not current.enabled:
            assert (current.state, current.next_fire_at) == ("paused", None)
        elif current.state == "finished":
            assert current.next_fire_at is None
        else:
            assert current.state == "active"
            assert current.next_fire_at is not None
            assert current.next_fire_at > self.now_ms or current.next_fire_at == kept_at

    def claim(self) -> None:
        """As a store does it, when it is due."""
        current = self.current
        if current is None or current.next_fire_at is None or current.next_fire_at > self.now_ms:
            return
        due_at, ends_at, offset_ms = current.next_fire_at, current.ends_at, current.offset_ms()
        row = DueRow("place", "u1", "digest", str(current.when), current.tz, due_at, ends_at, offset_ms, True)
        result = advance([row], self.now_ms)
        assert len(result.claimed) == 1
        if result.finished:
            self.current = replace(current, state="finished", next_fire_at=None)
        else:
            self.current = replace(current, next_fire_at=result.moved_to[0])


declared_schedules = st.builds(
    schedule,
    st.sampled_from(
        [
            HOURLY,
            Cron("30 2 * * *", tz="Europe/Paris"),
            Every(minutes=7),
            Every(minutes=7, start=NOW_MS - 5),
            AHEAD,
            Weekly({"wed": "12:30"}, tz="UTC"),
            Weekly({}),
        ]
    ),
    payload=st.sampled_from([None, 1, {"a": [2]}]),
    starts_at=st.sampled_from([None, None, NOW_MS + DAY_MS]),
    ends_at=st.sampled_from([None, None, NOW_MS + 2 * DAY_MS]),
    policy=st.sampled_from([Policy(), Policy(), Policy(spread=300), Policy(missed="skip")]),
    enabled=st.sampled_from([True, True, False]),
)
steps = st.one_of(
    st.tuples(st.just("put"), declared_schedules),
    st.tuples(st.just("declare"), declared_schedules),
    st.tuples(st.sampled_from(["put again", "pause", "resume", "claim"]), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1, MINUTE_MS, HOUR_MS, 30 * HOUR_MS])),
)


@settings(max_examples=3_000 if SOAK else 200, derandomize=not SOAK, deadline=None, database=None)
@given(st.lists(steps, max_size=25))
def test_after_any_sequence_what_is_enabled_is_in_the_index_and_what_is_not_is_absent(
    sequence: list[tuple[str, Schedule | int | None]],
) -> None:
    world = World()
    for verb, what in sequence:
        before = world.current
        if verb == "wait":
            assert isinstance(what, int)
            world.now_ms += what
        elif verb == "claim":
            world.claim()
        elif isinstance(what, Schedule):
            try:
                world.apply(put(what, before, world.now_ms, finished_is_fine=verb == "declare"))
            except NeverFires:
                assert what.enabled
                assert world.current is before
        elif before is not None:
            _change_existing(world, verb, before)


def _change_existing(world: World, verb: str, before: StoredSchedule) -> None:
    if verb == "put again":
        assert put(before.declared(), before, world.now_ms) is None
    elif verb == "pause":
        world.apply(pause(before, world.now_ms))
        assert world.current is not None
        assert world.current.state == "paused"
    else:
        try:
            world.apply(resume(before, world.now_ms))
        except NeverFires:
            assert before.state == "paused"
        else:
            assert world.current is not None
            assert world.current.enabled


def test_a_life_in_steps() -> None:
    """The same by hand, so that the property above is known to see what it should."""
    world = World()
    world.apply(put(schedule(), None, world.now_ms))
    world.now_ms += 90 * MINUTE_MS
    world.apply(put(schedule(payload=1), world.current, world.now_ms))
    assert world.current is not None
    assert (world.current.version, world.current.next_fire_at) == (2, NOW_MS + HOUR_MS)
    world.claim()
    assert world.current.next_fire_at == NOW_MS + 2 * HOUR_MS
    world.apply(pause(world.current, world.now_ms))
    world.now_ms += timedelta(days=1) // timedelta(milliseconds=1)
    world.apply(resume(world.current, world.now_ms))
    assert world.current.next_fire_at == NOW_MS + DAY_MS + 2 * HOUR_MS
    assert world.current.version == 4
