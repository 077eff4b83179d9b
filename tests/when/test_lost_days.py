"""Days that a zone skipped, hours that Vostok lost, seconds, and the far ends of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tickler.when import At, Cron, Every, Weekly, When

from .instants import fires, last, ms

APIA = "Pacific/Apia"  # after 29 December 2011 came the 31st
BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("when", "before", "after"),
    [
        (Cron("0 12 * * *", tz=APIA), "2011-12-29T12:00-10:00", "2011-12-31T12:00+14:00"),
        (Cron("0 12 30 * *", tz=APIA), "2011-11-30T12:00-10:00", "2012-01-30T12:00+14:00"),
        (Cron("0 12 * * fri", tz=APIA), "2011-12-23T12:00-10:00", "2012-01-06T12:00+14:00"),
        (Cron("0 12 * * 5L", tz=APIA), "2011-11-25T12:00-10:00", "2012-01-27T12:00+14:00"),
        (Cron("*/30 * * * *", tz=APIA), "2011-12-29T23:30-10:00", "2011-12-31T00:00+14:00"),
        (Cron("* * 30 12 *", tz=APIA), "2010-12-30T23:59-10:00", "2012-12-30T00:00+14:00"),
        (Cron("@daily", tz=APIA), "2011-12-29T00:00-10:00", "2011-12-31T00:00+14:00"),
        (Weekly({"fri": ["00:00", "09:00"]}, tz=APIA), "2011-12-23T09:00-10:00", "2012-01-06T00:00+14:00"),
        (Cron("0 9 * * *", tz="Pacific/Fakaofo"), "2011-12-29T09:00-11:00", "2011-12-31T09:00+13:00"),
        (Cron("0 9 21 * *", tz="Pacific/Kwajalein"), "1993-07-21T09:00-12:00", "1993-09-21T09:00+12:00"),
        (Cron("59 23 20-22 8 *", tz="Pacific/Kwajalein"), "1993-08-20T23:59-12:00", "1993-08-22T23:59+12:00"),
        (Cron("0 0 L * *", tz="Pacific/Kiritimati"), "1994-11-30T00:00-10:00", "1995-01-31T00:00+14:00"),
        (Cron("0 0 31 12 *", tz="Pacific/Kiritimati"), "1993-12-31T00:00-10:00", "1995-12-31T00:00+14:00"),
    ],
)
def test_a_date_that_the_zone_skipped_has_no_fires(when: When, before: str, after: str) -> None:
    assert fires(when, before, 1) == [after]
    assert when.last_before(ms(after) - 1) == ms(before)


@pytest.mark.parametrize("time", ["00:00:00", "12:00:00", "23:59:59.999"])
def test_a_moment_on_a_date_that_the_zone_skipped_never_comes(time: str) -> None:
    when = At(f"2011-12-30T{time}", tz=APIA)
    assert when.at_ms is None
    assert when.next_after(0) is None
    assert when.last_before(ms("2030-01-01T00:00Z")) is None
    assert when.upcoming(3) == []


def test_the_new_year_of_kiritimati_comes_right_after_the_thirtieth() -> None:
    when = Cron("@yearly", tz="Pacific/Kiritimati")
    assert fires(when, "1994-12-30T23:59-10:00", 2) == ["1995-01-01T00:00+14:00", "1996-01-01T00:00+14:00"]


def test_vostok_lived_through_seven_hours_twice() -> None:
    zone = "Antarctica/Vostok"  # 1 February 1994, 00:00+07:00 is followed by 31 January, 17:00+00:00
    assert fires(Cron("0 18 * * *", tz=zone), "1994-01-31T12:00+07:00", 2) == ["1994-01-31T18:00+07:00", "1994-02-01T18:00+00:00"]
    assert len(set(fires(Cron("0 17-23 * * *", tz=zone), "1994-01-31T12:00+07:00", 14))) == 14
    evening = fires(Cron("0 17-23 * * *", tz=zone), "1994-01-31T12:00+07:00", 8)
    assert (evening[0], evening[6], evening[7]) == (
        "1994-01-31T17:00+07:00",
        "1994-01-31T23:00+07:00",
        "1994-02-01T17:00+00:00",
    )
    assert fires(Cron("0 0 1 2 *", tz=zone), "1994-01-31T23:00+07:00", 1) == ["1994-02-01T00:00+00:00"]
    assert last(Cron("30 17 * * *", tz=zone), "1994-01-31T23:59+00:00") == "1994-01-31T17:30+07:00"
    running = fires(Cron("0 */6 * * *", tz=zone), "1994-01-31T12:00+07:00", 3)
    assert running == ["1994-01-31T18:00+07:00", "1994-01-31T18:00+00:00", "1994-02-01T00:00+00:00"]


def test_vostok_lost_seven_hours_that_year() -> None:
    zone = "Antarctica/Vostok"  # 1 November 1994, 00:00+00:00 is followed by 07:00+07:00
    night = Cron("0 0-8 * * *", tz=zone)
    assert fires(night, "1994-10-31T12:00+00:00", 2) == ["1994-11-01T07:00+07:00", "1994-11-01T08:00+07:00"]
    assert last(night, "1994-11-01T07:30+07:00") == "1994-11-01T07:00+07:00"
    assert fires(Cron("*/20 6-7 * * *", tz=zone), "1994-10-31T12:00+00:00", 1) == ["1994-11-01T07:00+07:00"]
    assert At("1994-11-01T03:00", tz=zone).at_ms == ms("1994-11-01T07:00+07:00")


@pytest.mark.parametrize(
    ("expr", "after", "expected"),
    [
        ("30 30 2 * * *", "2025-03-30T00:00+01:00", ["2025-03-30T03:00+02:00", "2025-03-31T02:30:30+02:00"]),
        ("*/20 30 2 * * *", "2025-03-30T00:00+01:00", ["2025-03-30T03:00+02:00", "2025-03-31T02:30+02:00"]),
        ("*/30 * * * * *", "2025-03-30T01:59:15+01:00", ["2025-03-30T01:59:30+01:00", "2025-03-30T03:00+02:00"]),
        ("59 59 * * * *", "2025-03-30T01:59:58+01:00", ["2025-03-30T01:59:59+01:00", "2025-03-30T03:59:59+02:00"]),
        ("59 59 1 * * *", "2025-03-30T00:00+01:00", ["2025-03-30T01:59:59+01:00", "2025-03-31T01:59:59+02:00"]),
        ("59 59 2 * * *", "2025-10-26T00:00+02:00", ["2025-10-26T02:59:59+02:00", "2025-10-27T02:59:59+01:00"]),
        ("20,40 59 2 * * *", "2025-10-26T02:59:30+02:00", ["2025-10-26T02:59:40+02:00", "2025-10-27T02:59:20+01:00"]),
        ("*/30 59 2 * * *", "2025-10-26T02:00+01:00", ["2025-10-27T02:59+01:00", "2025-10-27T02:59:30+01:00"]),
        ("30 59 * * * *", "2025-10-26T02:59+02:00", ["2025-10-26T02:59:30+02:00", "2025-10-26T02:59:30+01:00"]),
        ("15 30 2 * * *", "2025-10-26T02:30+01:00", ["2025-10-27T02:30:15+01:00", "2025-10-28T02:30:15+01:00"]),
    ],
)
def test_expressions_with_seconds_in_gaps_and_folds(expr: str, after: str, expected: list[str]) -> None:
    when = Cron(expr, tz=BERLIN)
    assert fires(when, after, 2) == expected
    assert [last(when, moment) for moment in expected] == expected


def test_monrovia_was_forty_four_and_a_half_minutes_behind_until_1972() -> None:
    zone = "Africa/Monrovia"
    assert Cron("0 9 * * *", tz=zone).next_after(ms("1960-06-01T00:00Z")) == ms("1960-06-01T09:44:30Z")
    assert Cron("*/15 * * * *", tz=zone).last_before(ms("1960-06-01T10:00Z")) == ms("1960-06-01T09:59:30Z")
    gap = Cron("30 0 * * *", tz=zone)  # on 7 January 1972 00:00:00 was followed by 00:44:30
    assert gap.next_after(ms("1972-01-07T00:00Z")) == ms("1972-01-07T00:44:30Z")
    assert gap.next_after(ms("1972-01-07T00:44:30Z")) == ms("1972-01-08T00:30Z")


def test_instants_before_1970_are_negative_and_as_exact() -> None:
    new_year = Cron("@yearly")
    assert new_year.next_after(-1) == 0
    assert new_year.last_before(-1) == ms("1969-01-01T00:00Z")
    assert new_year.last_before(0) == 0
    assert fires(Cron("30 2 * * *", tz="America/New_York"), "1950-04-29T12:00-05:00", 1) == ["1950-04-30T03:00-04:00"]
    assert last(Cron("0 9 29 2 *", tz="Europe/London"), "1904-01-01T00:00Z") == "1896-02-29T09:00+00:00"
    assert Weekly({"thu": "12:00"}).last_before(-1) == ms("1969-12-25T12:00Z")


def test_the_clock_still_changes_in_the_year_9998() -> None:
    assert fires(Cron("30 2 * * sun", tz=BERLIN), "9998-03-25T12:00+01:00", 1) == ["9998-03-29T03:00+02:00"]
    assert fires(Cron("30 2 * * sun", tz=BERLIN), "9998-10-24T12:00+02:00", 1) == ["9998-10-25T02:30+02:00"]
    assert Cron("0 0 29 2 *", tz=BERLIN).next_after(ms("9996-03-01T00:00Z")) is None
    assert last(Cron("0 0 29 2 *", tz=BERLIN), "9999-12-31T00:00Z") == "9996-02-29T00:00+01:00"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("expr", ["59 23 31 12 *", "0 0 1 1 *", "0 0 * * *", "* * * * *", "0 0 * * mon"])
def test_the_ends_of_the_calendar_have_an_answer(expr: str, zone: str) -> None:
    when = Cron(expr, tz=zone)
    for at in (ms("9999-12-31T23:59:59.999Z"), ms("9999-12-31T13:00Z"), ms("0001-01-01T00:00Z"), ms("0001-01-01T12:00Z")):
        following, latest = when.next_after(at), when.last_before(at)
        assert following is None or following > at
        assert latest is None or latest <= at


@pytest.mark.parametrize(
    "when",
    [
        Cron("@hourly"),
        Cron("@hourly", tz="America/New_York"),
        Weekly({"fri": "09:00"}),
        Every(hours=1),
    ],
    ids=str,
)
def test_what_people_see_ends_with_the_calendar(when: When) -> None:
    seen = when.upcoming(5, after=datetime(9999, 12, 31, 21, 30, tzinfo=UTC))
    assert len(seen) <= 2
    assert all(moment.year == 9999 for moment in seen)
