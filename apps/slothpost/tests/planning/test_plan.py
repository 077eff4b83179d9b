"""Weekly plans of channels."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from slothpost.plan import Plan
from tickler import Weekly
from tickler.errors import InvalidInput, InvalidWhen

BERLIN = ZoneInfo("Europe/Berlin")


def instants(when: Weekly, after: datetime, n: int) -> list[str]:
    return [f"{at.astimezone(BERLIN):%a %d %H:%M}" for at in when.upcoming(n, after=after)]


def test_a_day_is_on_when_it_has_a_time() -> None:
    plan = Plan.read({"tue": "09:00", "thu": ["09:00", "17:30"], "mon": None}, "Europe/Berlin")
    assert plan.is_scheduled
    assert plan.slots.days() == {"tue": ["09:00"], "thu": ["09:00", "17:30"]}


def test_a_plan_without_a_time_is_not_scheduled() -> None:
    assert not Plan.read({"mon": None, "tue": []}, "Europe/Berlin").is_scheduled
    assert not Plan.read({}, "Europe/Berlin").is_scheduled


def test_an_enabled_flag_is_refused_by_name() -> None:
    with pytest.raises(InvalidWhen, match=r"mon\.enabled is an unknown field: a day is on when it has a 'time'"):
        Plan.read({"mon": {"enabled": True}}, "Europe/Berlin")


@pytest.mark.parametrize(
    ("days", "tz", "named"),
    [({"mon": "25:00"}, "UTC", "25:00"), ({"moon": "09:00"}, "UTC", "moon"), ({"mon": "09:00"}, "X", "'X'")],
)
def test_what_could_never_be_posted_is_refused_by_name(days: dict[str, object], tz: str, named: str) -> None:
    with pytest.raises(InvalidWhen, match=named):
        Plan.read(days, tz)


def test_drafts_are_made_the_lead_earlier_also_across_midnight_and_the_week() -> None:
    plan = Plan.read({"mon": "09:00", "thu": ["09:00", "17:30"]}, "Europe/Berlin")
    assert plan.drafts().days() == {"wed": ["21:00"], "thu": ["05:30"], "sun": ["21:00"]}


def test_drafts_keep_their_wall_clock_time_over_a_change_of_the_clock() -> None:
    plan = Plan.read({"sun": "09:00"}, "Europe/Berlin")
    before = datetime(2027, 3, 20, tzinfo=BERLIN)
    assert instants(plan.drafts(), before, 3) == ["Sat 20 21:00", "Sat 27 21:00", "Sat 03 21:00"]
    assert instants(plan.slots, before, 3) == ["Sun 21 09:00", "Sun 28 09:00", "Sun 04 09:00"]


@pytest.mark.parametrize("lead", [timedelta(days=-1), timedelta(days=7)])
def test_a_lead_outside_the_week_is_refused(lead: timedelta) -> None:
    with pytest.raises(InvalidInput, match="lead"):
        Plan.read({"mon": "09:00"}, "UTC", lead)


def test_a_lead_of_nothing_makes_drafts_at_their_slots() -> None:
    plan = Plan.read({"mon": "09:00:30"}, "UTC", timedelta(0))
    assert plan.drafts() == plan.slots
