"""What holds for every when, at every instant, in every zone."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from itertools import islice, pairwise

from cronsim import CronSim
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tickler.when import Cron, Every, Weekly, When, parse_when

from .changes import Change, cron_trial
from .effort import examples
from .strategies import (
    RESTLESS_ZONES,
    anchors,
    changes_of,
    expressions,
    instants,
    intervals,
    plain_expressions,
    plans,
    questions,
    whens,
    zones,
)
from .test_oracle import disagreement
from .transitions import ZONES


def following(when: When, after: int, n: int) -> list[int]:
    found: list[int] = []
    at: int | None = after
    while len(found) < n and at is not None and (at := when.next_after(at)) is not None:
        found.append(at)
    return found


@examples
@given(questions)
def test_next_after_is_later_and_strictly_increasing(question: tuple[When, int]) -> None:
    when, after = question
    assert all(earlier < later for earlier, later in pairwise([after, *following(when, after, 20)]))


@examples
@given(questions)
def test_the_next_instant_is_its_own_last(question: tuple[When, int]) -> None:
    when, after = question
    upcoming = when.next_after(after)
    assume(upcoming is not None)
    assert upcoming is not None
    assert when.last_before(upcoming) == upcoming


@examples
@given(questions)
def test_nothing_lies_between_an_instant_and_the_next(question: tuple[When, int]) -> None:
    when, after = question
    upcoming = when.next_after(after)
    latest = when.last_before(after if upcoming is None else upcoming - 1)
    assert latest is None or latest <= after
    assert latest == when.last_before(after)


@examples
@given(questions)
def test_the_last_instant_is_the_next_of_the_moment_before_it(question: tuple[When, int]) -> None:
    when, until = question
    latest = when.last_before(until)
    assume(latest is not None)
    assert latest is not None
    assert latest <= until
    assert when.next_after(latest - 1) == latest
    upcoming = when.next_after(latest)
    assert upcoming is None or upcoming > until


@examples
@given(questions, st.lists(st.integers(-3 * 86_400_000, 3 * 86_400_000), min_size=2, max_size=12))
def test_what_was_asked_before_does_not_change_an_answer(question: tuple[When, int], distances: list[int]) -> None:
    when, at = question
    for distance in distances:
        fresh = pickle.loads(pickle.dumps(when))
        assert when.next_after(at + distance) == fresh.next_after(at + distance)
        assert when.last_before(at + distance) == fresh.last_before(at + distance)


@examples
@given(whens)
def test_its_text_and_zone_are_its_identity(when: When) -> None:
    again = parse_when(str(when), tz=when.tz)
    assert again == when
    assert hash(again) == hash(when)
    assert str(again) == str(when)


@examples
@given(questions)
def test_a_pickle_brings_back_the_same(question: tuple[When, int]) -> None:
    when, after = question
    again = pickle.loads(pickle.dumps(when))
    assert again == when
    assert again.next_after(after) == when.next_after(after)


@examples
@given(questions, st.integers(0, 8))
def test_upcoming_is_next_after_repeated(question: tuple[When, int], n: int) -> None:
    when, after = question
    start = datetime.fromtimestamp(after // 1000, UTC)
    seen = when.upcoming(n, after=start)
    assert [round(moment.timestamp() * 1000) for moment in seen] == following(when, after // 1000 * 1000, n)
    assert all(moment.tzinfo is not None and str(moment.tzinfo) == when.tz for moment in seen)


@examples
@given(expressions(), instants)
@example("0 0 29 2 mon#5", 0)
@example("* * LW */2 *", 1_700_000_000_000)
def test_cronsim_agrees_where_there_is_no_dst(expr: str, after: int) -> None:
    peer = CronSim(expr, datetime.fromtimestamp(after // 1000, UTC))
    expected = [int(moment.timestamp()) * 1000 for moment in islice(peer, 8)]  # none when it gave up after 50 years
    assert following(Cron(expr), after // 1000 * 1000, len(expected)) == expected


@examples
@given(plain_expressions(), st.sampled_from(RESTLESS_ZONES), st.data())
def test_any_expression_fires_around_a_change_as_the_oracle_says(expr: str, zone: str, data: st.DataObject) -> None:
    change = Change(zone, data.draw(st.sampled_from(changes_of(zone))))
    assert disagreement(Cron(expr, tz=zone), change, change.fires(cron_trial(expr))) is None


@examples
@given(plans, zones, instants)
def test_a_weekly_plan_is_the_union_of_a_cron_for_each_of_its_times(plan: dict[str, object], tz: str, after: int) -> None:
    weekly = Weekly(plan, tz=tz)
    each = [
        Cron(f"{int(time[6:] or 0)} {int(time[3:5])} {int(time[:2])} * * {day}", tz=tz)
        for day, times in weekly.days().items()
        for time in times
    ]
    at: int | None = after
    for _ in range(10):
        assert at is not None
        candidates = [upcoming for cron in each if (upcoming := cron.next_after(at)) is not None]
        latest = [last for cron in each if (last := cron.last_before(at)) is not None]
        assert weekly.last_before(at) == max(latest, default=None)
        assert weekly.next_after(at) == min(candidates, default=None)
        at = min(candidates, default=None)
        if at is None:
            break


@examples
@given(intervals, anchors, instants)
def test_an_interval_is_counted_from_its_start(seconds: float, start: int | None, at: int) -> None:
    every = Every(seconds=seconds, start=start)
    interval, anchor = round(seconds * 1000), start or 0
    upcoming, latest = every.next_after(at), every.last_before(at)
    assert every.interval_ms == interval
    assert upcoming is not None
    assert (upcoming - anchor) % interval == 0
    assert upcoming == anchor if at < anchor else at < upcoming <= at + interval
    assert latest is None if at < anchor else latest == upcoming - interval


@examples
@given(st.one_of(expressions().map(Cron), plans.map(Weekly)), instants)
def test_no_two_instants_are_nearer_than_the_shortest_interval(when: When, after: int) -> None:
    shortest = when.shortest_interval_ms()
    gaps = [later - earlier for earlier, later in pairwise(following(when, after, 30))]
    assert (shortest is None) == (when.next_after(after) is None)
    assert shortest is None or min(gaps, default=shortest) >= shortest


@examples
@given(st.sampled_from(ZONES), plans)
def test_whens_are_equal_when_text_and_zone_are(zone: str, plan: dict[str, object]) -> None:
    here, there = Weekly(plan, tz=zone), Weekly(plan, tz="UTC")
    assert (here == there) == (zone == "UTC")
    assert here == Weekly(here.days(), tz=zone)
    assert here != Every(hours=1)
