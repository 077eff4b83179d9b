"""The checker of recorded runs, on runs that are made up: it finds each fault, and nothing in a run that has none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tickler import At, Every, Policy, Schedule
from tickler.clock import to_datetime
from tickler.fires import Entry
from tickler.model.fire import Happened, fire_id
from under_fire.sink import Arrival
from under_fire.target_windows import Declared, Run, check_windows, declared, faults, instants

NOW_MS = 1_921_406_400_123
LATE_MS = 5_000
EVERY = Declared("u1", "every", "@every 10s from 2030-11-20T12:00:00.123Z")
MOST = Declared("u1", "most", "at(2030-11-20T12:00:07Z)", at_most_once=True)
MOST_AT = NOW_MS + 6_877


def arrival(nominal_at: int, key: str = "every", *, late_ms: int = 50, attempt: int = 1, id: str | None = None) -> Arrival:
    return Arrival(id or fire_id("u1", key, nominal_at), attempt, "u1", key, nominal_at, nominal_at + late_ms, 200)


def entry(
    nominal_at: int, key: str = "every", happened: Happened = "delivered", *, attempt: int = 1, gave_up: bool = False
) -> Entry:
    id = fire_id("u1", key, nominal_at)
    at = nominal_at + 50
    return Entry(
        owner="u1", key=key, nominal_at=nominal_at, at=at, happened=happened, fire_id=id, attempt=attempt, gave_up=gave_up
    )


def skip(from_at: int, until_at: int, count: int) -> Entry:
    return Entry(
        owner="u1",
        key="every",
        nominal_at=from_at,
        at=until_at,
        happened="skipped",
        rule="missed",
        until_at=until_at,
        count=count,
    )


INSTANTS = [NOW_MS, NOW_MS + 10_000, NOW_MS + 20_000]
GOOD = Run(
    declared=[EVERY, MOST],
    arrivals=[*(arrival(at) for at in INSTANTS), arrival(MOST_AT, "most")],
    entries=[*(entry(at) for at in INSTANTS), entry(MOST_AT, "most")],
    until=NOW_MS + 25_000,
    lateness_ms=LATE_MS,
)


def kinds(run: Run) -> list[str]:
    return [fault.kind for fault in faults(run)]


def without(run: Run, nominal_at: int) -> Run:
    arrivals = [each for each in run.arrivals if each.nominal_at != nominal_at]
    return replace(run, arrivals=arrivals, entries=[each for each in run.entries if each.nominal_at != nominal_at])


def test_a_run_in_which_every_window_has_its_fire_is_good() -> None:
    assert faults(GOOD) == []
    check_windows(GOOD)


def test_instants_are_worked_out_from_the_text_alone() -> None:
    assert list(instants(EVERY, NOW_MS + 20_000)) == INSTANTS
    assert list(instants(EVERY._replace(ends_at=NOW_MS + 15_000), NOW_MS + 20_000)) == INSTANTS[:2]
    assert list(instants(EVERY._replace(put_at=NOW_MS), NOW_MS + 20_000)) == INSTANTS[1:]
    assert list(instants(MOST, MOST_AT)) == [MOST_AT]
    assert list(instants(MOST, MOST_AT - 1)) == []
    with pytest.raises(AssertionError, match="nothing that is worked out here"):
        list(instants(EVERY._replace(when="0 9 * * *"), NOW_MS))


def test_a_schedule_is_recorded_as_it_was_declared() -> None:
    every = Schedule(owner="u1", key="every", when=Every(seconds=10, start=NOW_MS))
    most = Schedule(owner="u1", key="most", when=At(to_datetime(MOST_AT)), policy=Policy(delivery="at-most-once"))
    assert [declared(every), declared(most)] == [EVERY, MOST]


def test_a_window_without_a_fire_is_found() -> None:
    run = without(GOOD, INSTANTS[1])
    assert kinds(run) == ["missing"]
    with pytest.raises(AssertionError, match="1 faults, such as"):
        check_windows(run)


def test_a_window_after_the_end_of_the_run_needs_no_fire() -> None:
    assert faults(replace(without(GOOD, INSTANTS[2]), until=NOW_MS + 19_999)) == []


def test_a_window_that_was_skipped_needs_no_fire_and_must_have_none() -> None:
    run = without(GOOD, INSTANTS[1])
    skipped = skip(INSTANTS[1], INSTANTS[1], 1)
    assert faults(replace(run, entries=[*run.entries, skipped])) == []
    assert kinds(replace(GOOD, entries=[*GOOD.entries, skipped])) == ["skipped wrongly"]


def test_a_skip_covers_as_many_windows_as_it_says() -> None:
    run = without(without(GOOD, INSTANTS[1]), INSTANTS[2])
    assert faults(replace(run, entries=[*run.entries, skip(INSTANTS[1], INSTANTS[2], 2)])) == []
    assert kinds(replace(run, entries=[*run.entries, skip(INSTANTS[1], INSTANTS[2], 3)])) == ["skipped wrongly"]


def test_a_fire_outside_of_every_window_is_found() -> None:
    beside = NOW_MS + 10_001
    assert kinds(replace(GOOD, arrivals=[*GOOD.arrivals, arrival(beside)])) == ["outside"]
    assert kinds(replace(GOOD, entries=[*GOOD.entries, entry(beside)])) == ["outside"], "also where the history alone has it"
    assert kinds(replace(GOOD, arrivals=[*GOOD.arrivals, arrival(NOW_MS, "never declared")])) == ["outside"]


@pytest.mark.parametrize(("late_ms", "found"), [(LATE_MS, []), (LATE_MS + 1, ["late"]), (-200, []), (-201, ["early"])])
def test_a_fire_outside_of_its_own_window_is_found(late_ms: int, found: list[str]) -> None:
    run = replace(GOOD, arrivals=[arrival(INSTANTS[0], late_ms=late_ms), *GOOD.arrivals[1:]])
    assert kinds(run) == found


def test_an_attempt_after_the_window_is_no_fault_where_the_first_was_in_it() -> None:
    again = arrival(INSTANTS[0], late_ms=LATE_MS * 9, attempt=2)
    failed = entry(INSTANTS[0], happened="failed")
    assert faults(replace(GOOD, arrivals=[*GOOD.arrivals, again], entries=[failed, *GOOD.entries])) == []


def test_two_fires_in_one_window_are_found() -> None:
    assert kinds(replace(GOOD, arrivals=[*GOOD.arrivals, arrival(INSTANTS[0], id="fire_another")])) == ["two fires"]


def test_one_fire_in_two_windows_is_found() -> None:
    first = fire_id("u1", "every", INSTANTS[0])
    run = replace(GOOD, arrivals=[*GOOD.arrivals[:1], arrival(INSTANTS[1], id=first), *GOOD.arrivals[2:]])
    assert sorted(kinds(run)) == ["two fires", "two windows"]


def test_what_is_delivered_at_most_once_and_arrives_twice_is_found() -> None:
    assert kinds(replace(GOOD, arrivals=[*GOOD.arrivals, arrival(MOST_AT, "most")])) == ["repeated"]


def test_what_a_killed_worker_had_is_lost_at_most_once_and_no_other() -> None:
    run = without(GOOD, MOST_AT)
    assert kinds(run) == ["missing"]
    assert faults(replace(run, lost={fire_id("u1", "most", MOST_AT)})) == []
    assert faults(replace(run, unheard=1)) == []
    assert kinds(replace(without(GOOD, INSTANTS[0]), unheard=5)) == ["missing"], "what is owed is never lost"


@pytest.mark.parametrize(
    ("happened", "gave_up", "found"),
    [("failed", False, ["not delivered"]), ("failed", True, []), ("expired", True, []), ("cancelled", False, [])],
)
def test_a_fire_that_came_to_no_end_is_found(happened: Happened, gave_up: bool, found: list[str]) -> None:
    entries = [entry(INSTANTS[0], happened=happened, gave_up=gave_up), *GOOD.entries[1:]]
    assert kinds(replace(GOOD, entries=entries)) == found
