"""Intervals: counted from an anchor, the same through every clock change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tickler.errors import InvalidWhen
from tickler.when import Every, When, parse_when

from .instants import ms

START = ms("2026-01-01T00:00:00.250Z")


def test_instants_are_start_and_whole_intervals_after_it() -> None:
    when = Every(minutes=5, start=START)
    assert when.next_after(START - 1) == START
    assert when.next_after(START - 10**9) == START
    assert when.next_after(START) == START + 300_000
    assert when.next_after(START + 299_999) == START + 300_000
    assert when.last_before(START) == START
    assert when.last_before(START + 299_999) == START
    assert when.last_before(START - 1) is None


def test_without_a_start_it_counts_from_the_epoch_until_it_is_given_one() -> None:
    when = Every(hours=1)
    assert when.start is None
    assert when.next_after(ms("2026-01-01T00:59Z")) == ms("2026-01-01T01:00Z")
    stamped = when.starting(START)
    assert (stamped.start, stamped.interval_ms) == (START, 3_600_000)
    assert stamped != when
    assert stamped == Every(hours=1, start=START)


@pytest.mark.parametrize("seconds", [1, 1.001, 59.999, 86_400.007, 1_234_567, 3_153_599_999.999])
def test_a_start_does_not_change_the_interval(seconds: float) -> None:
    when = Every(seconds=seconds)
    assert when.interval_ms == round(seconds * 1000)
    assert when.starting(START).interval_ms == when.interval_ms
    assert parse_when(str(when)) == when
    assert parse_when(str(when.starting(START))) == when.starting(START)


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (Every(minutes=5), "@every 5m"),
        (Every(seconds=90), "@every 1m30s"),
        (Every(hours=1, minutes=30), "@every 1h30m"),
        (Every(weeks=1), "@every 7d"),
        (Every(days=1.5), "@every 1d12h"),
        (Every(seconds=1.5), "@every 1s500ms"),
        (Every(minutes=5, start=START), "@every 5m from 2026-01-01T00:00:00.250Z"),
        (Every(minutes=5, start=0), "@every 5m from 1970-01-01T00:00:00Z"),
        (
            Every(minutes=5, start=datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
            "@every 5m from 2026-01-01T00:00:00Z",
        ),
    ],
    ids=str,
)
def test_an_interval_has_one_spelling(when: Every, text: str) -> None:
    assert str(when) == text
    assert parse_when(text) == when
    assert parse_when(text, tz="Europe/Paris") == when  # it needs no zone and keeps none


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("@every 1h30m", Every(minutes=90)),
        ("@EVERY  90s", Every(seconds=90)),
        ("@every 1.5h", Every(minutes=90)),
        ("@every 1000ms", Every(seconds=1)),
        ("@every 1w", Every(days=7)),
        ("rate(5 minutes)", Every(minutes=5)),
        ("rate(1 minute)", Every(minutes=1)),
        ("Rate( 2 Days )", Every(days=2)),
        ("@every 1h from 2026-01-01T01:00:00+01:00", Every(hours=1, start=ms("2026-01-01T00:00Z"))),
    ],
)
def test_people_write_intervals_in_these_ways(text: str, when: When) -> None:
    assert parse_when(text) == when


@pytest.mark.parametrize(
    ("when", "shown"),
    [
        (Every(minutes=5), "Every(seconds=300)"),
        (Every(seconds=1.5, start=START), f"Every(seconds=1.5, start={START})"),
        (Every(seconds=1_234_567), "Every(seconds=1234567)"),
        (Every(seconds=86_400.125), "Every(seconds=86400.125)"),
    ],
)
def test_it_shows_itself_as_what_makes_it(when: Every, shown: str) -> None:
    assert repr(when) == shown


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "interval"),
        ({"seconds": 0}, "interval"),
        ({"seconds": 0.5}, "interval"),
        ({"weeks": 10_000}, "interval"),
        ({"weeks": 1e300}, "interval"),
        ({"minutes": -5}, "minutes"),
        ({"hours": float("nan")}, "hours"),
        ({"hours": float("inf")}, "hours"),
        ({"days": True}, "days"),
        ({"days": "1"}, "days"),
        ({"days": None}, "days"),
        ({"seconds": 10**400}, "interval"),
        ({"hours": 1, "start": datetime(2026, 1, 1)}, "start"),
        ({"hours": 1, "start": 1_767_225_600}, "start"),
        ({"hours": 1, "start": -1}, "start"),
        ({"hours": 1, "start": 10**18}, "start"),
        ({"hours": 1, "start": "2026-01-01"}, "start"),
        ({"hours": 1, "start": 1.5}, "start"),
        ({"hours": 1, "start": True}, "start"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_what_is_no_interval_is_refused_with_the_part_at_fault(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        Every(**given)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "@every",
        "@every ",
        "@every 5",
        "@every m",
        "@every 5 m",
        "@every -5m",
        "@every 5M",
        "@every 5m5",
        "@every 5y",
        "@every 1e3s",
        "@every \uff15m",
        "@every \u0665m",
        "@every 5m\x00",
        "@every 5m from",
        "@every 5m from now",
        "@every 5m from 2026-01-01T00:00:00",
        "@every 5m from 1767225600000",
        "@every 5m from 0001-01-01T00:00:00+14:00",
        "@every 5m from 9999-12-31T23:59:59-12:00",
        "@every " + "9" * 1000 + "s",
        "@every " + "1ms" * 300,
        "rate()",
        "rate(5)",
        "rate(five minutes)",
        "rate(5 fortnights)",
        "rate(-5 minutes)",
        "rate(0 minutes)",
        "rate(1.5 hours)",
        "rate(\u0665 minutes)",
        "rate(" + "9" * 400 + " minutes)",
        "rate(99999999999 days)",
    ],
    ids=lambda text: ascii(text)[:44],
)
def test_text_that_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        parse_when(text)
    assert caught.value.field in {"interval", "rate", "start", "minutes", "seconds"}
    assert caught.value.reason


def test_an_interval_of_nothing_says_what_to_give() -> None:
    with pytest.raises(InvalidWhen, match=r"and a hundred years: give hours=, minutes= or seconds=$"):
        Every()
    with pytest.raises(InvalidWhen, match=r"and a hundred years$"):
        Every(seconds=0.5)


def test_it_cannot_be_changed() -> None:
    when = Every(minutes=5)
    with pytest.raises(AttributeError, match="immutable"):
        when.start = START
    with pytest.raises(AttributeError):
        del when.start


def test_people_see_its_instants_to_the_millisecond() -> None:
    seen = Every(seconds=1.5, start=START).upcoming(2, after=START)
    assert seen == [datetime(2026, 1, 1, 0, 0, 1, 750_000, UTC), datetime(2026, 1, 1, 0, 0, 3, 250_000, UTC)]
