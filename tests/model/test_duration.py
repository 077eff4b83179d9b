"""Durations: what callers may pass, and how anything else is refused."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from tickler import InvalidInput, InvalidSchedule
from tickler.model.duration import to_duration

DAY = timedelta(days=1)


@pytest.mark.parametrize("value", [90, 90.0, timedelta(seconds=90)])
def test_seconds_and_timedeltas_are_durations(value: object) -> None:
    assert to_duration("lease", value, DAY) == timedelta(seconds=90)


def test_both_ends_are_allowed() -> None:
    assert [to_duration("lease", value, DAY) for value in (0, 86_400, DAY)] == [timedelta(0), DAY, DAY]


@pytest.mark.parametrize(
    "value", [-1, 86_400.5, 1e300, math.nan, math.inf, True, "90", None, timedelta(seconds=-1), timedelta(days=1, seconds=1)]
)
def test_anything_else_is_refused_with_a_remedy(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^lease: .* is not a duration from 0 to a day: pass seconds or a timedelta$"):
        to_duration("lease", value, DAY)


def test_a_caller_chooses_the_error() -> None:
    with pytest.raises(InvalidSchedule, match=r"^policy.grace: -1 is not a duration from 0 to 366 days: pass ") as caught:
        to_duration("policy.grace", -1, timedelta(days=366), InvalidSchedule)
    assert caught.value.field == "policy.grace"
