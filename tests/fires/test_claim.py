"""The pure middle of `fires.claim`: due rows with their schedules in; claims, fires to open and skips to remember out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickler.fires import claim as module
from tickler.fires.claim import ClaimBatch, DueSchedule, OpenPlan
from tickler.fires.contract import ClaimRequest
from tickler.fires.missed import Occurrences, occurrences
from tickler.model.fire import Entry, Fire, fire_id
from tickler.model.policy import Policy
from tickler.model.schedule import Id, Schedule
from tickler.model.schedule_json import encode_body
from tickler.model.target import PythonTarget
from tickler.schedules.write import first_row
from tickler.when import At, Cron, Every, When

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
LEASE_MS = 30_000
SOAK = os.environ.get("TICKLER_SOAK") == "1"

examples = settings(max_examples=2_000 if SOAK else 60, derandomize=not SOAK, deadline=None, database=None)

HOURLY = Cron("0 * * * *")
AT_MOST_ONCE = Policy(delivery="at-most-once")
CATCH_UP = Policy(missed="all")


def schedule(key: str = "digest", when: When = HOURLY, policy: Policy = CATCH_UP, *, owner: str = "u1") -> Schedule:
    return Schedule(owner=owner, key=key, when=when, target=PythonTarget("work"), policy=policy)


def batch(schedules: Sequence[Schedule], now_ms: int, *, put_at: int = NOW_MS, texts: dict[str, str] | None = None) -> ClaimBatch:
    """What a store makes of schedules that were put at `put_at`, in the order in which they are due."""
    rows: list[DueSchedule] = []
    for number, each in enumerate(schedules):
        row = first_row(each, put_at)
        text = (texts or {}).get(each.key, str(each.when))
        body, due_at = encode_body(each), row.next_fire_at
        rows.append(
            DueSchedule(number, *each.id, text, each.tz, due_at, each.ends_at, row.offset_ms, True, 3, put_at, put_at, body)
        )
    rows.sort(key=lambda row: row.next_fire_at)
    return ClaimBatch(rows, ClaimRequest(now_ms=now_ms, limit=100, worker="w1", lease_ms=LEASE_MS, expires_at=0))


def opened(schedules: Sequence[Schedule], hours: float, *, busy: Sequence[Id] = ()) -> OpenPlan:
    return batch(schedules, NOW_MS + round(hours * HOUR_MS)).open(busy)


def hours(instants: Sequence[int]) -> list[float]:
    return [(at - NOW_MS) / HOUR_MS for at in instants]


def test_a_fire_is_opened_as_leased_with_its_first_attempt() -> None:
    now_ms = NOW_MS + HOUR_MS + 7
    (claim,), (fire,), entries = batch([schedule()], now_ms).open(())
    assert fire == Fire(
        id=fire_id("u1", "digest", NOW_MS + HOUR_MS),
        owner="u1",
        key="digest",
        nominal_at=NOW_MS + HOUR_MS,
        opened_at=now_ms,
        attempt=1,
        deliver_after=now_ms + LEASE_MS,
        worker="w1",
    )
    assert (claim.fire, claim.nominal_at, claim.due_at, entries) == (fire, NOW_MS + HOUR_MS, NOW_MS + HOUR_MS, [])
    assert (claim.schedule.target, claim.schedule.policy) == (PythonTarget("work"), CATCH_UP)


def test_what_is_delivered_at_most_once_opens_no_fire() -> None:
    claims, fires, entries = opened([schedule(policy=Policy(delivery="at-most-once", missed="all"))], 3)
    assert [claim.fire for claim in claims] == [None] * 3
    assert (fires, entries) == ([], [])
    assert hours([claim.nominal_at for claim in claims]) == [1, 2, 3]


def test_what_a_policy_skips_is_an_entry_that_says_from_when_to_when_and_how_many() -> None:
    (claim,), _, (entry,) = opened([schedule(policy=Policy())], 3.5)
    assert hours([claim.nominal_at]) == [3]
    assert entry == Entry(
        owner="u1",
        key="digest",
        nominal_at=NOW_MS + HOUR_MS,
        at=NOW_MS + round(3.5 * HOUR_MS),
        happened="skipped",
        rule="missed",
        until_at=NOW_MS + 2 * HOUR_MS,
        count=2,
    )


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("overlap", ["allow", "skip", "wait"])
def test_fires_that_may_not_overlap_wait_or_are_skipped_but_for_the_first(overlap: str, busy: bool) -> None:
    one = schedule(policy=Policy(missed="all", overlap=overlap))  # type: ignore[arg-type]  # one of them
    claims, fires, entries = opened([one], 3, busy=[one.id] if busy else [])
    started = 3 if overlap == "allow" else 0 if busy else 1
    assert hours([claim.nominal_at for claim in claims]) == [1, 2, 3][:started]
    waiting = [fire for fire in fires if fire.state == "waiting"]
    skipped = [(entry.rule, *hours([entry.nominal_at, entry.until_at or 0]), entry.count) for entry in entries]
    rest = [1.0, 2.0, 3.0][started:]
    assert hours([fire.nominal_at for fire in waiting]) == (rest if overlap == "wait" else [])
    assert skipped == ([("overlap", rest[0], rest[-1], len(rest))] if overlap == "skip" else [])
    assert all((fire.worker, fire.attempt, fire.deliver_after) == (None, 0, None) for fire in waiting)


def test_an_instant_that_is_skipped_for_an_overlap_and_those_that_were_missed_are_two_entries() -> None:
    one = schedule(policy=Policy(overlap="skip"))
    claims, fires, entries = opened([one], 3, busy=[one.id])
    assert (claims, fires) == ([], [])
    assert [(entry.rule, *hours([entry.nominal_at, entry.until_at or 0]), entry.count) for entry in entries] == [
        ("overlap", 3, 3, 1),
        ("missed", 1, 2, 2),
    ]


def test_only_those_that_may_not_overlap_are_asked_about() -> None:
    kinds = [schedule("a"), schedule("s", policy=Policy(overlap="skip")), schedule("w", policy=Policy(overlap="wait"))]
    assert batch(kinds, NOW_MS + HOUR_MS).exclusive == [Id("u1", "s"), Id("u1", "w")]


def test_claims_come_by_when_they_are_due_over_all_schedules() -> None:
    two = [schedule("hourly"), schedule("half", Cron("30 * * * *"))]
    assert hours([claim.due_at for claim in opened(two, 3).claims]) == [0.5, 1, 1.5, 2, 2.5, 3]


def test_a_row_that_does_not_read_takes_nothing_from_those_beside_it() -> None:
    three = [schedule("a"), schedule("bad"), schedule("c")]
    mixed = batch(three, NOW_MS + HOUR_MS, texts={"bad": "nonsense"})
    assert [plan.id.key for plan in mixed.plans] == ["a", "c"]
    assert [problem.row.key for problem in mixed.advance.problems] == ["bad"]
    assert [claim.schedule.key for claim in mixed.open(()).claims] == ["a", "c"]


def test_a_claim_whose_fire_was_open_already_is_not_handed_out() -> None:
    found = opened([schedule("a"), schedule("b", policy=AT_MOST_ONCE)], 1)
    (fire,) = found.fires
    assert found.claimed({fire.id}) == found.claims
    assert [claim.schedule.key for claim in found.claimed(set())] == ["b"], "the other has none, and is in nobody's hands"


@examples
@given(
    st.sampled_from([HOURLY, Cron("*/20 * * * *"), Every(hours=1, start=NOW_MS), At("2030-11-20T12:40:00Z")]),
    st.integers(0, 1_199),
    st.text("abc", min_size=1, max_size=3),
    st.integers(1, 12 * HOUR_MS),
)
def test_a_spread_moves_when_it_is_due_and_not_which_instant_it_is_of(when: When, spread_s: int, key: str, later_ms: int) -> None:
    one = schedule(key, when, Policy(missed="all", spread=timedelta(seconds=spread_s)))
    offset_ms = one.offset_ms()
    first_at = when.next_after(NOW_MS)
    assert first_at is not None
    now_ms = first_at + offset_ms + later_ms
    claims = batch([one], now_ms).open(()).claims
    plain = occurrences(when, CATCH_UP, first_at, now_ms - offset_ms, None)
    assert [claim.nominal_at for claim in claims] == plain.fires
    assert all(claim.due_at == claim.nominal_at + offset_ms <= now_ms for claim in claims)
    assert all(claim.fire is not None and claim.fire.id == fire_id("u1", key, claim.nominal_at) for claim in claims)


def test_the_same_expression_is_computed_once_for_many_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = 0

    def counting(when: When, policy: Policy, nominal_at: int, now_at: int, ends_at: int | None) -> Occurrences:
        nonlocal computed
        computed += 1
        return occurrences(when, policy, nominal_at, now_at, ends_at)

    monkeypatch.setattr(module, "occurrences", counting)
    many = [schedule(f"k{n}", policy=Policy(missed="latest" if n % 2 else "all")) for n in range(500)]
    assert len(batch(many, NOW_MS + 2 * HOUR_MS).plans) == 500
    assert computed == 2
