"""Instants and dates as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricebook.bulk.moments import in_zone, read_moment
from pricebook.errors import InvalidField

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_date_an_instant_and_nothing_are_read() -> None:
    assert read_moment("effective", "") is None
    assert read_moment("effective", "2026-12-01") == date(2026, 12, 1)
    assert read_moment("effective", "2026-12-01T06:00:00+01:00") == datetime(2026, 12, 1, 5, tzinfo=UTC)
    assert read_moment("effective", "2026-12-01T06:00Z") == datetime(2026, 12, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["tomorrow", "2026-13-01", "1-1-2026", "0001-01-01", "9999-12-31", "9999-12-31T23:59:59-14:00", "\0"]
)
def test_what_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidField, match="is not a moment: write 2026-12-01"):
        read_moment("until", text)


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidField, match="effective: has no time zone"):
        read_moment("effective", "2026-12-01T06:00:00")


@given(st.text(max_size=30))
def test_any_other_text_is_refused_and_nothing_else_happens(text: str) -> None:
    try:
        found = read_moment("effective", text)
    except InvalidField:
        return
    assert found is None or isinstance(found, date)


def test_a_date_begins_where_each_store_is_and_never_before_now() -> None:
    day = date(2026, 3, 29)
    assert in_zone(day, "Europe/Berlin", NOW) == datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert in_zone(day, "America/New_York", NOW) == datetime(2026, 3, 29, 4, tzinfo=UTC)
    assert in_zone(date(2020, 1, 1), "UTC", NOW) == in_zone(None, "UTC", NOW) == NOW
    assert in_zone(NOW + timedelta(hours=1), "Europe/Berlin", NOW) == NOW + timedelta(hours=1)
