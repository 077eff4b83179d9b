"""Weekly plans: times by weekday, as a form gives them."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import pytest

from tickler.errors import InvalidWhen, UnknownTimezone
from tickler.when import Weekly, parse_when, when_from_json

from .instants import fires, last

PARIS = "Europe/Paris"


def test_a_plan_fires_at_its_times_every_week() -> None:
    when = Weekly({"tue": "09:00", "thu": ["09:00", "17:30"], "mon": None}, tz=PARIS)
    assert fires(when, "2026-01-15T12:00+01:00", 4) == [
        "2026-01-15T17:30+01:00",
        "2026-01-20T09:00+01:00",
        "2026-01-22T09:00+01:00",
        "2026-01-22T17:30+01:00",
    ]
    assert last(when, "2026-01-20T08:59+01:00") == "2026-01-15T17:30+01:00"


def test_seconds_may_be_given() -> None:
    when = Weekly({"sun": "23:59:59"})
    assert str(when) == "weekly(sun 23:59:59)"
    assert fires(when, "2026-01-15T00:00Z", 1) == ["2026-01-18T23:59:59+00:00"]


@pytest.mark.parametrize(
    "plan",
    [
        {"tue": "09:00", "thu": ["17:30", "09:00"]},
        {"thu": ("09:00", "17:30"), "tue": ["09:00"]},
        {"Tuesday": "09:00:00", "THU": ["09:00", "17:30", "09:00"], "sun": None},
        {"tue": {"time": "09:00"}, "thu": {"time": ["09:00", "17:30"]}, "mon": {"time": None}, "wed": []},
    ],
    ids=str,
)
def test_a_plan_has_one_spelling(plan: dict[str, object]) -> None:
    when = Weekly(plan, tz=PARIS)
    assert str(when) == "weekly(tue 09:00, thu 09:00, thu 17:30)"
    assert when.days() == {"tue": ["09:00"], "thu": ["09:00", "17:30"]}
    assert when == parse_when(str(when), tz=PARIS)
    assert repr(when) == "Weekly({'tue': ['09:00'], 'thu': ['09:00', '17:30']}, tz='Europe/Paris')"


@pytest.mark.parametrize("plan", [{}, {"mon": None}, dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))], ids=len)
def test_a_plan_with_every_day_off_has_no_instants(plan: dict[str, object]) -> None:
    when = Weekly(plan)
    assert when.next_after(0) is None
    assert when.last_before(10**13) is None
    assert when.shortest_interval_ms() is None
    assert when.upcoming(3) == []
    assert parse_when(str(when)) == when


@pytest.mark.parametrize("minutes", [(0,), (0, 30), range(60)], ids=len)
def test_a_plan_with_many_times_reads_back_from_its_text_or_is_refused(minutes: Sequence[int]) -> None:
    times = [f"{hour:02}:{minute:02}" for hour in range(24) for minute in minutes]
    try:
        when = Weekly(dict.fromkeys(("mon", "tue", "wed", "thu"), times))
    except InvalidWhen:
        return
    assert parse_when(str(when)) == when


@pytest.mark.parametrize(
    ("plan", "shortest_ms"),
    [
        ({"mon": "09:00"}, 7 * 86_400_000),
        ({"mon": ["09:00", "09:05"]}, 300_000),
        ({"mon": "00:00", "sun": "23:00"}, 3_600_000),
    ],
)
def test_the_shortest_interval_looks_over_the_end_of_the_week(plan: dict[str, object], shortest_ms: int) -> None:
    assert Weekly(plan).shortest_interval_ms() == shortest_ms


@pytest.mark.parametrize(
    ("plan", "field", "reason"),
    [
        ({"mon": {"enabled": True}}, "mon.enabled", "mon.enabled is an unknown field: a day is on when it has a 'time'"),
        (
            {"mon": {"time": "09:00", "enabled": True}},
            "mon.enabled",
            "mon.enabled is an unknown field: a day is on when it has a 'time'",
        ),
        ({"mon": {}}, "mon", "has no 'time'"),
        ({"mon": "9 am"}, "mon", "'9 am' is not a time of day"),
        ({"mon": "9:0"}, "mon", "'9:0' is not a time of day"),
        ({"mon": "24:00"}, "mon", "'24:00' is not a time of day"),
        ({"mon": "09:60"}, "mon", "is not a time of day"),
        ({"mon": "09:00 "}, "mon", "is not a time of day"),
        ({"mon": "09:00\n"}, "mon", "is not a time of day"),
        ({"mon": ""}, "mon", "is not a time of day"),
        ({"mon": True}, "mon", "True is not a time of day"),
        ({"mon": False}, "mon", "False is not a time of day"),
        ({"mon": 9}, "mon", "9 is not a time of day"),
        ({"mon": [None]}, "mon", "None is not a time of day"),
        ({"mon": [["09:00"]]}, "mon", "is not a time of day"),
        ({"mon": {"time": {"time": "09:00"}}}, "mon", "is not a time of day"),
        ({"mon": "\uff10\uff19:00"}, "mon", "is not a time of day"),
        ({"mon": "\u0660\u0669:00"}, "mon", "is not a time of day"),
        ({"mon": "09:00\x00"}, "mon", "is not a time of day"),
        ({"monday ": "09:00"}, "monday ", "' is not a weekday: use mon, tue"),
        ({"enabled": True}, "enabled", "' is not a weekday: use mon, tue"),
        ({"": "09:00"}, "", "' is not a weekday"),
        ({1: "09:00"}, "1", "1 is not a weekday"),
        ({"mon": "09:00", "monday": "10:00"}, "monday", "a second time"),
        (None, "plan", "give weekdays with their times"),
        ("tue 09:00", "plan", "give weekdays with their times"),
        ([("tue", "09:00")], "plan", "give weekdays with their times"),
    ],
    ids=str,
)
def test_what_nobody_reads_is_refused_with_the_part_at_fault(plan: object, field: str, reason: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        Weekly(plan)  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.text) == (field, str(plan))
    assert reason in caught.value.reason
    with pytest.raises(InvalidWhen):
        when_from_json({"weekly": plan})


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("weekly(tue)", "tue"),
        ("weekly(tue 09:00, wed)", "wed"),
        ("weekly(09:00 tue)", "09:00"),
        ("weekly(tue 0900)", "tue"),
        ("weekly(yesterday 09:00)", "yesterday"),
    ],
)
def test_text_that_is_no_plan_is_refused_with_the_part_at_fault(text: str, field: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        parse_when(text)
    assert caught.value.field == field


def test_a_day_may_be_named_again_in_text_by_either_name() -> None:
    assert parse_when("weekly(tue 09:00, tue 17:00)") == Weekly({"tue": ["09:00", "17:00"]})
    assert parse_when("weekly(tue 09:00, Tuesday 17:00)") == Weekly({"tue": ["09:00", "17:00"]})


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(UnknownTimezone, match="did you mean 'Europe/Paris'"):
        Weekly({"mon": "09:00"}, tz="europe/paris")


def test_it_cannot_be_changed() -> None:
    times = ["09:00"]
    when = Weekly({"mon": times})
    times.append("10:00")
    assert when.days() == {"mon": ["09:00"]}
    when.days()["mon"].append("10:00")
    assert str(when) == "weekly(mon 09:00)"
    with pytest.raises(AttributeError, match="immutable"):
        when.times = ()
    with pytest.raises(AttributeError):
        del when.times


def test_a_hostile_plan_is_answered_at_once_and_not_repeated_in_the_error() -> None:
    start = perf_counter()
    with pytest.raises(InvalidWhen) as caught:
        Weekly({"mon": ["09:00"] * 50_000 + ["never"]})
    assert perf_counter() - start < 1
    assert len(str(caught.value)) < 700
