"""Which instants fire and which are skipped, against the naive reading: walk every instant and look at each."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import NamedTuple, get_args

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from when.strategies import changing_times, instants, whens

from tickler.fires.missed import MAX_COUNTED, Occurrences, Skip, occurrences
from tickler.model.policy import Missed, Policy
from tickler.when import At, Cron, Every, Weekly, When, parse_when

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z, a Wednesday
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
SOAK = os.environ.get("TICKLER_SOAK") == "1"

examples = settings(
    max_examples=3_000 if SOAK else 150,
    derandomize=not SOAK,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
few_examples = settings(examples, max_examples=3_000 if SOAK else 40)

HOURLY = Cron("0 * * * *")
MINUTELY = Cron("* * * * *")


class Due(NamedTuple):
    """A row that came due, and what there is to know when it is claimed."""

    when: When
    policy: Policy
    nominal_at: int
    now_at: int
    ends_at: int | None

    def occurrences(self) -> Occurrences:
        return occurrences(*self)

    def walked(self) -> list[int]:
        """Every instant from the nominal one to now, or to the end."""
        until_at = self.now_at if self.ends_at is None else min(self.now_at, self.ends_at)
        found: list[int] = []
        at: int | None = self.nominal_at
        while at is not None and at <= until_at:
            found.append(at)
            at = self.when.next_after(at)
        return found


policies = st.builds(
    Policy,
    missed=st.sampled_from(get_args(Missed)),
    grace=st.one_of(st.integers(0, 600), st.integers(0, 10 * 86_400), st.just(timedelta(milliseconds=1))),
    max_catchup=st.one_of(st.integers(1, 5), st.integers(1, 100)),
)


@st.composite
def due_rows(draw: st.DrawFn) -> Due:
    """A when, one of its instants as the nominal one, and a claim some instants later, on time or between two of them."""
    when, before = draw(st.one_of(st.tuples(whens, instants), changing_times()))
    nominal_at = when.next_after(before)
    assume(nominal_at is not None)
    assert nominal_at is not None
    at = nominal_at
    for _ in range(draw(st.integers(0, 40))):
        at = when.next_after(at) or at
    following = when.next_after(at)
    most_late_ms = DAY_MS if following is None else following - at - 1
    now_at = at + draw(st.one_of(st.just(0), st.integers(0, most_late_ms)))
    ends_at = draw(st.one_of(st.none(), st.integers(nominal_at, now_at + DAY_MS)))
    return Due(when, draw(policies), nominal_at, now_at, ends_at)


def naive(due: Due) -> Occurrences:
    """What the rules say, read one instant at a time."""
    walked, policy = due.walked(), due.policy
    if policy.missed == "latest":
        return Occurrences(walked[-1:], _skip("missed", walked[:-1]))
    late: list[int] = []
    if policy.missed == "skip":
        late = [at for at in walked if timedelta(milliseconds=due.now_at - at) > policy.grace]
    in_time = walked[len(late) :]
    caught_up, beyond = in_time[: policy.max_catchup], in_time[policy.max_catchup :]
    return Occurrences(caught_up, _skip("missed", late) + _skip("max_catchup", beyond))


def _skip(rule: str, instants: list[int]) -> list[Skip]:
    return [Skip(rule, instants[0], instants[-1], len(instants))] if instants else []  # type: ignore[arg-type]  # one of the rules


@examples
@given(due_rows())
def test_what_fires_and_what_is_skipped_is_what_a_walk_over_every_instant_finds(due: Due) -> None:
    assert due.occurrences() == naive(due)


@few_examples
@given(due_rows())
def test_every_instant_fires_or_lies_within_exactly_one_skip_oldest_first_and_none_is_invented(due: Due) -> None:
    found = due.occurrences()
    walked = due.walked()
    assert set(found.fires) <= set(walked), "no fire is invented"
    for at in walked:
        skips = [skip for skip in found.skips if skip.from_at <= at <= skip.until_at]
        assert len(skips) + (at in found.fires) == 1
    assert len(found.fires) + sum(skip.count for skip in found.skips) == len(walked)
    assert {at for skip in found.skips for at in (skip.from_at, skip.until_at)} <= set(walked)
    assert found.fires == sorted(set(found.fires))
    assert found.skips == sorted(found.skips, key=lambda skip: skip.from_at)


@few_examples
@given(due_rows())
def test_a_row_that_is_claimed_on_time_fires_once_whatever_its_policy(due: Due) -> None:
    on_time = due._replace(now_at=due.nominal_at)
    assert on_time.occurrences() == Occurrences([due.nominal_at], [])


@pytest.mark.parametrize("missed", get_args(Missed))
@pytest.mark.parametrize(
    "when",
    [
        HOURLY,
        Cron("*/7 1-3 * * *", tz="Europe/Paris"),
        Weekly({"sun": ["01:30", "02:30", "03:30"]}, tz="Europe/Paris"),
        Weekly({"sun": ["01:45", "02:00", "02:15"]}, tz="Australia/Lord_Howe"),
        Every(minutes=20, start=NOW_MS - 400 * DAY_MS),
    ],
    ids=str,
)
@pytest.mark.parametrize("year_day", [88, 98, 278, 300], ids=lambda day: f"day {day}")
def test_a_worker_that_was_away_over_a_change_of_the_clocks_owes_what_the_walk_finds(
    when: When, missed: Missed, year_day: int
) -> None:
    midnight = 1_893_456_000_000 + year_day * DAY_MS  # of 2030
    nominal_at = when.next_after(midnight)
    assert nominal_at is not None
    due = Due(when, Policy(missed=missed, grace=7_200), nominal_at, nominal_at + 30 * HOUR_MS, None)
    assert due.occurrences() == naive(due)


def test_a_one_shot_fires_however_late_it_is_unless_its_policy_skips() -> None:
    once = At("2030-11-20T12:00:00Z")
    late = NOW_MS + 400 * DAY_MS
    assert occurrences(once, Policy(), NOW_MS, late, None) == Occurrences([NOW_MS], [])
    assert occurrences(once, Policy(missed="all"), NOW_MS, late, None) == Occurrences([NOW_MS], [])
    skipped = Occurrences([], [Skip("missed", NOW_MS, NOW_MS, 1)])
    assert occurrences(once, Policy(missed="skip"), NOW_MS, late, None) == skipped


@pytest.mark.parametrize(("late_ms", "fires"), [(0, True), (60_000, True), (60_001, False)])
def test_the_grace_is_counted_to_the_millisecond_and_is_not_missed_yet_at_its_end(late_ms: int, fires: bool) -> None:
    found = occurrences(
        Cron("0 9 * * *"), Policy(missed="skip", grace=60), NOW_MS - 3 * HOUR_MS, NOW_MS - 3 * HOUR_MS + late_ms, None
    )
    assert bool(found.fires) is fires
    assert bool(found.skips) is not fires


def test_no_instant_after_the_end_of_the_schedule_is_owed_however_late_the_claim_is() -> None:
    ends_at = NOW_MS + 3 * HOUR_MS
    for missed, fires in (("latest", [ends_at]), ("all", [NOW_MS + n * HOUR_MS for n in range(4)])):
        found = occurrences(HOURLY, Policy(missed=missed), NOW_MS, NOW_MS + 90 * DAY_MS, ends_at)  # type: ignore[arg-type]
        assert found.fires == fires
    skipped = occurrences(HOURLY, Policy(missed="skip"), NOW_MS, NOW_MS + 90 * DAY_MS, ends_at)
    assert skipped == Occurrences([], [Skip("missed", NOW_MS, ends_at, 4)])


def test_skips_of_a_calendar_are_counted_to_a_thousand_and_of_an_interval_exactly() -> None:
    """Calendars are walked, and the walk must end; intervals are arithmetic."""
    now_at = NOW_MS + 90 * DAY_MS
    calendar = occurrences(MINUTELY, Policy(), NOW_MS, now_at, None)
    assert calendar == Occurrences([now_at], [Skip("missed", NOW_MS, now_at - MINUTE_MS, MAX_COUNTED)])
    interval = occurrences(Every(minutes=1, start=NOW_MS), Policy(), NOW_MS, now_at, None)
    assert interval == Occurrences([now_at], [Skip("missed", NOW_MS, now_at - MINUTE_MS, 90 * 24 * 60)])


@pytest.mark.parametrize("missing", [998, 999, 1_000, 1_001])
def test_the_count_of_a_calendar_is_exact_below_a_thousand(missing: int) -> None:
    now_at = NOW_MS + missing * MINUTE_MS
    (skip,) = occurrences(MINUTELY, Policy(), NOW_MS, now_at, None).skips
    assert skip.count == min(missing, MAX_COUNTED)
    assert skip.until_at == now_at - MINUTE_MS, "the span is exact in any case"


@pytest.mark.parametrize("missed", get_args(Missed))
def test_a_year_of_seconds_costs_no_walk_over_all_of_them(missed: Missed) -> None:
    """32 million instants lie between."""
    walked = 0

    class Counting(Every):
        __slots__ = ()

        def next_after(self, after_ms: int) -> int | None:
            nonlocal walked
            walked += 1
            return super().next_after(after_ms)

    occurrences(Counting(seconds=1, start=NOW_MS), Policy(missed=missed), NOW_MS, NOW_MS + 366 * DAY_MS, None)
    assert walked <= 200
    found = occurrences(parse_when("* * * * * *"), Policy(missed=missed), NOW_MS, NOW_MS + 366 * DAY_MS, None)
    assert len(found.fires) <= 100


def test_catching_up_takes_the_oldest_first_and_skips_the_rest_by_name() -> None:
    found = occurrences(HOURLY, Policy(missed="all", max_catchup=3), NOW_MS, NOW_MS + 5 * HOUR_MS, None)
    assert found.fires == [NOW_MS, NOW_MS + HOUR_MS, NOW_MS + 2 * HOUR_MS]
    assert found.skips == [Skip("max_catchup", NOW_MS + 3 * HOUR_MS, NOW_MS + 5 * HOUR_MS, 3)]


def test_what_is_late_and_what_is_too_much_are_two_skips() -> None:
    policy = Policy(missed="skip", grace=3 * 3_600, max_catchup=2)
    found = occurrences(HOURLY, policy, NOW_MS, NOW_MS + 5 * HOUR_MS, None)
    assert found.fires == [NOW_MS + 2 * HOUR_MS, NOW_MS + 3 * HOUR_MS]
    late = Skip("missed", NOW_MS, NOW_MS + HOUR_MS, 2)
    beyond = Skip("max_catchup", NOW_MS + 4 * HOUR_MS, NOW_MS + 5 * HOUR_MS, 2)
    assert found.skips == [late, beyond]
