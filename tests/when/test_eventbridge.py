"""EventBridge's cron expressions are read as EventBridge reads them: its own examples, years, wrap-around ranges, L, W and #."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickler.errors import InvalidWhen
from tickler.when import Cron, parse_when

from .effort import examples
from .instants import fires, last, ms
from .strategies import calendars, eventbridge_crons, field, instants, times, zones
from .test_properties import following

NOON = "2026-01-15T12:00Z"  # a Thursday


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # From the reference of EventBridge.
        ("0 10 * * ? *", ["2026-01-16T10:00", "2026-01-17T10:00", "2026-01-18T10:00"]),
        ("15 12 * * ? *", ["2026-01-15T12:15", "2026-01-16T12:15", "2026-01-17T12:15"]),
        ("0 18 ? * MON-FRI *", ["2026-01-15T18:00", "2026-01-16T18:00", "2026-01-19T18:00"]),
        ("0 8 1 * ? *", ["2026-02-01T08:00", "2026-03-01T08:00", "2026-04-01T08:00"]),
        ("0/15 * * * ? *", ["2026-01-15T12:15", "2026-01-15T12:30", "2026-01-15T12:45"]),
        ("0/10 * ? * MON-FRI *", ["2026-01-15T12:10", "2026-01-15T12:20", "2026-01-15T12:30"]),
        ("0/5 8-17 ? * MON-FRI *", ["2026-01-15T12:05", "2026-01-15T12:10", "2026-01-15T12:15"]),
        ("0/30 20-2 ? * MON-FRI *", ["2026-01-15T20:00", "2026-01-15T20:30", "2026-01-15T21:00"]),
        ("15 10 ? * 6L 2026-2027", ["2026-01-30T10:15", "2026-02-27T10:15", "2026-03-27T10:15"]),
        ("1/10 12 * * ? *", ["2026-01-15T12:01", "2026-01-15T12:11", "2026-01-15T12:21"]),
        ("0 0 ? * 3#2 *", ["2026-02-10T00:00", "2026-03-10T00:00", "2026-04-14T00:00"]),  # the second Tuesday
        ("0 0 3W * ? *", ["2026-02-03T00:00", "2026-03-03T00:00", "2026-04-03T00:00"]),
        # Weekdays are 1 to 7 from Sunday on.
        ("0 9 ? * 2-6 *", ["2026-01-16T09:00", "2026-01-19T09:00", "2026-01-20T09:00"]),
        ("0 9 ? * 1 *", ["2026-01-18T09:00", "2026-01-25T09:00", "2026-02-01T09:00"]),
        ("0 9 ? * 1,7 *", ["2026-01-17T09:00", "2026-01-18T09:00", "2026-01-24T09:00"]),
        ("0 9 ? * fri-mon *", ["2026-01-16T09:00", "2026-01-17T09:00", "2026-01-18T09:00"]),
        ("0 9 ? * L *", ["2026-01-17T09:00", "2026-01-24T09:00", "2026-01-31T09:00"]),  # the last day of the week
        ("0 9 ? * 1L *", ["2026-01-25T09:00", "2026-02-22T09:00", "2026-03-29T09:00"]),
        ("0 9 ? * SATL *", ["2026-01-31T09:00", "2026-02-28T09:00", "2026-03-28T09:00"]),
        ("0 9 ? * SUN#5 *", ["2026-03-29T09:00", "2026-05-31T09:00", "2026-08-30T09:00"]),
        ("0 9 ? * * *", ["2026-01-16T09:00", "2026-01-17T09:00", "2026-01-18T09:00"]),
        # Ranges may wrap around, and their steps go on.
        ("0 22-2/2 * * ? *", ["2026-01-15T22:00", "2026-01-16T00:00", "2026-01-16T02:00"]),
        ("0 0 1 NOV-FEB ? *", ["2026-02-01T00:00", "2026-11-01T00:00", "2026-12-01T00:00"]),
        # The nearest weekday stays within the month.
        ("0 0 L * ? *", ["2026-01-31T00:00", "2026-02-28T00:00", "2026-03-31T00:00"]),
        ("0 0 LW * ? *", ["2026-01-30T00:00", "2026-02-27T00:00", "2026-03-31T00:00"]),
        ("0 0 1W 1,2,8 ? *", ["2026-02-02T00:00", "2026-08-03T00:00", "2027-01-01T00:00"]),  # a Sunday, a Saturday, a Friday
        ("0 0 15W 2,3,8 ? *", ["2026-02-16T00:00", "2026-03-16T00:00", "2026-08-14T00:00"]),
        ("0 0 31W 1,5 ? *", ["2026-01-30T00:00", "2026-05-29T00:00", "2027-01-29T00:00"]),  # Saturday, Sunday, Sunday
        ("0 0 31W * ? *", ["2026-01-30T00:00", "2026-03-31T00:00", "2026-05-29T00:00"]),  # months that have one
        # Years.
        ("0 0 1 1 ? 2030", ["2030-01-01T00:00", None]),
        ("0 0 29 2 ? 2025-2033", ["2028-02-29T00:00", "2032-02-29T00:00", None]),
        ("0 0 1 7 ? 2020/4", ["2028-07-01T00:00", "2032-07-01T00:00", "2036-07-01T00:00"]),
        ("0 0 1 7 ? */100", ["2070-07-01T00:00", "2170-07-01T00:00", None]),
        ("59 23 31 12 ? 1970,2026,2199", ["2026-12-31T23:59", "2199-12-31T23:59", None]),
    ],
)
def test_an_expression_names_these_instants(body: str, expected: list[str | None]) -> None:
    when = parse_when(f"cron({body})")
    assert fires(when, NOON, 3) == [moment and f"{moment}+00:00" for moment in expected]
    assert last(when, f"{expected[0]}Z") == f"{expected[0]}+00:00"
    if expected[1] is not None:
        assert when.last_before(ms(f"{expected[1]}Z") - 1) == ms(f"{expected[0]}Z")


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ("0 9 ? * 0 *", "day-of-week", "1 to 7 from Sunday on"),
        ("0 9 ? * 8 *", "day-of-week", "1 to 7 from Sunday on"),
        ("0 9 ? * 3#6 *", "day-of-week", "3#2 alone"),
        ("0 9 ? * 3#1,6#3 *", "day-of-week", "3#2 alone"),  # AWS names this one
        ("0 9 ? * mon,6L *", "day-of-week", "6L"),
        ("0 9 ? * 2/2 *", "day-of-week", "day-of-week '2/2' is invalid"),
        ("0 9 1W,15W * ? *", "day-of-month", "15W alone"),
        ("0 9 L-3 * ? *", "day-of-month", "L-3"),
        ("0 9 0 * ? *", "day-of-month", "1 to 31"),
        ("0 9 32W * ? *", "day-of-month", "1 to 31"),
        ("0 24 * * ? *", "hour", "hour '24' is invalid in EventBridge's cron"),
        ("60 * * * ? *", "minute", "0 to 59"),
        ("5-5/2/15 * * * ? *", "minute", "0 to 59"),
        ("*/0 * * * ? *", "minute", "0 to 59"),
        ("*-5 * * * ? *", "minute", "0 to 59"),
        ("1,,2 * * * ? *", "minute", "0 to 59"),
        ("0 9 * ? ? *", "month", "JAN to DEC"),
        ("0 9 * foo ? *", "month", "month 'foo' is invalid"),
        ("0 9 * * ? 1969", "year", "1970 to 2199"),
        ("0 9 * * ? 2030-2026", "year", "ranges upwards"),
        ("0 9 * * ? ?", "year", "1970 to 2199"),
        ("0 0 12 ? * MON", "expression", "'?' for the day or for the weekday"),
        ("0 9 ? * ? *", "expression", "'?' for the day or for the weekday"),
        ("0 9 ? * MON", "expression", "six fields, minute hour day month weekday year"),
        ("0 9 30 2 ? *", "day-of-month", "no such date in any year"),
        ("0 9 29 2 ? 2026,2027", "day-of-month", "no such date in any year that it names"),
    ],
)
def test_what_eventbridge_would_not_read_is_refused_with_the_part_at_fault(body: str, field: str, reason: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        parse_when(f"cron({body})")
    assert (caught.value.field, caught.value.text) == (field, f"cron({body})")
    assert reason in caught.value.reason


def test_six_fields_without_a_question_mark_begin_with_seconds() -> None:
    assert parse_when("cron(15 0 9 * * 1-5)") == Cron("15 0 9 * * 1-5")
    assert fires(parse_when("cron(15 0 9 * * 1-5)"), NOON, 1) == ["2026-01-16T09:00:15+00:00"]


def test_it_has_one_spelling_that_aws_reads_too() -> None:
    when = parse_when("CRON( 0 9 ?\t* mon-Fri  2030 )", tz="Europe/Paris")
    assert str(when) == "cron(0 9 ? * MON-FRI 2030)"
    assert repr(when) == "Cron('cron(0 9 ? * MON-FRI 2030)', tz='Europe/Paris')"


@examples
@given(eventbridge_crons)
def test_its_text_and_zone_are_its_identity(when: Cron) -> None:
    again = parse_when(str(when), tz=when.tz)
    assert again == when == pickle.loads(pickle.dumps(when))
    assert str(again) == str(when)


@examples
@given(times, calendars, st.sampled_from(("sun", "mon-fri", "tue,thu", "SAT", "wed#2")), zones, instants)
def test_it_names_the_instants_of_our_own_spelling(
    time: tuple[str, str], calendar: tuple[str, str, str], weekday: str, tz: str, after: int
) -> None:
    month = calendar[1]
    ours, theirs = (
        Cron(f"{' '.join(time)} * {month} {weekday}", tz=tz),
        Cron(f"cron({' '.join(time)} ? {month} {weekday} *)", tz=tz),
    )
    assert following(theirs, after, 5) == following(ours, after, 5)
    assert theirs.last_before(after) == ours.last_before(after)


@examples
@given(times, field(2000, 2060), st.sampled_from(("1", "29", "L", "*/10")), zones, instants)
def test_years_leave_those_instants_whose_year_is_among_them(
    time: tuple[str, str], years: str, day: str, tz: str, after: int
) -> None:
    """Those of the wall clock; a time in a gap at the end of a year would belong to the year in which it is named."""
    all_years, some = (Cron(f"cron({' '.join(time)} {day} 6 ? {year})", tz=tz) for year in ("*", years))
    expected = all_years.next_after(after)
    named = compile_years(years)
    for _ in range(100):
        if expected is None or datetime.fromtimestamp(expected // 1000, UTC).year in named:
            break
        expected = all_years.next_after(expected + 200 * 86_400_000)
    if some.next_after(after) is None:
        assert max(named) <= datetime.fromtimestamp(after // 1000, UTC).year
    else:
        assert some.next_after(after) == expected


def compile_years(years: str) -> set[int]:
    named: set[int] = set()
    for item in years.split(","):
        span, _, step = item.partition("/")
        first, dash, end = span.partition("-")
        low, high = (1970, 2199) if span == "*" else (int(first), int(end) if dash else 2199 if step else int(first))
        named |= set(range(low, high + 1, int(step or 1)))
    return named


def test_a_year_ends_with_the_hour_that_the_clock_shows_again() -> None:
    """Dhaka's clock went back from 2010 into 2009."""
    when = parse_when("cron(*/30 23 31 12 ? 2009)", tz="Asia/Dhaka")
    shown = ["2009-12-31T23:00+07:00", "2009-12-31T23:30+07:00", "2009-12-31T23:00+06:00", "2009-12-31T23:30+06:00", None]
    assert fires(when, "2009-12-31T12:00Z", 5) == shown
    assert last(when, "2020-01-01T00:00Z") == "2009-12-31T23:30+06:00"
    assert last(when, "2009-12-31T17:20Z") == "2009-12-31T23:00+06:00"
    later = parse_when("cron(*/30 0 1 1 ? 2010)", tz="Asia/Dhaka")
    assert last(later, "2009-12-31T17:30Z") is None
    assert fires(later, "2009-12-31T12:00Z", 3) == ["2010-01-01T00:00+06:00", "2010-01-01T00:30+06:00", None]


@pytest.mark.parametrize("text", ["cron(0 0 29 2 ? 1970,2196)", "cron(* * ? * 1#5 1970,2199)", "cron(*/5 * 29 2 ? 2024)"])
def test_years_far_away_are_computed_at_once(text: str) -> None:
    start = process_time()
    when = parse_when(text, tz="Europe/Paris")
    for at in ("1900-01-01T00:00Z", "2068-03-01T00:00Z", "2300-01-01T00:00Z"):
        when.next_after(ms(at))
        when.last_before(ms(at))
    assert process_time() - start < 0.5
