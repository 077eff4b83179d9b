"""What a when says in words: what people would say, and never the same for two that differ."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tickler.errors import InvalidWhen
from tickler.when import Cron, Unreadable, When, in_words, parse_when
from tickler.when.cron import compile_cron
from tickler.when.cron_fields import FieldValues

from .effort import examples
from .strategies import calendars, expressions, field, times, whens

SAID = {
    # Times of day.
    "0 2 * * *": "at 02:00 every day",
    "@daily": "at 00:00 every day",
    "0 9,17 * * *": "at 09:00 and 17:00 every day",
    "15,45 9 * * *": "at 09:15 and 09:45 every day",
    "0 */6 * * *": "at 00:00, 06:00, 12:00 and 18:00 every day",
    "30 0 9 * * *": "at 09:00:30 every day",
    # Beats.
    "* * * * *": "every minute",
    "*/5 * * * *": "every 5 minutes",
    "5-59/10 * * * *": "every 10 minutes from minute 5 of the hour on",
    "*/5 9-17 * * 1-5": "every 5 minutes from 09:00 to 17:55 on weekdays",
    "0,30 8-20 * * mon-fri": "every 30 minutes from 08:00 to 20:30 on weekdays",
    "* 9 * * sat,sun": "every minute from 09:00 to 09:59 on Saturdays and Sundays",
    "*/5 9,11,13 * * *": "every 5 minutes in the hours 9, 11 and 13 every day",
    "*/5 * * 1 *": "every 5 minutes in January",
    "@hourly": "every hour on the hour",
    "15 * * * *": "every hour at minute 15",
    "0 9-17 * * *": "every hour from 09:00 to 17:00 every day",
    "5 9-17/2 * * *": "every 2 hours from 09:05 to 17:05 every day",
    "0 */4 * * *": "every 4 hours from 00:00 to 20:00 every day",
    "* * * * * *": "every second",
    "*/10 * * * * *": "every 10 seconds",
    "5/10 * * * * *": "every 10 seconds from second 5 of the minute on",
    "*/10 30 9 * * *": "every 10 seconds from 09:30:00 to 09:30:50 every day",
    "*/30 * 9-17 * * *": "every 30 seconds from 09:00:00 to 17:59:30 every day",
    "30 * * * * *": "every minute at second 30",
    "30 0 * * * *": "every hour at minute 0 at second 30",
    # What is not regular is named by its fields.
    "*/7 * * * *": "at minutes 0 to 56 in steps of 7 of every hour",
    "1,2,3,7 9,11 * * *": "at minutes 1 to 3 and 7 of hours 9 and 11 every day",
    "0 1,5,6,9,13 * * *": "at minute 0 of hours 1, 5, 6, 9 and 13 every day",
    "1,2,5 0 9,11 * * *": "at seconds 1, 2 and 5 of minute 0 of hours 9 and 11 every day",
    # Days.
    "@weekly": "at 00:00 on Sundays",
    "0 22 * * 1-6": "at 22:00 from Monday to Saturday",
    "0 22 * * 0,7,1": "at 22:00 on Mondays and Sundays",
    "@monthly": "at 00:00 on day 1 of the month",
    "0 0 1-7,15 * *": "at 00:00 on days 1 to 7 and 15 of the month",
    "0 0 L * *": "at 00:00 on the last day of the month",
    "0 0 1,LW * *": "at 00:00 on day 1 and the last weekday of the month",
    "0 9 * * mon#2": "at 09:00 on the second Monday of the month",
    "0 9 * 3 mon#2,5L": "at 09:00 on the second Monday and the last Friday of March",
    "0 9 * * mon,5L": "at 09:00 on Mondays and the last Friday of the month",
    "0 9 * * mon,mon#2": "at 09:00 on Mondays",
    "@yearly": "at 00:00 on 1 January",
    "0 9 1,15 1,7 *": "at 09:00 on days 1 and 15 of January and July",
    "0 9 1 6-8 *": "at 09:00 on day 1 of each month from June to August",
    "*/20 * * jun-aug mon-thu": "every 20 minutes from Monday to Thursday from June to August",
    # Day and weekday: one of them is enough, unless one begins with a star.
    "0 9 1 * mon": "at 09:00 on day 1 of the month and also on Mondays",
    "0 9 */5 * mon": "at 09:00 on days 1 to 31 in steps of 5 of the month, if that is a Monday",
    "0 0 1 * */2": "at 00:00 on day 1 of the month, if that is a Tuesday, a Thursday, a Saturday or a Sunday",
    "0 0 */10 * 1-5": "at 00:00 on days 1 to 31 in steps of 10 of the month, if that is a weekday",
    "0 9 1-31 * mon": "at 09:00 every day",
    # EventBridge's.
    "cron(0 9 ? * 2-6 *)": "at 09:00 on weekdays",
    "cron(15 10 ? * 6L 2030,2031)": "at 10:15 on the last Friday of the month, in 2030 and 2031",
    "cron(0 8 1W * ? 2030-2035)": "at 08:00 on the weekday nearest to day 1 of the month, from 2030 to 2035",
    "cron(0 8 15W 3 ? *)": "at 08:00 on the weekday nearest to day 15 of March",
    "cron(0 0 1 1 ? 2030/2)": "at 00:00 on 1 January, in 2030 to 2198 in steps of 2",
    # The other kinds.
    "weekly(tue 09:00, thu 09:00)": "at 09:00 on Tuesdays and Thursdays",
    "weekly(tue 09:00, thu 09:00 17:30)": "at 09:00 on Tuesdays; at 09:00 and 17:30 on Thursdays",
    "weekly(mon 09:00, tue 09:00, wed 09:00, thu 09:00, fri 09:00)": "at 09:00 on weekdays",
    "weekly()": "never: every day is off",
    "at(2026-03-15T00:00:00)": "once, on 15 March 2026 at 00:00",
    "at(2026-03-15T09:30:15.5)": "once, on 15 March 2026 at 09:30:15.500",
    "rate(5 minutes)": "every 5 minutes",
    "rate(1 hour)": "every hour",
    "@every 1h30m": "every 1 hour 30 minutes",
    "@every 1d": "every 24 hours",
    "@every 2w": "every 14 days",
    "@every 1s500ms": "every 1 second 500 milliseconds",
    "@every 1h from 2026-01-01T00:00:00Z": "every hour, counted from 2026-01-01 00:00:00 UTC",
}


@pytest.mark.parametrize(("text", "words"), SAID.items())
def test_it_is_said_as_people_say_it(text: str, words: str) -> None:
    assert in_words(parse_when(text)) == words


def test_a_date_that_a_zone_skipped_never_comes() -> None:
    assert (
        in_words(parse_when("at(2011-12-30T09:00:00)", "Pacific/Apia")) == "never: there is no 30 December 2011 in Pacific/Apia"
    )


def test_what_does_not_read_says_why() -> None:
    assert in_words(Unreadable("phase(moon)", "UTC", "no such moon")) == "unreadable: no such moon"


@examples
@given(whens)
def test_every_when_has_words(when: When) -> None:
    words = in_words(when)
    assert words
    assert words == words.strip()
    assert "  " not in words
    assert words.isprintable()


def meaning(named: FieldValues) -> tuple[object, ...]:
    """What of the fields decides when it fires."""
    weekdays = frozenset(day for day in named.weekdays if isinstance(day, int) or day[0] not in named.weekdays)
    any_day, any_weekday = named.days >= frozenset(range(1, 32)), weekdays >= frozenset(range(7))
    one_is_enough = not named.both and (any_day or any_weekday)
    days = None if any_day or one_is_enough else named.days
    of_week = None if any_weekday or one_is_enough else weekdays
    both = named.both if days and of_week else None
    return named.seconds, named.minutes, named.hours, named.months, days, of_week, both, named.nearest, named.years


@examples
@given(expressions(), st.data())
def test_an_expression_that_differs_in_one_field_is_said_differently(text: str, data: st.DataObject) -> None:
    parts = text.split()
    place = data.draw(st.integers(0, len(parts) - 1))
    another = st.one_of(st.tuples(field(0, 59)), times, calendars)
    parts[place] = data.draw(another.flatmap(st.sampled_from))
    try:
        other = Cron(" ".join(parts))
    except InvalidWhen:
        assume(False)
    one = Cron(text)
    named, others = (compile_cron(str(cron)).values for cron in (one, other))
    assert (in_words(one) == in_words(other)) == (meaning(named) == meaning(others))


SMALL = ("*", "0", "7", "0,30", "*/5", "*/7", "3/10", "0-10", "1,2,5", "*/30")
HOURS = ("*", "0", "9", "9,17", "9-17", "*/2", "*/7", "1,2,5", "9-11", "1/6")
DAYS = ("*", "1", "1-31", "1,15", "*/5", "L", "LW", "1-7")
NEAREST = ("1W", "15W", "31W")
MONTHS = ("*", "1", "1,7", "6-8", "*/3")
YEARS = ("*", "2030", "2030,2031", "2030-2032", "2030,2032", "2030/2", "2030/3")
WEEKDAYS = ("*", "1", "0", "1-5", "0,6", "1-4", "*/2", "mon#2", "5L", "mon,5L")


@pytest.mark.parametrize(
    "expressions",
    [
        [f"{second} {minute} {hour} * * *" for second, minute, hour in product(SMALL, SMALL, HOURS)],
        [f"0 9 {day} {month} {weekday}" for day, month, weekday in product((*DAYS, "1,L"), MONTHS, WEEKDAYS)],
        [f"cron(0 9 {day} {month} ? {year})" for day, month, year in product((*NEAREST, *DAYS), MONTHS, YEARS)],
    ],
    ids=["times of day", "days", "EventBridge"],
)
def test_no_two_that_differ_are_said_alike(expressions: list[str]) -> None:
    said: dict[str, tuple[object, ...]] = {}
    for text in expressions:
        named = compile_cron(str(Cron(text))).values
        assert said.setdefault(in_words(Cron(text)), meaning(named)) == meaning(named), text
