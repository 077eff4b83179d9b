"""Instants as people say them, and the clocks."""

from __future__ import annotations

import logging
import time
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickler.clock import EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS, ManualClock, SystemClock, to_datetime, to_ms
from tickler.errors import InvalidInput

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
A_MS = timedelta(milliseconds=1)

examples = settings(max_examples=200, derandomize=True, deadline=None, database=None)
plausible = st.integers(EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS - 1)
offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


class Nowhere(tzinfo):
    """A tzinfo that knows no offset; to Python, a datetime with it is naive."""

    def utcoffset(self, at: datetime | None) -> None:
        return None

    def dst(self, at: datetime | None) -> None:
        return None

    def tzname(self, at: datetime | None) -> str:
        return "nowhere"


def ms_of(instant: object) -> int:
    return to_ms(instant, "now_ms")  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize("ms", [EARLIEST_PLAUSIBLE_MS, EARLIEST_PLAUSIBLE_MS + 1, NOW_MS, LATEST_PLAUSIBLE_MS - 1])
def test_plausible_milliseconds_are_taken_as_they_are(ms: int) -> None:
    assert ms_of(ms) == ms


@pytest.mark.parametrize(
    ("instant", "looks_like"),
    [
        (NOW_MS // 1000, "looks like seconds"),
        (EARLIEST_PLAUSIBLE_MS - 1, "looks like seconds"),
        (1, "looks like seconds"),
        (0, "looks like a missing value"),
        (-1, "looks like a missing value"),
        (-NOW_MS, "looks like a missing value"),
        (LATEST_PLAUSIBLE_MS, "looks like micro- or nanoseconds"),
        (NOW_MS * 1000, "looks like micro- or nanoseconds"),
        (NOW_MS * 1_000_000, "looks like micro- or nanoseconds"),
        (10**40, "looks like micro- or nanoseconds"),
        (True, "is a bool"),
        (False, "is a bool"),
        (float(NOW_MS), "is a float"),
        (NOW_MS / 1000, "is a float"),
        (float("nan"), "is a float"),
        (Decimal(NOW_MS), "is a Decimal"),
        (str(NOW_MS), "is a str"),
        ("2030-11-20T12:00:00Z", "is a str"),
        (None, "is a NoneType"),
        (date(2030, 11, 20), "is a date"),
        (timedelta(milliseconds=NOW_MS), "is a timedelta"),
        (datetime(2030, 11, 20, 12), "is a naive datetime"),
        (datetime(2030, 11, 20, 12, tzinfo=Nowhere()), "is a naive datetime"),
    ],
    ids=str,
)
def test_anything_else_is_refused_by_what_it_looks_like(instant: object, looks_like: str) -> None:
    with pytest.raises(InvalidInput, match=f"^now_ms: .*{looks_like}"):
        ms_of(instant)


@pytest.mark.parametrize(
    ("moment", "ms"),
    [
        (datetime(2030, 11, 20, 12, tzinfo=UTC), NOW_MS),
        (datetime(2030, 11, 20, 12, 0, 0, 1_000, tzinfo=UTC), NOW_MS + 1),
        (datetime(2030, 11, 20, 12, 0, 0, 999_000, tzinfo=UTC), NOW_MS + 999),
        (datetime(2030, 11, 20, 13, tzinfo=ZoneInfo("Europe/Paris")), NOW_MS),
        (datetime(2030, 11, 20, 17, 30, tzinfo=ZoneInfo("Asia/Kolkata")), NOW_MS),
        (datetime(2030, 11, 20, 12, 0, 30, tzinfo=timezone(timedelta(seconds=30))), NOW_MS),
        (datetime(2030, 10, 27, 2, 30, fold=0, tzinfo=ZoneInfo("Europe/Paris")), 1_919_291_400_000),
        (datetime(2030, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris")), 1_919_295_000_000),
    ],
    ids=str,
)
def test_an_aware_datetime_is_its_instant(moment: datetime, ms: int) -> None:
    assert ms_of(moment) == ms


@examples
@given(plausible, offsets)
def test_an_aware_datetime_is_exact_to_the_millisecond_in_every_offset(ms: int, offset: timezone) -> None:
    assert ms_of(to_datetime(ms).astimezone(offset)) == ms


@examples
@given(st.datetimes(datetime(1974, 1, 1), datetime(5000, 1, 1), timezones=st.just(UTC)))
def test_what_is_finer_than_a_millisecond_moves_an_instant_by_less_than_one(moment: datetime) -> None:
    assert abs(to_datetime(ms_of(moment)) - moment) < A_MS


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=UTC),
        EPOCH - A_MS,
        EPOCH,
        EPOCH + timedelta(milliseconds=EARLIEST_PLAUSIBLE_MS - 1),
        EPOCH + timedelta(milliseconds=EARLIEST_PLAUSIBLE_MS),
        EPOCH + timedelta(milliseconds=LATEST_PLAUSIBLE_MS - 1),
        EPOCH + timedelta(milliseconds=LATEST_PLAUSIBLE_MS),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ],
    ids=str,
)
def test_a_datetime_that_is_taken_can_be_passed_on_as_milliseconds_and_shown_again(moment: datetime) -> None:
    """What is stored is read back through the same check, so that both forms must have the same bounds."""
    try:
        ms = ms_of(moment)
    except InvalidInput:
        return
    assert ms_of(ms) == ms
    assert abs(to_datetime(ms) - moment) < A_MS


@pytest.mark.parametrize(
    ("ms", "moment"),
    [
        (0, EPOCH),
        (1, EPOCH + A_MS),
        (-1, EPOCH - A_MS),
        (-1_000, EPOCH - timedelta(seconds=1)),
        (NOW_MS + 999, datetime(2030, 11, 20, 12, 0, 0, 999_000, tzinfo=UTC)),
        (LATEST_PLAUSIBLE_MS - 1, datetime(5138, 11, 16, 9, 46, 39, 999_000, tzinfo=UTC)),
        (253_402_300_799_999, datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
)
def test_a_datetime_is_exact_and_in_utc(ms: int, moment: datetime) -> None:
    assert to_datetime(ms) == moment
    assert to_datetime(ms).tzinfo is UTC


@examples
@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_no_millisecond_is_lost_on_the_way_to_a_datetime(ms: int) -> None:
    assert to_datetime(ms) == EPOCH + timedelta(milliseconds=ms)


def test_a_manual_clock_moves_only_when_told_to() -> None:
    clock = ManualClock(NOW_MS)
    assert [clock.now_ms() for _ in range(3)] == [NOW_MS] * 3
    clock.advance(1.5)
    assert clock.now_ms() == NOW_MS + 1_500
    clock.advance(timedelta(days=1, milliseconds=7))
    assert clock.now_ms() == NOW_MS + 86_401_507
    clock.advance(-86_401.507)
    assert clock.now_ms() == NOW_MS
    clock.set(to_datetime(NOW_MS - 1))
    assert clock.now_ms() == NOW_MS - 1
    clock.set(NOW_MS)
    assert clock.now_ms() == NOW_MS


def test_a_manual_clock_moved_in_small_steps_does_not_drift() -> None:
    clock = ManualClock(datetime(2030, 11, 20, 12, tzinfo=UTC))
    for _ in range(1_000):
        clock.advance(0.1)
    assert clock.now_ms() == NOW_MS + 100_000


@pytest.mark.parametrize("instant", [NOW_MS // 1000, NOW_MS * 1000, datetime(2030, 11, 20), True], ids=str)
def test_a_manual_clock_is_set_to_instants_only(instant: int | datetime) -> None:
    with pytest.raises(InvalidInput, match=r"^start: "):
        ManualClock(instant)
    clock = ManualClock(NOW_MS)
    with pytest.raises(InvalidInput, match=r"^instant: "):
        clock.set(instant)
    assert clock.now_ms() == NOW_MS


def test_the_system_clock_is_this_machines_until_it_follows_a_store() -> None:
    clock = SystemClock()
    before = time.time_ns() // 1_000_000
    now_ms = clock.now_ms()
    assert before <= now_ms <= time.time_ns() // 1_000_000


@pytest.mark.parametrize(
    ("store_now_ms", "asked_after", "answered_after", "offset_ms"),
    [
        (NOW_MS, 0, 0, 0),
        (NOW_MS + 50, 0, 100, 0),
        (NOW_MS, 0, 100, 0),
        (NOW_MS - 1, 0, 100, 0),
        (NOW_MS - 2, 0, 100, -52),
        (NOW_MS + 101, 0, 100, 0),
        (NOW_MS + 102, 0, 100, 52),
        (NOW_MS + 1_000, 0, 0, 1_000),
        (NOW_MS - 1_000, 0, 0, -1_000),
        (NOW_MS + 500, 200, 400, 200),
        (NOW_MS, 0, 1, 0),
    ],
)
def test_the_stores_answer_is_taken_as_the_time_half_way(
    store_now_ms: int, asked_after: int, answered_after: int, offset_ms: int
) -> None:
    clock = SystemClock()
    clock.follow(store_now_ms, NOW_MS + asked_after, NOW_MS + answered_after)
    assert clock.offset_ms == offset_ms
    machine_ms = time.time_ns() // 1_000_000
    assert 0 <= clock.now_ms() - offset_ms - machine_ms < 10_000


def test_following_again_corrects_what_is_left_and_no_more() -> None:
    """The clock's own readings have the offset in them already."""
    clock = SystemClock()
    clock.follow(NOW_MS + 700, NOW_MS, NOW_MS)
    clock.follow(NOW_MS + 700, NOW_MS + 700, NOW_MS + 700)
    assert clock.offset_ms == 700
    clock.follow(NOW_MS + 600, NOW_MS + 700, NOW_MS + 700)
    assert clock.offset_ms == 600


@pytest.mark.parametrize(
    ("offset_ms", "said"),
    [(0, None), (2_000, None), (-2_000, None), (2_001, "-2001 ms"), (-2_001, "+2001 ms"), (86_400_000, "-86400000 ms")],
)
def test_a_machine_more_than_two_seconds_off_is_warned_about(
    offset_ms: int, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="tickler.clock"):
        SystemClock().follow(NOW_MS + offset_ms, NOW_MS, NOW_MS)
    if said is None:
        assert caplog.records == []
        return
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"this machine's clock is {said} off" in record.getMessage(), "a machine that is behind is a negative number of ms off"
    assert "time synchronisation" in record.getMessage()
