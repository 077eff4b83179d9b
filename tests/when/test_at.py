"""One instant: a wall time in a zone, or an instant with its own offset."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tickler.errors import InvalidWhen, UnknownTimezone
from tickler.when import At, parse_when

from .instants import ms

CHICAGO = "America/Chicago"
NOON = ms("2026-03-15T12:00Z")


@pytest.mark.parametrize(
    ("moment", "tz", "expected", "text"),
    [
        ("2026-03-15T00:00:00", CHICAGO, "2026-03-15T00:00-05:00", "at(2026-03-15T00:00:00)"),
        ("2026-03-15T00:00", CHICAGO, "2026-03-15T00:00-05:00", "at(2026-03-15T00:00:00)"),
        (" 2026-03-15 00:00 ", CHICAGO, "2026-03-15T00:00-05:00", "at(2026-03-15T00:00:00)"),
        ("2026-03-15", CHICAGO, "2026-03-15T00:00-05:00", "at(2026-03-15T00:00:00)"),
        ("2026-03-15T12:00:00Z", None, "2026-03-15T12:00Z", "at(2026-03-15T12:00:00Z)"),
        ("2026-03-15T12:00:00Z", "UTC", "2026-03-15T12:00Z", "at(2026-03-15T12:00:00Z)"),
        ("2026-03-15T12:00:00", None, "2026-03-15T12:00Z", "at(2026-03-15T12:00:00Z)"),
        ("2026-03-15T12:00:00+02:00", None, "2026-03-15T10:00Z", "at(2026-03-15T10:00:00Z)"),
        ("2026-03-15T12:00:00.123456Z", None, "2026-03-15T12:00:00.123Z", "at(2026-03-15T12:00:00.123Z)"),
        (datetime(2026, 3, 15, 12, tzinfo=UTC), None, "2026-03-15T12:00Z", "at(2026-03-15T12:00:00Z)"),
        (datetime(2026, 3, 15, 12), CHICAGO, "2026-03-15T12:00-05:00", "at(2026-03-15T12:00:00)"),
        (datetime(2026, 3, 15, 12, tzinfo=timezone(timedelta(hours=-3))), None, "2026-03-15T15:00Z", "at(2026-03-15T15:00:00Z)"),
    ],
    ids=str,
)
def test_a_moment_is_this_instant_and_has_one_spelling(moment: str | datetime, tz: str | None, expected: str, text: str) -> None:
    when = At(moment, tz=tz)
    assert when.at_ms == ms(expected)
    assert str(when) == text
    assert when.tz == (tz or "UTC")
    assert parse_when(text, tz=when.tz) == when


def test_it_has_one_instant_and_no_other() -> None:
    when = At("2026-03-15T12:00:00Z")
    assert when.next_after(NOON - 1) == NOON
    assert when.next_after(NOON) is None
    assert when.last_before(NOON) == NOON
    assert when.last_before(NOON - 1) is None
    assert when.shortest_interval_ms() is None
    assert when.upcoming(5, after=NOON - 1) == [datetime(2026, 3, 15, 12, tzinfo=UTC)]


def test_it_shows_itself_as_what_makes_it() -> None:
    assert repr(At("2026-03-15T00:00", tz=CHICAGO)) == "At('2026-03-15T00:00:00', tz='America/Chicago')"


def test_it_cannot_be_changed() -> None:
    when = At("2026-03-15T12:00:00Z")
    with pytest.raises(AttributeError, match="immutable"):
        when.at_ms = 0
    with pytest.raises(AttributeError):
        del when.at_ms


@pytest.mark.parametrize("tz", [CHICAGO, "Europe/London"])
def test_an_offset_and_a_zone_are_one_too_many(tz: str) -> None:
    for moment in ("2026-03-15T00:00:00+01:00", datetime(2026, 3, 15, tzinfo=UTC)):
        with pytest.raises(InvalidWhen, match="the offset conflicts with tz=") as caught:
            At(moment, tz=tz)
        assert (caught.value.field, caught.value.text) == ("tz", str(moment))


def test_a_naive_datetime_needs_a_zone() -> None:
    with pytest.raises(InvalidWhen, match="naive datetime") as caught:
        At(datetime(2026, 3, 15))
    assert (caught.value.field, caught.value.text) == ("moment", "2026-03-15T00:00:00")


@pytest.mark.parametrize(
    "moment",
    [
        "",
        "tomorrow",
        "2026-02-30T00:00:00",
        "2026-13-01T00:00:00",
        "2026-03-15T25:00:00",
        "2026-03-15T00:00:61",
        "15/03/2026",
        "1773532800",
        "10000-01-01T00:00:00",
        "0000-01-01T00:00:00",
        "2026-03-15T00:00:00+99:00",
        "2026-03-15T00:00:00 Europe/Paris",
        "\uff12\uff10\uff12\uff16-03-15T00:00:00",
        "\u0662\u0660\u0662\u0666-03-15",
        "2026-03-15T00:00:00\x00",
        "2026-03-15\x0000:00:00",
        "\ud800" * 19,
        "2026-03-15T00:00:00" * 1000,
    ],
    ids=lambda moment: ascii(moment)[:30],
)
def test_text_that_is_no_moment_is_refused(moment: str) -> None:
    with pytest.raises(InvalidWhen, match="is not a date and time") as caught:
        At(moment)
    assert (caught.value.field, caught.value.text) == ("moment", moment)


@pytest.mark.parametrize(
    ("moment", "tz"),
    [
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-12:00", None),
        ("0001-01-01T00:00:00", "Asia/Tokyo"),
        ("9999-12-31T23:59:59", "America/New_York"),
    ],
)
def test_a_moment_beyond_the_calendar_is_refused(moment: str, tz: str | None) -> None:
    with pytest.raises(InvalidWhen) as caught:
        At(moment, tz=tz)
    assert caught.value.text == moment


@pytest.mark.parametrize(
    "moment",
    ["0002-01-01T00:00:00+05:00", "9998-12-31T23:30:00-05:00", datetime(9998, 12, 31, 23, tzinfo=timezone(-timedelta(hours=5)))],
)
def test_a_moment_at_the_end_of_the_calendar_reads_back_or_is_refused(moment: str | datetime) -> None:
    try:
        when = At(moment)
    except InvalidWhen:
        return
    assert parse_when(str(when)) == when
    assert pickle.loads(pickle.dumps(when)) == when


@pytest.mark.parametrize("moment", [None, 1_773_532_800_000, 1.5, b"2026-03-15", datetime(2026, 3, 15).date(), ["2026-03-15"]])
def test_what_is_neither_text_nor_a_datetime_is_refused(moment: object) -> None:
    with pytest.raises(InvalidWhen, match="pass ISO 8601 text or a datetime") as caught:
        At(moment)  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.text) == ("moment", str(moment))


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(UnknownTimezone, match="did you mean 'America/Chicago'"):
        At("2026-03-15T00:00:00", tz="America/Chigaco")
