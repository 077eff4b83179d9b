"""Scalars of the schema."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricebook.graphql.scalars import read_day, read_instant, whole_minor_units, write_day, write_instant
from pricebook.money import MAX_MINOR

INSTANTS = st.datetimes(
    min_value=datetime(1000, 1, 2),
    max_value=datetime(9998, 1, 1),
    timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5.5))),
)


@settings(max_examples=200, deadline=None)
@given(INSTANTS)
def test_instants_are_written_in_utc_as_msgspec_writes_them_and_read_back(at: datetime) -> None:
    written = write_instant(at)
    assert f'"{written}"'.encode() == msgspec.json.encode(at.astimezone(UTC))
    assert read_instant(written) == at


@pytest.mark.parametrize("text", ["2026-03-15T00:00:00", "2026-03-15", "yesterday", "", "0001-01-01T00:00:00+14:00", 7, None])
def test_what_is_no_instant_with_an_offset_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match="2026-03-15T00:00:00Z"):
        read_instant(text)


@pytest.mark.parametrize("value", [datetime(2026, 3, 15), "2026-03-15T00:00:00Z", None])
def test_only_aware_datetimes_are_written(value: object) -> None:
    with pytest.raises(TypeError, match="not an aware datetime"):
        write_instant(value)


def test_dates_are_read_and_written() -> None:
    assert read_day("2026-03-15") == date(2026, 3, 15)
    assert write_day(date(2026, 3, 15)) == "2026-03-15"
    for wrong in ("2026-02-30", "15.3.2026", 7):
        with pytest.raises(ValueError, match="such as 2026-03-15"):
            read_day(wrong)
    with pytest.raises(TypeError):
        write_day(datetime(2026, 3, 15))


def test_amounts_are_whole_numbers_that_every_json_parser_reads_exactly() -> None:
    assert whole_minor_units(-MAX_MINOR) == -MAX_MINOR
    assert MAX_MINOR < 2**53
    for wrong in (MAX_MINOR + 1, 1.0, True, "1", None):
        with pytest.raises(ValueError, match="whole number of minor units"):
            whole_minor_units(wrong)
