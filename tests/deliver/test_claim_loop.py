"""The claim loop: punctual, fair, within its limits, and robust. In virtual time, on an in-memory store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tickler import Cron, Delivery, GiveUp, Outcome, Policy, RunOptions
from tickler.errors import StoreUnavailable
from tickler.fires import Fire
from tickler.fires.contract import LeaseRequest
from tickler.model.fire import Extension
from tickler.model.schedule import Id

from .at_work import AT_MOST_ONCE, Bench, after, many, schedule
from .virtual_time import START_MS, in_virtual_time

MINUTELY = Cron("* * * * *")
EAGER = Policy(attempts=3, backoff=[10, 20])


# Punctual.


@in_virtual_time
async def test_what_is_due_is_delivered_at_its_instant() -> None:
    bench = Bench()
    await bench.put(*(schedule(f"k{n}", n * 37.123) for n in range(1, 10)))
    async with bench.running():
        await bench.until_arrived(9)
    assert bench.keys == [f"k{n}" for n in range(1, 10)]
    assert all(0 <= arrival.late_ms <= 5 for arrival in bench.arrived)


@in_virtual_time
async def test_a_put_wakes_the_runners_of_this_process() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(100)  # by now it asks twice a second only
        await bench.put(schedule(when=100.02))
        await bench.until_arrived(1)
    assert bench.arrived[0].late_ms <= 5


@in_virtual_time
async def test_a_trigger_wakes_the_runners_of_this_process() -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY))
    async with bench.running():
        await asyncio.sleep(20.3)
        fire = await bench.tickler.trigger("u1", "digest")
        await bench.until_arrived(1)
    assert (bench.arrived[0].nominal_at, bench.arrived[0].late_ms <= 5) == (fire.nominal_at, True)


@in_virtual_time
async def test_what_another_process_put_is_found_within_the_stores_poll() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(100)
        await bench.another().schedules.put(schedule(when=100.02))
        await bench.until_arrived(1)
    assert bench.arrived[0].late_ms <= bench.store.real.capabilities.poll_ms


@in_virtual_time
async def test_a_store_that_calls_wakes_the_runner_and_is_watched_again_after_it_hung_up() -> None:
    bench = Bench()
    bench.store.can_call = True
    async with bench.running():
        await asyncio.sleep(100)
        await bench.another().schedules.put(schedule(when=100.01))
        bench.store.wakers[0]()
        await bench.until_arrived(1)
        bench.store.hangs_up.set()
        await asyncio.sleep(20)
        assert len(bench.store.wakers) > 1
    assert bench.arrived[0].late_ms <= 5


@in_virtual_time
async def test_an_idle_runner_asks_no_more_often_than_the_store_wants() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(600)
    assert 600 <= bench.faults.asked["fires.peek"] <= 1_300
    assert bench.faults.asked["fires.claim"] < 10, "a claim takes a lock; a look does not"


# Limits and fairness.


@in_virtual_time
async def test_no_more_attempts_are_in_flight_than_allowed() -> None:
    bench = Bench()
    await bench.put(*many(100))
    bench.behave = after(1)
    async with bench.running(RunOptions(in_flight=7)):
        await bench.until_arrived(100)
    assert bench.most_at_once == 7
    assert bench.arrived[-1].late_ms < 16_000, "and no fewer: they go on one after the other"


@in_virtual_time
async def test_no_more_of_one_owner_are_in_flight_than_allowed() -> None:
    bench = Bench()
    await bench.put(*many(30, owner="a"), *many(30, owner="b"), *many(1, owner="c"))
    bench.behave = after(1)
    async with bench.running(RunOptions(per_owner=3)):
        await bench.until_arrived(61)
    assert dict(bench.most_of) == {"a": 3, "b": 3, "c": 1}
    assert bench.most_at_once == 7


@in_virtual_time
async def test_no_more_to_one_host_are_in_flight_than_allowed() -> None:
    bench = Bench()
    await bench.put(*(schedule(f"k{n}", owner=f"u{n}", host="slow") for n in range(30)))
    await bench.put(*(schedule(f"k{n}", owner=f"u{n}", host="quick") for n in range(30, 34)))
    bench.behave = after(1)
    async with bench.running(RunOptions(per_host=5)):
        await bench.until_arrived(34)
    assert bench.most_at_once == 5 + 4
    assert all(arrival.late_ms < 50 for arrival in bench.arrived if int(arrival.key[1:]) >= 30), "a slow host holds up no other"


@in_virtual_time
async def test_an_end_that_makes_room_in_two_limits_lets_two_begin() -> None:
    bench = Bench()
    await bench.put(schedule("first", 10, owner="a", host="h"))
    await bench.put(schedule("same owner", 11, owner="a", host="g"), schedule("same host", 11, owner="b", host="h"))
    bench.behave = after(10)
    async with bench.running(RunOptions(per_owner=1, per_host=1)):
        await bench.until_arrived(3)
    begun = {arrival.key: arrival.at_ms - START_MS for arrival in bench.arrived}
    assert begun["same owner"] == begun["same host"] == pytest.approx(20_000, abs=20)


@in_virtual_time
async def test_one_owners_flood_does_not_hold_up_the_others() -> None:
    """Not even where the flood is more than is claimed ahead of room, and came before."""
    bench = Bench()
    await bench.put(*many(700, 10, owner="flood"), *(schedule("one", 10.001, owner=f"u{n}") for n in range(50)))
    bench.behave = after(1)
    async with bench.running(RunOptions(in_flight=10, per_owner=5, queued=200)):
        await bench.until_arrived(200)
        places = [place for place, arrival in enumerate(bench.arrived) if arrival.owner != "flood"]
        assert len(places) == 50
        assert places[-1] < 150
        assert max(bench.arrived[place].late_ms for place in places) < 20_000
        bench.behave = after(0)
        await bench.until_arrived(750)
    assert len({(arrival.owner, arrival.key) for arrival in bench.arrived}) == 750


@pytest.mark.parametrize("policy", [Policy(timeout=900), Policy(timeout=900, delivery="at-most-once")], ids=lambda p: p.delivery)
@in_virtual_time
async def test_an_idle_owners_fire_starts_within_a_second_while_ten_others_hang(policy: Policy, soak: bool) -> None:
    """All of them share a handler, have more due than is claimed ahead, and were due before."""
    bench = Bench()
    for n in range(10):
        await bench.put(*many(1_000 if soak else 50, 10, policy, owner=f"hangs{n}"))
    await bench.put(schedule("one", 20, policy, owner="idle"), schedule("two", 30, policy, owner="idle"))

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(0 if delivery.owner == "idle" else 10_000)
        return None

    bench.behave = behave
    async with bench.running(RunOptions(queued=2_000 if soak else 100, drain=0)):
        await asyncio.sleep(40)
        of_idle = [arrival.late_ms for arrival in bench.arrived if arrival.owner == "idle"]
    assert len(of_idle) == 2
    assert max(of_idle) < 1_000
    assert len(bench.arrived) >= 40, "the others have what is not reserved"


@pytest.mark.parametrize("owners", [1, 10])
@in_virtual_time
async def test_what_is_delivered_at_most_once_is_not_claimed_far_ahead_of_free_slots(owners: int) -> None:
    """A killed worker loses the at-most-once fires that it has claimed."""
    bench = Bench()
    for n in range(owners):
        await bench.put(*many(300 // owners, 10, AT_MOST_ONCE, owner=f"u{n}"))
    bench.behave = after(1)
    most_ahead = 0
    async with bench.running():
        await bench.until_arrived(1)
        while len(bench.arrived) < 300:
            await asyncio.sleep(0.5)
            unclaimed = len(await bench.store.real.fires.peek(bench.clock.now_ms(), 10_000))
            most_ahead = max(most_ahead, 300 - unclaimed - len(bench.arrived))
    assert most_ahead <= 150, "about as many as there are slots"
    slots = 25 if owners == 1 else 40  # all share a handler
    assert bench.arrived[-1].late_ms < 1.1 * 300 / slots * 1_000, "and no slot waits for a claim"


@in_virtual_time
async def test_what_is_owed_by_others_is_claimed_past_what_waits_and_is_delivered_at_most_once() -> None:
    bench = Bench()
    await bench.put(*many(500, 10, AT_MOST_ONCE, owner="once"), schedule("one", 11, owner="other"))
    bench.behave = after(5)
    async with bench.running(RunOptions(drain=0)):
        await asyncio.sleep(12)
        (of_other,) = [arrival for arrival in bench.arrived if arrival.owner == "other"]
    assert of_other.late_ms < 1_000


@in_virtual_time
async def test_an_idle_owners_fire_starts_in_a_tick_while_others_hang() -> None:
    bench = Bench()
    for owner in "abcd":
        await bench.put(*many(5, 1, owner=owner))
    await bench.put(schedule("one", 5, owner="idle"))

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(0 if delivery.owner == "idle" else 10_000)
        return None

    bench.behave = behave
    await asyncio.sleep(2)
    ticking = asyncio.create_task(bench.tickler.tick(10_000, RunOptions(in_flight=5, per_owner=2, drain=0)))
    await asyncio.sleep(5)
    assert [arrival.owner for arrival in bench.arrived if arrival.owner == "idle"] == ["idle"]
    await ticking


@in_virtual_time
async def test_two_workers_deliver_everything_once_between_them() -> None:
    bench = Bench()
    await bench.put(*many(300), *many(300, policy=AT_MOST_ONCE, owner="u2"))
    bench.behave = after(0.1)
    async with bench.running(RunOptions(in_flight=20, queued=50)), bench.running(RunOptions(in_flight=20, queued=50)):
        await bench.until_arrived(600)
        await asyncio.sleep(120)
    assert len(bench.arrived) == len({(arrival.owner, arrival.key) for arrival in bench.arrived}) == 600
    assert await bench.fires() == []


# What fails.


@in_virtual_time
async def test_what_fails_is_tried_again_within_its_backoff_and_remembered_attempt_by_attempt() -> None:
    bench = Bench()
    await bench.put(schedule(policy=EAGER))

    async def third_time(delivery: Delivery) -> object:
        if delivery.attempt < 3:
            raise ConnectionError("no")
        return "yes"

    bench.behave = third_time
    async with bench.running():
        await bench.until_arrived(3)
    begun = [arrival.at_ms for arrival in bench.arrived]
    assert [arrival.attempt for arrival in bench.arrived] == [1, 2, 3]
    assert 0 <= begun[1] - begun[0] <= 10_600
    assert 0 <= begun[2] - begun[1] <= 20_600
    history = await bench.history()
    assert [(entry.happened, entry.attempt, entry.detail, entry.answer) for entry in history] == [
        ("failed", 1, "ConnectionError: no", None),
        ("failed", 2, "ConnectionError: no", None),
        ("delivered", 3, None, "yes"),
    ]
    assert len({entry.fire_id for entry in history}) == 1, "one fire, one id, whatever the attempt"
    assert await bench.fires() == []


@in_virtual_time
async def test_a_fire_is_dead_after_its_last_attempt_until_a_person_sends_it_again() -> None:
    bench = Bench()
    await bench.put(schedule(policy=EAGER))
    bench.behave = after(0, ConnectionError("no"))
    async with bench.running():
        await bench.until_arrived(3)
        await asyncio.sleep(3_600)
        assert len(bench.arrived) == 3
        (dead,) = await bench.fires("dead")
        assert (dead.attempt, dead.reason, dead.worker) == (3, "ConnectionError: no", None)
        bench.behave = after(0)
        await bench.tickler.fires.retry(dead.id)
        await bench.until_arrived(4)
    assert bench.arrived[3].attempt == 1
    assert await bench.happened() == ["failed", "failed", "failed", "retried", "delivered"]
    assert await bench.fires("dead") == []


@in_virtual_time
async def test_a_handler_that_gives_up_is_not_asked_again() -> None:
    bench = Bench()
    await bench.put(schedule())
    bench.behave = after(0, GiveUp("there is nobody of that name"))
    async with bench.running():
        await asyncio.sleep(3_600)
    (dead,) = await bench.fires("dead")
    assert (len(bench.arrived), dead.attempt, dead.reason) == (1, 1, "there is nobody of that name")


@pytest.mark.parametrize(
    ("detail", "reason"),
    [
        ("answered 410 Gone", "its target answered 410 Gone"),
        (None, "its target is gone"),
        ("said \0 and \ud800", "its target said \ufffd and ?"),
    ],
)
@in_virtual_time
async def test_a_target_that_is_gone_pauses_its_schedule_with_the_reason(
    caplog: pytest.LogCaptureFixture, detail: str | None, reason: str
) -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY, host="h"))
    bench.behave = after(0, Outcome(verdict="gone", status=410, detail=detail))
    async with bench.running():
        await asyncio.sleep(600)
    stored = await bench.stored()
    assert (stored.state, stored.reason) == ("paused", reason)
    assert (len(bench.arrived), len(await bench.fires("dead"))) == (1, 1)
    assert any(reason in record.getMessage() for record in caplog.records)


@in_virtual_time
async def test_a_schedule_that_was_deleted_while_its_target_said_gone_is_no_trouble() -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY, host="h"), schedule("other", 70))

    async def deleted(delivery: Delivery) -> object:
        await bench.tickler.schedules.delete("u1", "digest")
        return Outcome(verdict="gone", detail="answered 410")

    bench.behave = deleted
    async with bench.running():
        await bench.until_arrived(1)
        bench.behave = after(0)
        await bench.until_arrived(2)
    assert bench.keys == ["digest", "other"]


@in_virtual_time
async def test_an_attempt_is_cancelled_after_the_schedules_timeout() -> None:
    bench = Bench()
    await bench.put(schedule(policy=Policy(timeout=5, attempts=1)))
    seen: list[str] = []

    async def slow(delivery: Delivery) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    bench.behave = slow
    async with bench.running():
        await asyncio.sleep(20)
        (dead,) = await bench.fires("dead")
    assert (seen, dead.reason) == (["cancelled"], "no answer within 5 s")
    (entry,) = await bench.history()
    assert entry.duration_ms == pytest.approx(5_000, abs=10)


@in_virtual_time
async def test_a_target_of_a_kind_that_is_not_known_here_is_tried_again_and_says_so() -> None:
    bench = Bench()
    await bench.put(schedule(policy=EAGER))
    bench.store.real.schedules._tables.schedules[Id("u1", "digest")].body = '{"target":{"type":"pigeon","to":"home"}}'
    async with bench.running():
        await asyncio.sleep(11)
    (fire,) = await bench.fires()
    assert fire.reason is not None
    assert "upgrade this worker" in fire.reason


# Overlap and one-shots.


@in_virtual_time
async def test_fires_that_wait_for_each_other_are_delivered_one_at_a_time_and_in_order() -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY, policy=Policy(overlap="wait", timeout=300)))
    bench.behave = after(150)
    async with bench.running():
        await bench.until_arrived(6)
        bench.behave = after(0)
        assert len(await bench.fires("waiting")) > 3
        await bench.until_arrived(15)
    nominals = [arrival.nominal_at for arrival in bench.arrived[:15]]
    assert nominals == [START_MS + n * 60_000 for n in range(1, 16)]
    assert bench.most_at_once == 1


@pytest.mark.parametrize("dies", [False, True])
@in_virtual_time
async def test_a_one_shot_goes_after_delivery_and_never_when_it_is_dead(dies: bool) -> None:
    bench = Bench()
    once = schedule()
    await bench.put(type(once)(owner="u1", key="digest", when=once.when, target=once.target))
    bench.behave = after(0, GiveUp("no") if dies else None)
    async with bench.running():
        await asyncio.sleep(20)
    assert (await bench.tickler.schedules.get("u1", "digest") is None) is not dies
    assert await bench.happened() == ["failed" if dies else "delivered"], "the history outlives it"


# Leases.


@in_virtual_time
async def test_leases_are_kept_for_as_long_as_attempts_take() -> None:
    bench = Bench()
    await bench.put(*many(3, policy=Policy(timeout=3_600)))
    bench.behave = after(600)
    options = RunOptions(lease=5, in_flight=1)
    async with bench.running(options), bench.running(RunOptions(lease=5, in_flight=2)):
        await bench.until_arrived(3)
        await asyncio.sleep(1_900)
    assert sorted(bench.keys) == ["k00000", "k00001", "k00002"], "neither what is in flight nor what is queued goes to another"


@in_virtual_time
async def test_what_a_worker_went_away_with_is_delivered_when_its_lease_ends() -> None:
    bench = Bench()
    await bench.put(schedule())
    await asyncio.sleep(10)
    assert len(await bench.claimed_by_a_ghost(lease_ms=30_000)) == 1
    async with bench.running():
        await bench.until_arrived(1)
    (arrival,) = bench.arrived
    assert arrival.attempt == 2
    assert arrival.at_ms - START_MS == pytest.approx(40_000, abs=600)
    assert await bench.happened() == ["expired", "delivered"]


@in_virtual_time
async def test_what_a_killed_worker_had_is_taken_over_within_15_seconds() -> None:
    bench = Bench()
    await bench.put(*many(20))
    await asyncio.sleep(10)
    assert len(await bench.claimed_by_a_ghost(lease_ms=RunOptions().lease // timedelta(milliseconds=1))) == 20
    killed_at = bench.clock.now_ms()
    async with bench.running():
        await bench.until_arrived(20)
    assert max(arrival.at_ms for arrival in bench.arrived) - killed_at < 15_000


@in_virtual_time
async def test_what_is_delivered_within_a_third_of_a_lease_is_never_extended() -> None:
    """An extension is a write."""
    bench = Bench()
    await bench.put(*(schedule(f"s{n}", 10 + n / 10) for n in range(100)))
    bench.behave = after(2)
    async with bench.running(RunOptions(in_flight=100, per_owner=100, per_host=100)):
        await bench.until_arrived(100)
    assert bench.faults.asked["fires.extend"] == 0


@in_virtual_time
async def test_a_store_that_was_away_for_longer_than_a_lease_makes_nobody_take_over_from_the_living() -> None:
    bench = Bench()
    await bench.put(*many(4, policy=Policy(timeout=3_600)))
    bench.behave = after(300)
    options = RunOptions(in_flight=2, queued=2)
    async with bench.running(options), bench.running(options), bench.running():
        await bench.until_arrived(4)
        for _ in range(3):
            bench.faults.away("fires.extend", "fires.peek", "fires.claim", "fires.lease")
            await asyncio.sleep(33)
            del bench.faults.failing["fires.claim"], bench.faults.failing["fires.lease"], bench.faults.failing["fires.peek"]
            await asyncio.sleep(4)  # some come back before others
            bench.faults.back()
            await asyncio.sleep(30)
    assert sorted(bench.keys) == [f"k{n:05}" for n in range(4)]


@in_virtual_time
async def test_a_store_that_fails_again_and_again_does_not_keep_the_dead_alive() -> None:
    bench = Bench()
    await bench.put(schedule())
    await asyncio.sleep(10)
    await bench.claimed_by_a_ghost(lease_ms=10_000)
    async with bench.running():
        for _ in range(40):
            bench.faults.failing_once["fires.peek"] = [StoreUnavailable("the store is away")]
            await asyncio.sleep(3)
    assert bench.keys == ["digest"]


@in_virtual_time
async def test_a_claim_that_is_answered_after_its_lease_is_left_to_who_has_taken_it_over() -> None:
    bench = Bench()
    await bench.put(schedule("mine"), schedule("taken"), schedule("once", policy=AT_MOST_ONCE))
    answered = asyncio.Event()
    async with bench.running():
        await asyncio.sleep(9)
        bench.faults.held["fires.claim"] = answered
        await asyncio.sleep(60)
        del bench.faults.held["fires.claim"]
        taken = await bench.store.real.fires.lease(
            LeaseRequest(now_ms=bench.clock.now_ms(), limit=1, worker="another", lease_ms=60_000, expires_at=START_MS * 2)
        )
        answered.set()
        await bench.until_arrived(2)
        await asyncio.sleep(20)
    assert len(taken) == 1
    assert sorted(bench.keys) == sorted({"mine", "taken", "once"} - {taken[0].schedule.key})


@in_virtual_time
async def test_a_lease_whose_fire_was_locked_is_extended_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    await bench.put(schedule(), schedule("free"))
    bench.behave = after(25)
    extend = bench.store.real.fires.extend
    asked_at: list[int] = []

    async def locked_at_first(fires: Sequence[Fire], until_ms: int) -> Extension:
        asked_at.append(bench.clock.now_ms())
        skipped = [fire for fire in fires if fire.key == "digest" and len(asked_at) <= 4]
        lost, _ = await extend([fire for fire in fires if fire not in skipped], until_ms)
        return Extension(lost, skipped)

    monkeypatch.setattr(bench.store.real.fires, "extend", locked_at_first)
    async with bench.running(), bench.running():
        await bench.until_arrived(2)
        await asyncio.sleep(26)
    assert await bench.happened() == await bench.happened("free") == ["delivered"]
    assert len(asked_at) < 40, "nobody asks without end"


@in_virtual_time
async def test_a_clock_that_is_set_forward_takes_no_lease_from_the_living(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.put(*many(4, policy=Policy(timeout=3_600)))
    bench.behave = after(300)
    options = RunOptions(lease=30, in_flight=2, queued=2)
    async with bench.running(options), bench.running(options):
        await bench.until_arrived(4)
        bench.clock.set_by_ms += 600_000
        await asyncio.sleep(400)
    assert sorted(bench.keys) == [f"k{n:05}" for n in range(4)]
    assert "the clock jumped by +600000 ms" in caplog.text


@in_virtual_time
async def test_leases_that_end_are_taken_over_again_a_lease_after_the_clock_was_set() -> None:
    bench = Bench()
    await bench.put(schedule())
    await asyncio.sleep(10)
    await bench.claimed_by_a_ghost(lease_ms=300_000)
    async with bench.running(RunOptions(lease=30)):
        await asyncio.sleep(5)
        bench.clock.set_by_ms += 600_000
        await asyncio.sleep(20)
        assert bench.arrived == []
        await asyncio.sleep(20)
        assert bench.keys == ["digest"]


@in_virtual_time
async def test_a_clock_that_is_set_back_delivers_nothing_twice() -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY))
    async with bench.running():
        await bench.until_arrived(3)
        bench.clock.set_by_ms -= 3_600_000
        await asyncio.sleep(3_000)
        assert len(bench.arrived) == 3
        await bench.until_arrived(5)
    assert [arrival.nominal_at for arrival in bench.arrived] == [START_MS + n * 60_000 for n in range(1, 6)]


# Ahead.


@in_virtual_time
async def test_what_is_claimed_ahead_is_held_until_its_instant() -> None:
    bench = Bench()
    await bench.put(schedule("a", 10), schedule("b", 11, AT_MOST_ONCE), schedule("c", 20))
    async with bench.running(RunOptions(ahead=2)):
        await asyncio.sleep(9)
        assert [fire.key for fire in await bench.fires() if fire.worker is not None] == ["a"]
        assert bench.arrived == []
        await bench.until_arrived(3)
    assert bench.keys == ["a", "b", "c"]
    assert all(0 <= arrival.late_ms <= 5 for arrival in bench.arrived)


# Beside.


@in_virtual_time
async def test_history_and_records_whose_time_is_over_are_pruned() -> None:
    bench = Bench(kept_days=1 / 24)
    await bench.put(schedule())
    await bench.tickler.records.put("note", "old", 1, expires_at=START_MS + 1_000)
    tables = bench.store.real.records._tables
    async with bench.running():
        await asyncio.sleep(3_500)
        assert len(await bench.history()) == 1
        assert ("note", "old") not in tables.records
        await asyncio.sleep(300)
        assert await bench.history() == []
    assert tables.history == []


@in_virtual_time
async def test_a_tick_goes_on_behind_what_is_skipped() -> None:
    """A claim that returns nothing may have skipped many instants by policy."""
    bench = Bench()
    await bench.put(*many(200, policy=Policy(missed="skip", grace=1)), schedule("late", 20.0))
    await asyncio.sleep(60)
    summary = await bench.tickler.tick()
    assert (summary.delivered, summary.left) == (1, False)
    assert [arrival.key for arrival in bench.arrived] == ["late"]


@in_virtual_time
async def test_a_tick_prunes_a_batch_and_one_without_time_left_does_not() -> None:
    """Where only ticks run, nothing else prunes."""
    bench = Bench(kept_days=1 / 24)
    await bench.put(schedule(when=1))
    await asyncio.sleep(1)
    await bench.tickler.tick()
    await bench.tickler.records.put("note", "old", 1, expires_at=START_MS + 2_000)
    tables = bench.store.real.records._tables
    await asyncio.sleep(3_700)
    assert len(tables.history) == 1

    await bench.put(schedule("slow", 3_702))
    await asyncio.sleep(2)
    bench.behave = after(5)
    await bench.tickler.tick(1_000)
    assert ("note", "old") in tables.records
    assert len(tables.history) == 2

    await bench.tickler.tick()
    assert ("note", "old") not in tables.records
    assert len(tables.history) == 1, "that of the slow one"


@in_virtual_time
async def test_a_tick_that_cannot_prune_says_so_and_is_none_the_worse(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.put(schedule(when=1))
    await asyncio.sleep(1)
    bench.faults.away("fires.prune")
    assert (await bench.tickler.tick()).delivered == 1
    assert "could not prune the history: the store is away" in caplog.text


@in_virtual_time
async def test_listeners_are_told_of_every_attempt_and_awaited_and_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.put(schedule(policy=EAGER))
    heard: list[tuple[int, str]] = []

    @bench.tickler.on_dispatch
    def broken(delivery: Delivery, outcome: Outcome) -> None:
        raise RuntimeError("the metrics are down")

    @bench.tickler.on_dispatch
    async def cancelled(delivery: Delivery, outcome: Outcome) -> None:
        raise asyncio.CancelledError

    @bench.tickler.on_dispatch
    async def slow(delivery: Delivery, outcome: Outcome) -> None:
        await asyncio.sleep(0.5)
        heard.append((delivery.attempt, outcome.verdict))

    async def second_time(delivery: Delivery) -> object:
        await asyncio.sleep(0.25)
        return 1 / (delivery.attempt - 1)

    bench.behave = second_time
    async with bench.running():
        await bench.until_arrived(2)
    assert heard == [(1, "retry"), (2, "delivered")]
    history = await bench.history()
    assert [entry.happened for entry in history] == ["failed", "delivered"]
    assert [entry.duration_ms for entry in history] == [250, 250], "the time of callbacks is not measured"
    assert caplog.text.count("the delivery is not affected") == 4


@in_virtual_time
async def test_a_worker_that_lacks_a_zone_says_so_and_claims_again_when_it_has_it(caplog: pytest.LogCaptureFixture) -> None:
    from tickler.errors import WorkerUnfit

    bench = Bench()
    await bench.put(schedule())
    bench.faults.failing["fires.claim"] = WorkerUnfit(["Mars/Olympus_Mons"])
    async with bench.running():
        await asyncio.sleep(100)
        said = [record for record in caplog.records if "Mars/Olympus_Mons" in record.getMessage()]
        assert {record.levelno for record in said} == {logging.ERROR}
        assert 2 <= len(said) <= 5, "not more than twice a minute"
        bench.faults.back()
        await bench.until_arrived(1)
    assert bench.keys == ["digest"]
