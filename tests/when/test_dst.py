"""Clock changes by name: what fires in gaps and folds, at midnight, on dates that never were."""

from __future__ import annotations

from datetime import datetime
from time import perf_counter
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from tickler.when import At, Cron, Weekly

from .instants import fires, last, ms

BERLIN = "Europe/Berlin"
IN_THE_FOLD = "2025-10-26T02:15+01:00"  # Berlin, the second time the clock shows it


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2025-03-28T12:00+01:00", "2025-03-29T02:30+01:00"),
        ("2025-03-29T12:00+01:00", "2025-03-30T03:00+02:00"),  # in the gap
        ("2025-03-30T03:00+02:00", "2025-03-31T02:30+02:00"),
        ("2025-10-25T12:00+02:00", "2025-10-26T02:30+02:00"),  # in the fold: the first
        ("2025-10-26T02:30+02:00", "2025-10-27T02:30+01:00"),  # and not again
        ("2025-10-26T02:29:59+01:00", "2025-10-27T02:30+01:00"),
    ],
)
def test_half_past_two_in_berlin(after: str, expected: str) -> None:
    plan = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), "02:30")
    for when in (Cron("30 2 * * *", tz=BERLIN), Weekly(plan, tz=BERLIN)):
        assert fires(when, after, 1) == [expected]
        assert last(when, expected) == expected


def test_a_time_in_a_gap_fires_at_the_first_instant_after_it() -> None:
    assert At("2025-03-30T02:59:59.999", tz=BERLIN).at_ms == ms("2025-03-30T03:00+02:00")
    assert At("2025-03-30T02:00", tz=BERLIN).at_ms == ms("2025-03-30T03:00+02:00")


def test_a_time_in_a_fold_fires_once_the_first_time() -> None:
    assert At("2025-10-26T02:15:30.250", tz=BERLIN).at_ms == ms("2025-10-26T02:15:30.250+02:00")
    assert At(datetime(2025, 10, 26, 2, 15, fold=1), tz=BERLIN).at_ms == ms("2025-10-26T02:15+02:00")


def test_wall_times_that_land_on_one_instant_are_one_fire() -> None:
    when = Cron("0,15,30,45 2,3 * * *", tz=BERLIN)
    assert fires(when, "2025-03-30T00:00+01:00", 3) == [f"2025-03-30T03:{minute}+02:00" for minute in ("00", "15", "30")]
    plan = Weekly({"sun": ["02:10", "02:50", "03:00"]}, tz=BERLIN)
    assert fires(plan, "2025-03-30T00:00+01:00", 2) == ["2025-03-30T03:00+02:00", "2025-04-06T02:10+02:00"]


def test_running_expressions_follow_real_time_through_gap_and_fold() -> None:
    when = Cron("*/30 * * * *", tz=BERLIN)
    assert fires(when, "2025-03-30T01:00+01:00", 2) == ["2025-03-30T01:30+01:00", "2025-03-30T03:00+02:00"]
    second_pass = ["2025-10-26T02:00+01:00", "2025-10-26T02:30+01:00", "2025-10-26T03:00+01:00"]
    assert fires(when, "2025-10-26T02:30+02:00", 3) == second_pass
    assert last(when, "2025-10-26T02:29:59+01:00") == "2025-10-26T02:00+01:00"
    assert fires(Cron("0 */2 * * *", tz=BERLIN), "2025-10-26T01:00+02:00", 3) == [
        "2025-10-26T02:00+02:00",
        "2025-10-26T02:00+01:00",
        "2025-10-26T04:00+01:00",
    ]


def test_a_running_time_that_is_always_in_the_gap_never_comes() -> None:
    start = perf_counter()
    when = Cron("*/10 2 25-31 3 */7", tz=BERLIN)  # two o'clock on the last Sunday of March
    assert when.next_after(ms("2026-01-01T00:00Z")) is None
    assert last(when, "2026-01-01T00:00Z") == "1980-03-30T02:50+01:00"
    assert fires(Cron("0 2 25-31 3 */7", tz=BERLIN), "2026-01-01T00:00Z", 1) == ["2026-03-29T03:00+02:00"]
    assert perf_counter() - start < 1


@pytest.mark.parametrize("expr", ["30 2 * * *", "20 2 * * *", "59 2 26 10 *"])
def test_starting_inside_a_fold_never_goes_back_where_cronsim_does(expr: str) -> None:
    inside = datetime.fromtimestamp(ms(IN_THE_FOLD) // 1000, ZoneInfo(BERLIN))
    assert next(CronSim(expr, inside)).timestamp() < inside.timestamp()
    following = Cron(expr, tz=BERLIN).next_after(ms(IN_THE_FOLD))
    assert following is not None
    assert following >= ms("2025-10-27T00:00+01:00")


def test_lord_howe_jumps_half_an_hour_and_wildcard_minutes_keep_up() -> None:
    zone = "Australia/Lord_Howe"  # 02:00+10:30 is followed by 02:30+11:00
    after = "2025-10-05T01:45+10:30"
    expected = ["2025-10-05T01:50+10:30", "2025-10-05T02:30+11:00", "2025-10-05T02:40+11:00"]
    assert fires(Cron("*/10 * * * *", tz=zone), after, 3) == expected
    hour = fires(Cron("* 2 * * *", tz=zone), after, 31)
    assert (hour[0], hour[29], hour[30]) == ("2025-10-05T02:30+11:00", "2025-10-05T02:59+11:00", "2025-10-06T02:00+11:00")
    assert fires(Cron("15 2 * * *", tz=zone), after, 2) == ["2025-10-05T02:30+11:00", "2025-10-06T02:15+11:00"]
    assert fires(Cron("0,15,30 2 * * *", tz=zone), after, 2) == ["2025-10-05T02:30+11:00", "2025-10-06T02:00+11:00"]


def test_lord_howe_falls_back_half_an_hour() -> None:
    zone = "Australia/Lord_Howe"  # 02:00+11:00 is followed by 01:30+10:30
    times = ["01:15+11:00", "01:30+11:00", "01:45+11:00", "01:30+10:30", "01:45+10:30", "02:00+10:30"]
    assert fires(Cron("*/15 * * * *", tz=zone), "2025-04-06T01:00+11:00", 6) == [f"2025-04-06T{time}" for time in times]
    assert fires(Cron("45 1 * * *", tz=zone), "2025-04-06T01:00+11:00", 2) == ["2025-04-06T01:45+11:00", "2025-04-07T01:45+10:30"]


@pytest.mark.parametrize(
    ("zone", "gap", "after_gap", "last_evening", "only_midnight"),
    [
        ("Asia/Beirut", "2025-03-30", "01:00+03:00", "2025-10-25T23:30+03:00", "2025-10-26T00:00+02:00"),
        ("America/Sao_Paulo", "2017-10-15", "01:00-02:00", "2017-02-18T23:30-02:00", "2017-02-19T00:00-03:00"),
        ("America/Havana", "2025-03-09", "01:00-04:00", "2025-11-01T23:30-04:00", "2025-11-02T00:00-04:00"),
        ("Africa/Cairo", "2025-04-25", "01:00+03:00", "2025-10-30T23:30+03:00", "2025-10-31T00:00+02:00"),
    ],
)
def test_zones_that_change_at_midnight_have_one_midnight_a_day(
    zone: str, gap: str, after_gap: str, last_evening: str, only_midnight: str
) -> None:
    daily, evenings = Cron("@daily", tz=zone), Cron("30 23 * * *", tz=zone)
    assert fires(daily, f"{gap}T00:00+12:00", 1) == [f"{gap}T{after_gap}"]
    assert fires(Cron("0,30 0,1 * * *", tz=zone), f"{gap}T00:00+12:00", 1) == [f"{gap}T{after_gap}"]
    assert At(f"{gap}T00:30", tz=zone).at_ms == ms(f"{gap}T{after_gap}")
    morning = f"{last_evening[:11]}10:00{last_evening[16:]}"
    assert fires(evenings, morning, 1) == [last_evening]
    assert fires(daily, morning, 1) == [only_midnight]
    for when, once in ((evenings, last_evening), (daily, only_midnight)):
        again = when.next_after(ms(once))
        assert again is not None
        assert again - ms(once) >= 24 * 3_600_000


def test_half_past_eleven_is_once_where_the_clock_goes_back_over_midnight() -> None:
    when = Cron("30 23 * * *", tz="Asia/Beirut")
    assert fires(when, "2025-10-25T23:30+03:00", 1) == ["2025-10-26T23:30+02:00"]
    assert last(when, "2025-10-25T23:45+02:00") == "2025-10-25T23:30+03:00"
    assert fires(Cron("30 * * * *", tz="Asia/Beirut"), "2025-10-25T23:30+03:00", 1) == ["2025-10-25T23:30+02:00"]


def test_santiago_changes_within_an_hour_or_so_of_where_the_table_of_spans_is_cut() -> None:
    zone = "America/Santiago"  # a window of 2**25 seconds begins on 1973-03-11 at 02:01:36Z, another on 1999-10-10 at 02:54:56Z
    assert fires(Cron("30 23 * * *", tz=zone), "1973-03-10T12:00-03:00", 2) == [
        "1973-03-10T23:30-03:00",
        "1973-03-11T23:30-04:00",
    ]
    assert fires(Cron("30 * * * *", tz=zone), "1973-03-10T23:00-03:00", 2) == ["1973-03-10T23:30-03:00", "1973-03-10T23:30-04:00"]
    assert fires(Cron("30 0 * * *", tz=zone), "1999-10-09T12:00-04:00", 2) == ["1999-10-10T01:00-03:00", "1999-10-11T00:30-03:00"]
    assert last(Cron("30 0 * * *", tz=zone), "1999-10-10T01:30-03:00") == "1999-10-10T01:00-03:00"


def test_casablanca_turns_its_clock_back_for_ramadan_and_forward_after_it() -> None:
    when = Cron("30 2 * * *", tz="Africa/Casablanca")
    assert fires(when, "2025-02-22T12:00+01:00", 2) == ["2025-02-23T02:30+01:00", "2025-02-24T02:30+00:00"]
    assert fires(when, "2025-04-05T12:00+00:00", 2) == ["2025-04-06T03:00+01:00", "2025-04-07T02:30+01:00"]


def test_gaza_changes_on_other_dates_every_year_and_twice_within_a_week() -> None:
    when = Cron("30 2 * * *", tz="Asia/Gaza")
    assert fires(when, "2025-04-11T12:00+02:00", 2) == ["2025-04-12T03:00+03:00", "2025-04-13T02:30+03:00"]
    assert fires(Cron("30 1 * * *", tz="Asia/Gaza"), "2025-10-25T00:00+03:00", 2) == [
        "2025-10-25T01:30+03:00",
        "2025-10-26T01:30+02:00",
    ]
    assert fires(Cron("30 2 * * 6", tz="Asia/Gaza"), "2040-10-19T12:00+02:00", 3) == [
        "2040-10-20T03:00+03:00",
        "2040-10-27T02:30+02:00",
        "2040-11-03T02:30+02:00",
    ]
