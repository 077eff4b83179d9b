"""The axis of a drawn time line."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from pricebook.pages.clock import PageClock
from pricebook.pages.time_axis import TimeAxis

DAY = timedelta(days=1)


def axis(start: datetime, length: timedelta, zone: str, width: float = 1000) -> TimeAxis:
    return TimeAxis(start, start + length, PageClock(start, zone), 0, width)


def utc(month: int, day: int, hour: int = 0) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


def test_an_instant_lies_where_its_share_of_the_time_is_and_others_are_at_the_edges() -> None:
    drawn = axis(utc(3, 1), 4 * DAY, "UTC")
    assert [drawn.x(utc(3, day)) for day in (1, 2, 5)] == [0, 250, 1000]
    assert (drawn.x(utc(2, 1)), drawn.x(utc(4, 1))) == (0, 1000)


def test_midnights_are_those_of_the_zone() -> None:
    drawn = axis(utc(3, 1), 2 * DAY, "Asia/Tokyo")
    assert [tick.x for tick in drawn.ticks if tick.kind == "midnight"] == [drawn.x(utc(3, 1, 15)), drawn.x(utc(3, 2, 15))]


def test_a_day_on_which_clocks_go_forward_is_narrower_and_says_its_hours() -> None:
    drawn = axis(utc(3, 28, 23), 3 * DAY, "Europe/Berlin", 7200)
    assert [(band.label, band.hours, band.width) for band in drawn.bands] == [
        ("Today", 23, 2300),
        ("Tomorrow", None, 2400),
        ("Tue 31 Mar", None, 2400),
        ("Wed 1 Apr", None, 100),
    ]
    assert [(each.day, each.hours) for each in drawn.clock_changes] == [(date(2026, 3, 29), 23)]


def test_a_day_on_which_clocks_go_back_has_25_hours() -> None:
    (change,) = axis(utc(10, 31), 3 * DAY, "America/New_York").clock_changes
    assert (change.day, change.hours) == (date(2026, 11, 1), 25)


def test_hours_are_labelled_where_there_is_room() -> None:
    wide = [tick.label for tick in axis(utc(3, 1), DAY, "UTC").ticks if tick.kind == "hour"]
    assert wide[:3] == ["02:00", "04:00", "06:00"]
    assert [tick for tick in axis(utc(3, 1), 30 * DAY, "UTC").ticks if tick.kind == "hour"] == []


def test_days_get_shorter_names_where_there_is_less_room() -> None:
    labels = [axis(utc(3, 2), length, "UTC").bands[3].label for length in (7 * DAY, 14 * DAY, 30 * DAY)]
    assert labels == ["Thu 5 Mar", "Thu 5 Mar", "Th 5"]
    assert axis(utc(3, 2), 30 * DAY, "UTC", 600).bands[3].label == "5"
