"""Fires that a worker claimed and could not begin are released; no attempt is counted, and another worker delivers them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tickler import Delivery, GiveUp, Outcome, Policy, PythonTarget, RetryLater, RunOptions, Schedule, Tickler
from tickler.clock import to_datetime
from tickler.deliver import retry
from tickler.deliver.missing_targets import MAX_MISSING, REMEMBERED_MS, MissingTargets
from tickler.deliver.retry import NextStep, after_release
from tickler.deliver.shortage import Shortage
from tickler.errors import StoreUnavailable
from tickler.model.fire import Fire
from tickler.model.policy import DEFAULT_POLICY
from tickler.records.worker_status import WorkerReport, report

from .at_work import AT_MOST_ONCE, Bench, after, many, schedule, soon
from .faulty_store import AWAY
from .virtual_time import START_MS, in_virtual_time

BOTH = pytest.mark.parametrize("policy", [DEFAULT_POLICY, AT_MOST_ONCE], ids=["at least once", "at most once"])
MISSING = Outcome(verdict="release", detail="the worker has no handler", obstacle="missing")
EXHAUSTED = Outcome(verdict="release", detail="the worker could not connect: too many open files", obstacle="exhausted")


async def ran(tickler: Tickler, seconds: float, options: RunOptions | None = None) -> None:
    running = asyncio.create_task(tickler.run(options))
    await asyncio.sleep(seconds)
    tickler.stop()
    await running


async def attempts_of(bench: Bench, number: int) -> Counter[tuple[str, int]]:
    """What happened to `many` of them, with which attempt."""
    entries = [entry for n in range(number) for entry in await bench.history(f"k{n:05}")]
    return Counter((entry.happened, entry.attempt) for entry in entries)


async def report_of(bench: Bench) -> WorkerReport:
    """Return the report of the live worker."""
    (report,) = [each for each in await bench.tickler.workers() if each.is_alive(bench.clock.now_ms())]
    return report


# A handler that this worker has not.


@BOTH
@in_virtual_time
async def test_a_worker_without_the_handler_leaves_the_fires_to_one_that_has_it(
    policy: Policy, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench()
    await bench.put(*many(60, policy=policy))
    bench.behave = after(0.2)
    without = asyncio.create_task(ran(bench.another(), 20))
    await asyncio.sleep(1)  # so that it is the first to look for what is due
    async with bench.running(RunOptions(in_flight=5)):
        await without
    assert await attempts_of(bench, 60) == {("delivered", 1): 60}
    assert max(arrival.late_ms for arrival in bench.arrived) < 6_000
    said = [record.message for record in caplog.records if "no handler 'work'" in record.message]
    assert len(said) == 1
    assert "fires that need it are released for other workers" in said[0]


@BOTH
@in_virtual_time
async def test_what_no_worker_has_a_handler_for_waits_without_an_attempt_for_one_that_has(policy: Policy) -> None:
    bench = Bench()
    await bench.put(*many(3, policy=policy))
    await ran(bench.another(), 130)
    waiting = await bench.fires()
    assert {(fire.attempt, fire.worker) for fire in waiting} == {(0, None)}
    reason = "released: the worker has no handler 'work': register it there, or correct the name"
    assert {fire.reason for fire in waiting} == {reason}
    assert await attempts_of(bench, 3) == {}
    async with bench.running():
        await asyncio.sleep(130)
    assert await attempts_of(bench, 3) == {("delivered", 1): 3}


@in_virtual_time
async def test_a_worker_that_lacks_a_handler_leaves_the_others_a_head_start() -> None:
    """However often both look: one that is idle would win every race against one that is busy."""
    bench = Bench()
    await bench.put(*many(5))
    lacking = asyncio.create_task(ran(bench.another(), 200))
    await asyncio.sleep(80)
    async with bench.running():
        await asyncio.sleep(6)  # until it has seen that there is somebody else
        put_off = max((fire.deliver_after or 0 for fire in await bench.fires()), default=0)
        await asyncio.sleep(max(put_off - bench.clock.now_ms(), 0) / 1000 + 0.9)  # each has come, once
        assert len(bench.arrived) == 5
        await lacking


@in_virtual_time
async def test_a_worker_that_lacks_a_handler_waits_for_nobody_where_nobody_has_it() -> None:
    bench = Bench()
    typo = replace(schedule("typo", 5.0), target=PythonTarget("wrok"))
    await bench.put(typo, schedule(when=3_600.0))
    async with bench.running():
        await asyncio.sleep(10)
        await bench.tickler.trigger("u1", "digest")
        await asyncio.sleep(0.5)
        assert bench.keys == ["digest"]


@in_virtual_time
async def test_a_worker_that_lacks_a_handler_leaves_the_others_nothing_that_it_has_itself() -> None:
    bench = Bench()
    other = bench.another()
    other.handler("elsewhere")(bench.behave)
    await bench.put(replace(schedule("theirs", 5.0), target=PythonTarget("elsewhere")), schedule(when=3_600.0))
    async with bench.running():
        await asyncio.sleep(8)
        beside = asyncio.create_task(ran(other, 60))
        await asyncio.sleep(20)  # until it knows that the other has what it lacks
        assert await bench.happened("theirs") == ["delivered"]
        await bench.tickler.trigger("u1", "digest")
        await asyncio.sleep(0.5)
        assert bench.keys == ["digest"]
        await beside


@pytest.mark.parametrize("says", [{"delivers_to": None}, {"doing": "not claiming: its clock is off"}, {"delivers_to": ["http"]}])
@in_virtual_time
async def test_a_worker_that_lacks_a_handler_waits_for_nobody_who_does_not_say_that_it_would_take_it(
    says: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    monkeypatch.setattr("tickler.deliver.retry.MAX_RELEASE_DELAY_MS", {"missing": 400, None: 400})
    now_ms = bench.clock.now_ms()
    told: dict[str, Any] = {"delivers_to": ["python:work"], "doing": "working", **says}
    await report(bench.store.store().records, WorkerReport(name="w2", started_at=now_ms, seen_at=now_ms + 20_000, **told))
    await bench.put(*many(1))
    await asyncio.sleep(10)
    lacking = bench.another()
    running = asyncio.create_task(ran(lacking, 10))
    await asyncio.sleep(9)
    asked = bench.faults.asked["fires.settle"]
    await running
    assert asked > 12, "it tries again as soon as it may"


@in_virtual_time
async def test_a_kind_of_target_whose_packages_are_missing_here_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    await bench.put(schedule(host="a", policy=AT_MOST_ONCE), schedule("other", host="a"))
    monkeypatch.setattr("tickler.client.own_deliverers", lambda *_: {})
    async with bench.running():
        await ran(bench.another(), 20)
    assert sorted(bench.keys) == ["digest", "other"]
    assert await bench.happened() == await bench.happened("other") == ["delivered"]


@in_virtual_time
async def test_a_tick_releases_what_it_lacks_the_handler_for_and_ends() -> None:
    bench = Bench()
    await bench.put(*many(4), *many(4, policy=AT_MOST_ONCE, owner="u2"))
    await asyncio.sleep(11)
    summary = await bench.another().tick(20_000)
    assert (summary.claimed, summary.released, summary.failed, summary.left) == (8, 8, 0, False)
    assert summary.duration_ms < 1_000
    await asyncio.sleep(2)
    assert (await bench.tickler.tick()).delivered == 8


def test_what_is_released_is_put_off_for_longer_the_older_it_is_and_dead_after_30_days() -> None:
    def delay_ms(age_s: float, outcome: Outcome = MISSING, roll: float = 1) -> int | None:
        then, deliver_after = after_release(outcome, START_MS, START_MS + round(age_s * 1000), lambda: roll)
        return deliver_after - START_MS - round(age_s * 1000) if deliver_after is not None and then == "release" else None

    assert [delay_ms(age_s) for age_s in (-5, 0, 1, 60, 3_600)] == [500, 500, 1_500, 60_500, 300_000]
    assert [delay_ms(age_s, roll=0) for age_s in (0, 60, 3_600)] == [250, 30_250, 150_000]
    assert delay_ms(3_600, EXHAUSTED) == 10_000
    assert delay_ms(3_600, Outcome(verdict="release", retry_after_ms=7)) == 7
    assert delay_ms(30 * 86_400) == 300_000
    late_ms = START_MS + retry.MAX_RELEASE_AGE_MS + 1
    assert after_release(MISSING, START_MS, late_ms, lambda: 1) == NextStep("dead")


@in_virtual_time
async def test_a_fire_that_nobody_could_begin_for_30_days_is_dead_and_says_why() -> None:
    bench = Bench()
    await bench.put(schedule())
    await asyncio.sleep(11)
    await bench.another().tick()
    bench.clock.set_by_ms += 30 * 86_400_000 + 1
    summary = await bench.another().tick()
    assert (summary.dead, summary.released) == (1, 0)
    (dead,) = await bench.fires("dead")
    assert dead.reason is not None
    assert dead.reason.startswith("the worker has no handler 'work'")
    assert dead.reason.endswith("and no worker could begin it within 30 days")
    (entry,) = await bench.history()
    assert (entry.happened, entry.gave_up) == ("failed", True)


@BOTH
@in_virtual_time
async def test_a_fire_that_was_postponed_for_almost_30_days_has_30_more_until_a_worker_can_begin_it(policy: Policy) -> None:
    bench = Bench()
    await bench.put(schedule(policy=policy))
    bench.behave = after(0, RetryLater(after=timedelta(days=30, seconds=-20), reason="not yet"))
    await asyncio.sleep(11)
    assert (await bench.tickler.tick()).postponed == 1
    bench.clock.set_by_ms += 30 * 86_400_000
    began_ms = bench.clock.now_ms()
    assert (await bench.another().tick()).released == 1
    (fire,) = await bench.fires("open")
    assert fire.deliver_after is not None
    assert fire.deliver_after <= began_ms + 1_000, "the delay begins with half a second again"
    since = f"{to_datetime(began_ms):%Y-%m-%d %H:%M:%S} UTC"
    assert (fire.attempt, str(fire.reason).startswith(f"released: since {since}: the worker has no handler")) == (0, True)
    assert since in (await bench.tickler.why("u1", fire.key)).sentence
    bench.clock.set_by_ms += 30 * 86_400_000 - 10_000
    assert (await bench.another().tick()).released == 1
    bench.clock.set_by_ms += 310_000
    assert (await bench.another().tick()).dead == 1
    (dead,) = await bench.fires("dead")
    assert str(dead.reason).endswith("and no worker could begin it within 30 days")


@in_virtual_time
async def test_a_fire_whose_next_attempt_was_far_off_has_30_days_until_a_worker_can_begin_it() -> None:
    bench = Bench()
    await bench.put(schedule(policy=Policy(backoff=[timedelta(days=100)])))
    bench.behave = after(0, OSError("down"))
    await asyncio.sleep(11)
    assert (await bench.tickler.tick()).failed == 1
    bench.clock.set_by_ms += 100 * 86_400_000
    assert (await bench.another().tick()).released == 1
    bench.behave = after(0)
    await asyncio.sleep(5)
    assert (await bench.tickler.tick()).delivered == 1


@pytest.mark.parametrize("date", ["2026-02-31 00:00:00", "0000-01-01 00:00:00"])
def test_a_reason_that_names_no_instant_counts_from_the_opening(date: str) -> None:
    fire = Fire(id="f", owner="u1", key="k", nominal_at=1, opened_at=7, reason=f"released: since {date} UTC: x")
    assert fire.unbegun_since == 7


@in_virtual_time
async def test_a_fire_that_a_person_retries_after_30_days_may_be_released_for_another_30() -> None:
    bench = Bench()
    await bench.put(schedule())
    bench.behave = after(0, GiveUp("not today"))
    await asyncio.sleep(11)
    await bench.tickler.tick()
    bench.clock.set_by_ms += 31 * 86_400_000
    (dead,) = await bench.fires("dead")
    await bench.tickler.fires.retry(dead.id)
    summary = await bench.another().tick()
    assert (summary.dead, summary.released) == (0, 1)


@pytest.mark.parametrize("per_owner", [3, 10])
@in_virtual_time
async def test_what_was_released_or_triggered_at_most_once_is_leased_for_free_slots_alone(per_owner: int) -> None:
    bench = Bench()
    await bench.put(*many(30, policy=AT_MOST_ONCE), *many(30, 3_600.0, AT_MOST_ONCE, owner="u2"))
    await asyncio.sleep(11)
    await bench.another().tick()
    for n in range(30):
        await bench.tickler.trigger("u2", f"k{n:05}")
    bench.behave = after(25)
    async with bench.running(RunOptions(in_flight=10, per_owner=per_owner)):
        await asyncio.sleep(5)
        leased = [fire for fire in await bench.fires() if fire.worker is not None]
        assert len(leased) <= 15, "a kill would lose what waits behind them"
        bench.behave = after(0)
        await asyncio.sleep(60)
        assert await bench.fires() == []
    assert len(bench.arrived) == 60


def test_what_is_lacking_is_forgotten_when_nobody_asks_for_it_any_more() -> None:
    missing = MissingTargets()
    for n in range(2 * MAX_MISSING):
        missing.add(f"python:h{n}", "no such handler", START_MS + n)
    assert list(missing.recent(START_MS)) == [f"python:h{n}" for n in range(MAX_MISSING, 2 * MAX_MISSING)]
    assert missing.recent(START_MS + REMEMBERED_MS + 2 * MAX_MISSING) == {}
    assert not missing


# Something that has run out.


@BOTH
@in_virtual_time
async def test_while_something_has_run_out_less_is_claimed_and_nothing_is_lost(
    policy: Policy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tickler.deliver")
    bench = Bench()
    hooks = [schedule(f"k{n:05}", 10.0, policy, host=f"h{n % 4}") for n in range(200)]
    await bench.put(*hooks)
    out = True

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(0.01)
        return EXHAUSTED if out else Outcome(verdict="delivered", status=204)

    bench.behave = behave
    async with bench.running(RunOptions(in_flight=50, queued=100)):
        await asyncio.sleep(12)
        tried = len(bench.arrived)
        await asyncio.sleep(48)
        assert len(bench.arrived) - tried < 12, "nearly nothing is claimed while it lasts"
        await asyncio.sleep(20)
        assert (await report_of(bench)).short_of == EXHAUSTED.detail
        out = False
        await asyncio.sleep(120)
        assert (await report_of(bench)).short_of is None
    delivered = {("delivered", 1): 200}
    assert await attempts_of(bench, 200) == delivered
    said = [record.message for record in caplog.records]
    assert sum("too many open files: the worker releases fires" in text for text in said) == 1
    assert sum("the shortage is over, and the worker claims as before" in text for text in said) == 1


@in_virtual_time
async def test_a_tick_that_has_run_out_of_something_says_that_something_is_left() -> None:
    bench = Bench()
    await bench.put(*(schedule(f"k{n:05}", 10.0, host="a") for n in range(200)))
    bench.behave = after(0, EXHAUSTED)
    await asyncio.sleep(11)
    summary = await bench.tickler.tick(20_000)
    assert summary.left
    assert (summary.failed, summary.released) == (0, summary.claimed)


@in_virtual_time
async def test_claims_come_back_one_two_four() -> None:
    shortage = Shortage()
    assert shortage.room(100) == 100
    for expected_s in (1, 2, 4, 8, 16, 30, 30):
        shortage.began("out of memory")
        shortage.began("out of memory")
        await asyncio.sleep(expected_s - 0.01)
        assert shortage.room(100) == 0
        await asyncio.sleep(0.02)
        assert shortage.room(100) == 1
        shortage.claimed(1)
        assert shortage.room(100) == 0
    for allowed in (2, 4, 8, 16, 32, 64):
        shortage.eased()
        assert shortage.room(100) == allowed
    await asyncio.sleep(61)
    assert shortage.room(100) == 100
    shortage.began("out of memory")
    await asyncio.sleep(1.01)
    assert shortage.room(100) == 1


@in_virtual_time
async def test_a_little_is_claimed_after_a_shortage_though_nothing_that_is_in_hand_ends() -> None:
    bench = Bench()
    await bench.put(*many(20, policy=Policy(timeout=600), owner="flood"), schedule("out", 11.0, owner="u2", host="a"))
    await bench.put(*(schedule(f"more{n}", 11.5, Policy(timeout=600), owner="flood") for n in range(20)))
    await bench.put(*(schedule(when=14.0 + n, owner=f"calm{n}") for n in range(3)))

    async def behave(delivery: Delivery) -> object:
        if delivery.owner == "flood":
            await asyncio.sleep(1_000)
        return EXHAUSTED if delivery.key == "out" and bench.clock.now_ms() < START_MS + 12_000 else None

    bench.behave = behave
    async with bench.running(RunOptions(drain=1)):
        await asyncio.sleep(18)
        assert any(key.startswith("more") for key in bench.keys)
        assert [arrival.late_ms < 2_000 for arrival in bench.arrived if arrival.key == "digest"] == [True] * 3


# The store, while something is released.


@in_virtual_time
async def test_what_cannot_be_released_while_the_store_is_away_is_released_later() -> None:
    bench = Bench()
    await bench.put(*many(5, policy=AT_MOST_ONCE))
    bench.faults.away("fires.open")
    lacking = asyncio.create_task(ran(bench.another(), 40))
    await asyncio.sleep(30)
    assert await bench.fires() == []
    bench.faults.back()
    async with bench.running():
        await lacking
        await asyncio.sleep(20)
    assert await attempts_of(bench, 5) == {("delivered", 1): 5}


@in_virtual_time
async def test_what_cannot_be_released_holds_up_no_other_outcome() -> None:
    bench = Bench()
    await bench.put(replace(schedule("typo", policy=AT_MOST_ONCE), target=PythonTarget("wrok")), *many(5, 12.0))
    bench.faults.away("fires.open")
    async with bench.running():
        await asyncio.sleep(30)
        assert await attempts_of(bench, 5) == {("delivered", 1): 5}
        bench.faults.back()
    assert [fire.key for fire in await bench.fires()] == ["typo"]


@in_virtual_time
async def test_what_was_released_by_an_answer_that_was_lost_is_delivered_once() -> None:
    bench = Bench()
    await bench.put(*many(5, policy=AT_MOST_ONCE))
    bench.faults.losing_answers.add("fires.open")
    lacking = asyncio.create_task(ran(bench.another(), 60))
    await asyncio.sleep(10.1)
    async with bench.running():
        await asyncio.sleep(20)
        assert len(bench.arrived) == 5
        bench.faults.losing_answers.clear()
        await lacking
        await asyncio.sleep(10)
    assert Counter(bench.keys) == {f"k{n:05}": 1 for n in range(5)}


@in_virtual_time
async def test_what_is_released_after_its_schedule_was_deleted_is_cancelled_and_remembered() -> None:
    bench = Bench()
    await bench.put(schedule(policy=AT_MOST_ONCE))
    bench.faults.failing_once["fires.open"] = [StoreUnavailable(AWAY)]
    lacking = asyncio.create_task(ran(bench.another(), 20))
    await bench.faults.until_asked("fires.open")
    await bench.tickler.schedules.delete("u1", "digest")
    await lacking
    (entry,) = await bench.history()
    assert (entry.happened, entry.detail) == ("cancelled", "its schedule is gone")
    assert await bench.fires() == []


# Told to stop.


@BOTH
@in_virtual_time
async def test_what_was_not_begun_when_a_worker_is_told_to_stop_is_delivered_by_the_next(policy: Policy) -> None:
    bench = Bench()
    await bench.put(*many(30, policy=policy))
    bench.behave = after(5)
    async with bench.running(RunOptions(in_flight=30, per_owner=3)):
        await bench.until_arrived(3)
    assert len(bench.arrived) == 3
    assert len(await bench.fires()) == 27
    (report,) = await bench.tickler.workers()
    assert report.counts["released"] == 27
    bench.behave = after(0)
    async with bench.running():
        await asyncio.sleep(1)
    assert await attempts_of(bench, 30) == {("delivered", 1): 30}


@in_virtual_time
async def test_what_the_store_does_not_take_back_at_the_end_is_said_to_be_lost(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.put(*many(4, policy=AT_MOST_ONCE))
    bench.behave = after(2)
    bench.faults.away("fires.open")
    async with bench.running(RunOptions(in_flight=4, per_owner=1)):
        await bench.until_arrived(1)
    assert "lost 3 at-most-once fires: the store did not take them back" in caplog.text


@in_virtual_time
async def test_a_one_shot_that_was_released_goes_after_its_delivery() -> None:
    bench = Bench()
    target = PythonTarget("work")
    await bench.put(Schedule(owner="u1", key="digest", when=soon(10), target=target, policy=AT_MOST_ONCE))
    await asyncio.sleep(11)
    await bench.another().tick()
    assert (await bench.stored()).state == "finished"
    await asyncio.sleep(2)
    assert (await bench.tickler.tick()).delivered == 1
    assert await bench.tickler.schedules.get("u1", "digest") is None


@in_virtual_time
async def test_what_was_released_at_most_once_and_then_fails_is_dead() -> None:
    bench = Bench()
    await bench.put(schedule(policy=AT_MOST_ONCE))
    await asyncio.sleep(11)
    await bench.another().tick()
    bench.behave = after(0, OSError("no"))
    await asyncio.sleep(2)
    assert (await bench.tickler.tick()).dead == 1
    (dead,) = await bench.fires("dead")
    assert (dead.attempt, dead.reason) == (1, "OSError: no")
    await asyncio.sleep(3_600)
    assert (await bench.tickler.tick()).claimed == 0


# Nobody hears of it as of an attempt.


@in_virtual_time
async def test_a_deliverer_may_put_off_what_it_did_not_begin() -> None:
    bench = Bench()
    heard: list[Outcome] = []
    bench.tickler.on_dispatch(lambda delivery, outcome: heard.append(outcome))
    await bench.put(schedule(host="a", policy=AT_MOST_ONCE))
    put_off = Outcome(verdict="release", retry_after_ms=20_000, detail="not before noon")
    answers = [put_off, Outcome(verdict="delivered", status=204)]

    async def behave(delivery: Delivery) -> object:
        return answers.pop(0)

    bench.behave = behave
    async with bench.running():
        await asyncio.sleep(11)
        (fire,) = await bench.fires()
        assert (fire.attempt, fire.reason) == (0, "released: not before noon")
        await asyncio.sleep(30)
    assert [arrival.late_ms // 1000 for arrival in bench.arrived] == [0, 20]
    assert [outcome.verdict for outcome in heard] == ["delivered"]
    assert await bench.happened() == ["delivered"]
