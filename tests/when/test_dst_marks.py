"""Where the wall clock jumps, the next instants say so: on real transitions, and judged by zoneinfo."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given

from tickler.errors import InvalidInput
from tickler.when import At, Every, Unreadable, When, marked, parse_when

from .effort import examples
from .strategies import changing_times


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


def listed(text: str, zone: str, after: str, n: int) -> list[tuple[str, str]]:
    return [(str(each.at), "; ".join(each.marks)) for each in marked(parse_when(text, zone), ms(after), n)]


FIXED = {
    "a gap": (
        ("30 2 * * *", "Europe/Berlin", "2026-03-28"),
        [
            ("2026-03-28 02:30:00+01:00", ""),
            ("2026-03-29 03:00:00+02:00", "02:30 does not exist that day: fires at 03:00"),
            ("2026-03-30 02:30:00+02:00", ""),
        ],
    ),
    "a gap with several times in it": (
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00"),
        [
            ("2026-03-29 03:00:00+02:00", "02:00 and 02:30 do not exist that day: fires once, at 03:00"),
            ("2026-03-30 02:00:00+02:00", ""),
        ],
    ),
    "a gap that ends when it fires anyway": (
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00"),
        [("2026-03-29 03:00:00+02:00", "02:00 does not exist that day: fires at 03:00, for that time too")],
    ),
    "a gap with many times in it": (
        ("0-59/10 2 * * *", "America/New_York", "2026-03-07T12:00"),
        [("2026-03-08 03:00:00-04:00", "02:00 to 02:50 do not exist that day: fires once, at 03:00")],
    ),
    "a gap of half an hour": (
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03"),
        [
            ("2026-10-04 02:30:00+11:00", "02:15 does not exist that day: fires at 02:30"),
            ("2026-10-05 02:15:00+11:00", ""),
        ],
    ),
    "a fold": (
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00"),
        [("2026-11-01 01:30:00-04:00", "01:30 comes twice: fires the first time"), ("2026-11-02 01:30:00-05:00", "")],
    ),
    "a fold of half an hour": (
        ("15,45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00"),
        [
            ("2026-04-05 01:15:00+11:00", ""),
            ("2026-04-05 01:45:00+11:00", "01:45 comes twice: fires the first time"),
            ("2026-04-06 01:15:00+10:30", ""),
        ],
    ),
    "just before a fold and right after it": (
        ("0 1,3 * * *", "Europe/Berlin", "2026-10-24T12:00"),
        [("2026-10-25 01:00:00+02:00", ""), ("2026-10-25 03:00:00+01:00", "")],
    ),
    "a date that was skipped": (
        ("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00"),
        [
            ("2011-12-29 09:00:00-10:00", ""),
            ("2011-12-31 09:00:00+14:00", "there is no 2011-12-30 in Pacific/Apia: nothing fires on it"),
            ("2012-01-01 09:00:00+14:00", ""),
        ],
    ),
    "a date that was skipped, in a weekly plan": (
        ("weekly(fri 09:00)", "Pacific/Apia", "2011-12-24T00:00"),
        [("2012-01-06 09:00:00+14:00", "there is no 2011-12-30 in Pacific/Apia: nothing fires on it")],
    ),
    "a one-shot in a gap": (
        ("at(2026-03-29T02:30:00)", "Europe/Berlin", "2026-03-01"),
        [("2026-03-29 03:00:00+02:00", "02:30 does not exist that day: fires at 03:00")],
    ),
    "a one-shot in a fold": (
        ("at(2026-10-25T02:30:00)", "Europe/Berlin", "2026-03-01"),
        [("2026-10-25 02:30:00+02:00", "02:30 comes twice: fires the first time")],
    ),
}

RUNNING = {
    "a gap in which it would have fired": (
        ("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00"),
        [
            ("2026-03-30 02:00:00+02:00", "02:00 and 02:30 do not exist on 2026-03-29: nothing fires then"),
            ("2026-03-30 02:30:00+02:00", ""),
        ],
    ),
    "a gap through which it goes on": (
        ("*/15 * * * *", "Europe/Berlin", "2026-03-29T00:45"),
        [
            ("2026-03-29 03:00:00+02:00", "02:00 to 02:45 do not exist that day: nothing fires then"),
            ("2026-03-29 03:15:00+02:00", ""),
        ],
    ),
    "a fold": (
        ("*/30 1 * * *", "America/New_York", "2026-10-31T12:00"),
        [
            ("2026-11-01 01:00:00-04:00", "01:00 comes twice: this is the first time"),
            ("2026-11-01 01:30:00-04:00", "01:30 comes twice: this is the first time"),
            ("2026-11-01 01:00:00-05:00", "01:00 comes twice: this is the second time"),
            ("2026-11-01 01:30:00-05:00", "01:30 comes twice: this is the second time"),
            ("2026-11-02 01:00:00-05:00", ""),
        ],
    ),
    "a date that was skipped": (
        ("0 */12 * * *", "Pacific/Apia", "2011-12-29T12:00"),
        [
            ("2011-12-29 12:00:00-10:00", ""),
            ("2011-12-31 00:00:00+14:00", "there is no 2011-12-30 in Pacific/Apia: nothing fires on it"),
        ],
    ),
}


@pytest.mark.parametrize(("asked", "found"), FIXED.values(), ids=FIXED)
def test_a_time_that_is_named_is_marked_where_the_clock_jumps(asked: tuple[str, str, str], found: list[tuple[str, str]]) -> None:
    assert listed(*asked, len(found)) == found


@pytest.mark.parametrize(("asked", "found"), RUNNING.values(), ids=RUNNING)
def test_what_follows_real_time_is_marked_too(asked: tuple[str, str, str], found: list[tuple[str, str]]) -> None:
    assert listed(*asked, len(found)) == found


def test_an_interval_has_no_marks_whatever_the_clocks_do() -> None:
    (only,) = marked(Every(hours=1, start=ms("2026-03-29")), ms("2026-03-29T00:30"), 1)
    assert (str(only.at), only.marks) == ("2026-03-29 01:00:00+00:00", ())


@pytest.mark.parametrize(
    "when",
    [
        At("2020-01-01T00:00:00Z"),
        At("2011-12-30T09:00:00", tz="Pacific/Apia"),
        parse_when("weekly()"),
        Unreadable("x", "UTC", ""),
    ],
)
def test_what_has_nothing_ahead_has_no_instants(when: When) -> None:
    assert marked(when, ms("2026-01-01"), 3) == []


def test_none_is_later_than_asked_for() -> None:
    daily = parse_when("0 9 * * *")
    assert [str(each.at.date()) for each in marked(daily, ms("2026-01-01"), 9, ms("2026-01-02T09:00"))] == [
        "2026-01-01",
        "2026-01-02",
    ]


@pytest.mark.parametrize("n", [-1, True, "3"])
def test_a_number_that_is_none_is_refused(n: int) -> None:
    with pytest.raises(InvalidInput, match="not a number of instants"):
        marked(parse_when("@daily"), 0, n)


@examples
@given(changing_times())
def test_marks_agree_with_zoneinfo_and_the_instants_with_upcoming(asked: tuple[When, int]) -> None:
    when, after_ms = asked
    found = marked(when, after_ms, 3)
    assert [each.at for each in found] == when.upcoming(3, after=datetime.fromtimestamp(after_ms / 1000, UTC))
    zone = ZoneInfo(when.tz)
    for each in found:
        naive = each.at.replace(tzinfo=None, fold=0)
        assume(naive.year > 1990)
        first, second = (naive.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
        assert first is not None
        assert second is not None
        twice = (
            first > second and naive.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0) == naive
        )
        assert any("comes twice" in mark for mark in each.marks) == twice
        if any("fires" in mark and "not exist" in mark and "nothing" not in mark for mark in each.marks):
            before = (each.at.astimezone(UTC) - timedelta(seconds=1)).astimezone(zone)
            offset, earlier = each.at.utcoffset(), before.utcoffset()
            assert offset is not None
            assert earlier is not None
            assert offset > earlier
