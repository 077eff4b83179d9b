"""`tickler preview`: words, times, and where the clock goes forward or back. No store is needed."""

from __future__ import annotations

import pytest

from .conftest import Here


def test_it_says_the_expression_in_words_and_marks_gaps(here: Here) -> None:
    done = here("preview", "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2026-03-28T12:00:00", "-n", "2")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "at 02:30 every day, in Europe/Berlin",
        "",
        "Europe/Berlin                   UTC                  mark",
        "Sun 2026-03-29 03:00:00 +02:00  2026-03-29 01:00:00  02:30 does not exist that day: fires at 03:00",
        "Mon 2026-03-30 02:30:00 +02:00  2026-03-30 00:30:00",
    ]


def test_it_marks_folds(here: Here) -> None:
    done = here("preview", "30 1 * * *", "--tz", "America/New_York", "--after", "2026-10-31T12:00:00Z", "-n", "1")
    assert done.lines[-1] == "Sun 2026-11-01 01:30:00 -04:00  2026-11-01 05:30:00  01:30 comes twice: fires the first time"


def test_there_are_ten_from_now_on_unless_asked_otherwise(here: Here) -> None:
    assert len(here("preview", "@hourly").lines) == 13
    assert len(here("preview", "@hourly", "-n", "3").lines) == 6


def test_an_interval_is_shown_in_the_zone_that_was_asked_for(here: Here) -> None:
    done = here("preview", "@every 90m", "--tz", "Asia/Tokyo", "--after", "2030-01-01T00:00:00Z", "-n", "1")
    assert done.lines == [
        "every 1 hour 30 minutes",
        "",
        "Asia/Tokyo                      UTC",
        "Tue 2030-01-01 10:30:00 +09:00  2030-01-01 01:30:00",
    ]


def test_the_zone_may_stand_in_the_expression(here: Here) -> None:
    done = here("preview", "CRON_TZ=Asia/Tokyo 0 9 * * *", "--after", "2030-01-01T12:00:00", "-n", "1")
    assert (done.lines[0], done.lines[-1]) == (
        "at 09:00 every day, in Asia/Tokyo",
        "Wed 2030-01-02 09:00:00 +09:00  2030-01-02 00:00:00",
    )
    both = here("preview", "TZ=Asia/Tokyo 0 9 * * *", "--tz", "UTC")
    assert (both.code, "names the zone 'Asia/Tokyo', and tz is 'UTC'" in both.err) == (1, True)


def test_an_expression_of_eventbridge_is_read_as_there(here: Here) -> None:
    done = here("preview", "cron(0 9 ? * 2-6 2030)", "--after", "2030-12-30T12:00:00Z", "--json")
    assert done.json == {
        "when": "cron(0 9 ? * 2-6 2030)",
        "tz": "UTC",
        "words": "at 09:00 on weekdays, in 2030",
        "next": [{"at": 1_924_938_000_000, "local": "2030-12-31T09:00:00+00:00", "marks": []}],
    }


def test_it_answers_in_json(here: Here) -> None:
    answer = here("preview", "@daily", "--tz", "Europe/Paris", "--after", "2026-10-24T22:00:00Z", "-n", "1", "--json").json
    assert answer == {
        "when": "0 0 * * *",
        "tz": "Europe/Paris",
        "words": "at 00:00 every day",
        "next": [{"at": 1_792_969_200_000, "local": "2026-10-26T00:00:00+01:00", "marks": []}],
    }


@pytest.mark.parametrize(
    ("when", "lines"),
    [
        ("weekly()", ["never: every day is off", "never again"]),
        ("at(2001-01-01T00:00:00)", ["once, on 1 January 2001 at 00:00, in UTC", "never again"]),
    ],
)
def test_what_never_fires_again_says_so(here: Here, when: str, lines: list[str]) -> None:
    assert here("preview", when).lines == lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["every tuesday"], "tickler: expression 'every tuesday' is not a cron expression: write five fields"),
        (["@daily", "--tz", "Mars/Base"], "tickler: unknown time zone 'Mars/Base': "),
        (["@daily", "--after", "yesterday"], "tickler: after 'yesterday' is not a date and time"),
    ],
)
def test_what_does_not_read_is_one_line(here: Here, arguments: list[str], said: str) -> None:
    done = here("preview", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith(said)
