"""The pure middle of `fires.lease`: open fires whose time has come in; which are leased, dead or cancelled out."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tickler.fires.contract import LeaseRequest
from tickler.fires.lease import SCHEDULE_GONE, lease
from tickler.model.fire import Fire
from tickler.model.policy import Policy
from tickler.model.schedule import StoredSchedule
from tickler.model.target import PythonTarget
from tickler.when import Cron

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
LEASE_MS = 30_000
REQUEST = LeaseRequest(now_ms=NOW_MS, limit=100, worker="w2", lease_ms=LEASE_MS, expires_at=0)
SOAK = os.environ.get("TICKLER_SOAK") == "1"

examples = settings(max_examples=2_000 if SOAK else 80, derandomize=not SOAK, deadline=None, database=None)


def schedule(policy: Policy = Policy()) -> StoredSchedule:  # noqa: B008  # a frozen value
    return StoredSchedule(
        owner="u1",
        key="digest",
        when=Cron("0 * * * *"),
        target=PythonTarget("work"),
        policy=policy,
        version=1,
        created_at=0,
        updated_at=0,
        state="active",
    )


def fire(id: str = "f1", *, attempt: int = 0, worker: str | None = None, since_ms: int = 0) -> Fire:
    """One that was to be delivered `since_ms` ago, or whose lease ended then."""
    return Fire(
        id=id,
        owner="u1",
        key="digest",
        nominal_at=NOW_MS - 5_000,
        opened_at=NOW_MS - 5_000,
        attempt=attempt,
        deliver_after=NOW_MS - since_ms,
        worker=worker,
    )


def test_an_open_fire_is_leased_for_its_next_attempt_and_leaves_no_entry() -> None:
    result = lease([(fire(attempt=2), schedule())], REQUEST)
    (claim,) = result.claims
    leased = replace(fire(attempt=2), attempt=3, deliver_after=NOW_MS + LEASE_MS, worker="w2", lease_token=NOW_MS)
    assert claim.fire == leased
    assert (claim.schedule, claim.nominal_at) == (schedule(), NOW_MS - 5_000)
    assert (result.dead, result.cancelled, result.entries) == ([], [], [])


def test_a_lease_that_ran_out_is_remembered_with_the_worker_and_the_attempt_it_had() -> None:
    result = lease([(fire(attempt=2, worker="w1"), schedule())], REQUEST)
    (entry,) = result.entries
    assert (entry.happened, entry.worker, entry.attempt, entry.at, entry.gave_up) == ("expired", "w1", 2, NOW_MS, False)
    assert entry.detail is not None
    assert "w1" in entry.detail
    assert [claim.fire and claim.fire.attempt for claim in result.claims] == [3]


@pytest.mark.parametrize(
    ("policy", "attempt", "why"),
    [
        (Policy(delivery="at-most-once"), 1, "at most once"),
        (Policy(attempts=3), 3, "last attempt"),
        (Policy(attempts=3), 4, "last attempt"),
    ],
)
def test_what_a_worker_went_away_with_is_dead_where_it_must_not_be_tried_again(policy: Policy, attempt: int, why: str) -> None:
    result = lease([(fire(attempt=attempt, worker="w1"), schedule(policy))], REQUEST)
    (dead,) = result.dead
    assert (dead.state, dead.deliver_after, dead.worker, dead.attempt) == ("dead", None, None, attempt)
    assert dead.reason is not None
    assert why in dead.reason
    assert (result.claims, [(entry.happened, entry.gave_up) for entry in result.entries]) == ([], [("expired", True)])


@pytest.mark.parametrize("policy", [Policy(delivery="at-most-once"), Policy(attempts=1)])
def test_what_nobody_had_is_leased_whatever_the_policy(policy: Policy) -> None:
    """Triggered by hand, sent again by a person, or released by a worker that stopped."""
    result = lease([(fire(attempt=1), schedule(policy))], REQUEST)
    assert len(result.claims) == 1


@pytest.mark.parametrize("worker", [None, "w1"])
def test_a_fire_whose_schedule_is_gone_is_cancelled(worker: str | None) -> None:
    found = fire(attempt=1, worker=worker)
    result = lease([(found, None)], REQUEST)
    assert (result.claims, result.dead, result.cancelled) == ([], [], [found])
    assert [entry.happened for entry in result.entries] == [*(["expired"] if worker else []), "cancelled"]
    assert result.entries[-1].detail == SCHEDULE_GONE


def test_what_is_due_again_is_due_since_it_was_to_be_delivered_and_never_later_than_that() -> None:
    """So that a runner that claims ahead holds none of them back."""
    spread = schedule(Policy(spread=1_800))
    assert spread.offset_ms() > 5_000
    (claim,) = lease([(fire(since_ms=100), spread)], REQUEST).claims
    assert claim.due_at == NOW_MS - 100


fires = st.builds(
    fire,
    id=st.uuids().map(str),
    attempt=st.integers(0, 4),
    worker=st.sampled_from([None, "w1", "w3"]),
    since_ms=st.integers(0, 10),
)
schedules = st.sampled_from([None, schedule(), schedule(Policy(attempts=2)), schedule(Policy(delivery="at-most-once"))])


@examples
@given(st.lists(st.tuples(fires, schedules), max_size=12, unique_by=lambda found: found[0].id))
def test_each_fire_has_exactly_one_fate_and_the_longest_due_comes_first(found: list[tuple[Fire, StoredSchedule | None]]) -> None:
    result = lease(found, REQUEST)
    leased = [claim.fire for claim in result.claims if claim.fire is not None]
    fates = [each.id for each in [*leased, *result.dead, *result.cancelled]]
    assert sorted(fates) == sorted(each.id for each, _ in found)
    assert all((each.worker, each.deliver_after) == ("w2", NOW_MS + LEASE_MS) for each in leased)
    before = {each.id: each for each, _ in found}
    waited = [before[each.id].deliver_after or 0 for each in leased]
    assert waited == sorted(waited)
    ran_out = [entry.fire_id for entry in result.entries if entry.happened == "expired"]
    assert sorted(filter(None, ran_out)) == sorted(each.id for each, _ in found if each.worker is not None)
