"""The options of a worker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tickler import RunOptions
from tickler.deliver.fair_queue import SlotLimit
from tickler.errors import InvalidInput


def test_durations_are_kept_as_timedeltas_however_they_were_passed() -> None:
    options = RunOptions(lease=timedelta(minutes=2), drain=1.5, ahead=0.25)
    assert options == RunOptions(lease=120, drain=timedelta(milliseconds=1_500), ahead=timedelta(milliseconds=250))
    assert (options.lease, options.drain, options.ahead) == (
        timedelta(seconds=120),
        timedelta(seconds=1.5),
        timedelta(seconds=0.25),
    )


def test_the_defaults_fit_each_other() -> None:
    options = RunOptions()
    assert options.per_owner < options.in_flight, "one owner cannot take it all"
    assert options.per_host < options.in_flight, "nor can one host"
    assert options.queued > options.in_flight
    for limit in (options.slots, options.slots_per_host):
        hanging = 10 - limit.shared // options.per_owner  # of ten owners, those that get no more than what is reserved
        assert limit.reserved > hanging, "there is a slot for one more"
    assert options.ahead == timedelta(0), "at most once, what is claimed ahead is lost with the worker"


@pytest.mark.parametrize("name", ["in_flight", "per_owner", "per_host", "queued"])
@pytest.mark.parametrize("value", [0, -1, 100_001, 1.5, "5", None, True])
def test_a_limit_is_a_whole_number_from_one_on(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"^{name}: .* is not a whole number from 1 to 100000$"):
        RunOptions(**{name: value})  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize("name", ["in_flight", "per_owner", "per_host", "queued"])
@pytest.mark.parametrize("value", [1, 100_000])
def test_the_limits_of_limits_are_allowed(name: str, value: int) -> None:
    limits: dict[str, Any] = {name: value}
    assert getattr(RunOptions(**limits), name) == value


@pytest.mark.parametrize("name", ["lease", "drain", "ahead"])
@pytest.mark.parametrize(
    "value", [-1, -0.001, 86_401, float("nan"), float("inf"), "5", None, True, timedelta(-1), timedelta(days=1, seconds=1)]
)
def test_what_is_no_duration_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"^{name}: .* is not a duration from 0 to a day: pass seconds or a timedelta$"):
        RunOptions(**{name: value})  # type: ignore[arg-type]  # wrong types are the point


def test_nothing_is_reserved_where_one_owner_may_take_it_all() -> None:
    assert RunOptions(in_flight=100, per_owner=100, per_host=100).slots == SlotLimit(100, 0)
    assert RunOptions(in_flight=100, per_owner=90).slots == SlotLimit(100, 10)
    assert RunOptions(in_flight=4, per_owner=1).slots == SlotLimit(4, 0)
    assert RunOptions(in_flight=100, per_owner=5, per_host=20).slots_per_host == SlotLimit(20, 4)


@pytest.mark.parametrize("lease", [0, 4.999, timedelta(seconds=4)])
def test_a_lease_that_the_living_could_not_keep_is_refused(lease: timedelta | float) -> None:
    with pytest.raises(InvalidInput, match=r"^lease: .* is shorter than 5 s: other workers would take over from live ones$"):
        RunOptions(lease=lease)
    assert RunOptions(lease=5).lease == timedelta(seconds=5)


def test_where_nobody_keeps_leases_they_are_longer_unless_somebody_chose() -> None:
    assert RunOptions().lease == timedelta(seconds=10)
    assert RunOptions(in_flight=5).without_keeper() == RunOptions(in_flight=5, lease=60)
    assert RunOptions(lease=10).without_keeper().lease == timedelta(seconds=10)
    assert RunOptions(lease=timedelta(seconds=30)).without_keeper().lease == timedelta(seconds=30)


def test_nothing_is_claimed_more_than_ten_seconds_ahead() -> None:
    with pytest.raises(InvalidInput, match=r"^ahead: .* is longer than 10 s: claim later$"):
        RunOptions(ahead=10.001)
    assert RunOptions(ahead=10).ahead == timedelta(seconds=10)
