"""Policies: what they take, what they refuse, and their JSON."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tickler.errors import InvalidSchedule
from tickler.model.policy import DEFAULT_POLICY, MAX_ATTEMPTS, MAX_CATCHUP, MAX_DURATION, Policy, policy_from_json, policy_to_json

A_YEAR_S = MAX_DURATION.total_seconds()

durations = st.timedeltas(timedelta(0), MAX_DURATION)
policies = st.builds(
    Policy,
    delivery=st.just("at-least-once"),
    missed=st.sampled_from(["latest", "skip", "all"]),
    overlap=st.sampled_from(["allow", "skip", "wait"]),
    spread=durations,
    grace=durations,
    max_catchup=st.integers(1, MAX_CATCHUP),
    attempts=st.integers(1, MAX_ATTEMPTS),
    timeout=durations.filter(bool),
    backoff=st.lists(durations, min_size=1, max_size=4),
) | st.builds(Policy, delivery=st.just("at-most-once"))


def policy(**fields: object) -> Policy:
    return Policy(**fields)  # type: ignore[arg-type]  # any field of a policy


def test_the_defaults_are_those_of_the_design() -> None:
    default = Policy()
    assert (default.delivery, default.missed, default.overlap) == ("at-least-once", "latest", "allow")
    assert default.spread == timedelta(0)
    assert default == DEFAULT_POLICY


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"spread": 90}, timedelta(seconds=90)),
        ({"spread": 0.25}, timedelta(milliseconds=250)),
        ({"spread": timedelta(hours=2)}, timedelta(hours=2)),
        ({"spread": 0}, timedelta(0)),
        ({"spread": A_YEAR_S}, MAX_DURATION),
        ({"grace": 0}, timedelta(0)),
        ({"grace": 1e-6}, timedelta(microseconds=1)),
        ({"timeout": 1e-6}, timedelta(microseconds=1)),
        ({"timeout": timedelta(days=1)}, timedelta(days=1)),
        ({"backoff": [1, 2.5, timedelta(minutes=3)]}, (timedelta(seconds=1), timedelta(seconds=2.5), timedelta(minutes=3))),
        ({"backoff": (0,)}, (timedelta(0),)),
        ({"attempts": 1}, 1),
        ({"attempts": MAX_ATTEMPTS}, MAX_ATTEMPTS),
        ({"max_catchup": 1}, 1),
        ({"max_catchup": MAX_CATCHUP}, MAX_CATCHUP),
        ({"delivery": "at-most-once"}, "at-most-once"),
        ({"missed": "all"}, "all"),
        ({"overlap": "skip"}, "skip"),
    ],
    ids=str,
)
def test_what_fits_is_kept_and_durations_are_kept_as_timedeltas(fields: dict[str, object], kept: object) -> None:
    ((name, _),) = fields.items()
    assert getattr(policy(**fields), name) == kept


NO_DURATIONS: list[object] = [
    -1,
    -0.001,
    timedelta(microseconds=-1),
    A_YEAR_S + 1,
    MAX_DURATION + timedelta(microseconds=1),
    1e9,
    10**400,
    float("nan"),
    float("inf"),
    float("-inf"),
    True,
    None,
    "30",
    "PT30S",
    [30],
]
NO_NUMBERS: list[object] = [0, -1, True, False, 1.0, 2.5, "3", None, 10**6, 10**400, [1]]
NO_DELIVERIES: list[object] = ["exactly-once", "AT-LEAST-ONCE", "", None, True, 1, ["at-least-once"]]
NO_MISSED: list[object] = ["none", "", None, 0, {}]
NO_OVERLAPS: list[object] = ["queue", "", None, False, []]
NO_BACKOFFS: list[object] = [[], (), 5, timedelta(1), "5,300", None, {5: 300}, {5, 300}, range(5)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("delivery", value) for value in NO_DELIVERIES),
        *(("missed", value) for value in NO_MISSED),
        *(("overlap", value) for value in NO_OVERLAPS),
        *((name, value) for name in ("spread", "grace", "timeout") for value in NO_DURATIONS),
        ("timeout", 0),
        ("timeout", timedelta(0)),
        ("timeout", 1e-9),
        *(("backoff", value) for value in NO_BACKOFFS),
        *(("backoff", [5, value]) for value in NO_DURATIONS),
        *((name, value) for name in ("attempts", "max_catchup") for value in NO_NUMBERS),
        ("attempts", MAX_ATTEMPTS + 1),
        ("max_catchup", MAX_CATCHUP + 1),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_fit_is_refused_and_the_field_named(field: str, value: object) -> None:
    with pytest.raises(InvalidSchedule, match=rf"^policy\.{field}: ") as refused:
        policy(**{field: value})
    assert refused.value.field == f"policy.{field}"


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="retries"):
        policy(retries=3)


@pytest.mark.parametrize("overlap", ["skip", "wait"])
def test_overlap_other_than_allow_needs_at_least_once(overlap: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"^policy\.overlap: .* needs delivery='at-least-once'"):
        policy(overlap=overlap, delivery="at-most-once")
    assert policy(overlap="allow", delivery="at-most-once").overlap == "allow"
    assert policy(overlap=overlap).overlap == overlap


def test_a_policy_is_immutable_and_checked_again_when_replaced() -> None:
    kept = Policy(attempts=3)
    for name in kept.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(kept, name, getattr(DEFAULT_POLICY, name))
    assert replace(kept, spread=60) == Policy(attempts=3, spread=60)
    with pytest.raises(InvalidSchedule, match="attempts"):
        replace(kept, attempts=0)
    with pytest.raises(InvalidSchedule, match="overlap"):
        replace(Policy(overlap="wait"), delivery="at-most-once")


def test_a_list_that_the_caller_changes_later_does_not_reach_the_policy() -> None:
    delays: list[timedelta | float] = [1, 2]
    kept = Policy(backoff=delays)
    delays.append(3)
    assert kept == Policy(backoff=[1, 2])


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(policies)
def test_a_policy_survives_json(declared: Policy) -> None:
    assert policy_from_json(policy_to_json(declared)) == declared
    assert policy_from_json(json.loads(json.dumps(policy_to_json(declared)))) == declared


@pytest.mark.parametrize(
    ("declared", "fields"),
    [
        (Policy(), {}),
        (Policy(missed="skip", grace=5), {"missed": "skip", "grace": 5}),
        (Policy(spread=timedelta(minutes=1.5)), {"spread": 90}),
        (Policy(timeout=0.5), {"timeout": 0.5}),
        (Policy(backoff=[1, 2.5]), {"backoff": [1, 2.5]}),
        (Policy(attempts=10, max_catchup=100), {}),
    ],
    ids=str,
)
def test_json_has_what_differs_from_the_defaults_in_seconds(declared: Policy, fields: dict[str, object]) -> None:
    assert policy_to_json(declared) == fields
    assert policy_from_json(fields) == declared


def test_an_empty_object_is_the_default_policy_itself() -> None:
    assert policy_from_json({}) is DEFAULT_POLICY


@pytest.mark.parametrize("value", [None, [], "skip", 3, True, [("missed", "skip")]], ids=str)
def test_json_that_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^policy: is a "):
        policy_from_json(value)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"retries": 3}, "policy.retries"),
        ({"missed": "skip", "Overlap": "wait"}, "policy.Overlap"),
        ({"": 1}, "policy."),
        ({1: 2}, "policy.1"),
        ({1: 2, "retries": 3}, "policy.1"),
    ],
    ids=str,
)
def test_a_field_nobody_reads_is_refused_by_name(fields: dict[object, object], named: str) -> None:
    with pytest.raises(InvalidSchedule, match="unknown field: use delivery, missed, overlap") as refused:
        policy_from_json(fields)
    assert refused.value.field == named


@pytest.mark.parametrize("name", Policy.__struct_fields__)
def test_null_is_no_value_of_a_field_in_json(name: str) -> None:
    with pytest.raises(InvalidSchedule, match=rf"^policy\.{name}: "):
        policy_from_json({name: None})
