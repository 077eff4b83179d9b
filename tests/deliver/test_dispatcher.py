"""The dispatcher, when something goes wrong around it. In virtual time, on a faulty in-memory store."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from tickler import Cron, Delivery, Every, Outcome, Policy, RunOptions
from tickler.deliver import payload_memory
from tickler.deliver.abandoned import STUCK
from tickler.deliver.decoding_limit import DecodingLimit
from tickler.errors import StoreUnavailable
from tickler.model.policy import DEFAULT_POLICY

from .at_work import AT_MOST_ONCE, Bench, after, many, schedule
from .faulty_store import AWAY
from .virtual_time import in_virtual_time

MINUTELY = Cron("* * * * *")


# A store that goes away.


@in_virtual_time
async def test_what_was_claimed_is_delivered_although_the_store_is_away_for_what_is_asked_next() -> None:
    bench = Bench()
    await bench.put(*many(5, policy=AT_MOST_ONCE))
    bench.faults.failing_once["fires.lease"] = [None, *(StoreUnavailable(AWAY) for _ in range(20))]
    async with bench.running():
        await bench.until_arrived(5)
        await asyncio.sleep(60)
    assert [await bench.happened(f"k{n:05}") for n in range(5)] == [["delivered"]] * 5


@in_virtual_time
async def test_a_worker_does_not_take_over_from_itself_what_it_could_not_settle() -> None:
    bench = Bench()
    await bench.put(*many(20))
    async with bench.running(RunOptions(lease=10)):
        await bench.until_arrived(1)
        bench.faults.away("fires.settle", "fires.extend", "fires.peek", "fires.claim", "fires.lease")
        await asyncio.sleep(60)
        bench.faults.back()
        await asyncio.sleep(60)
    assert len(bench.arrived) == 20
    assert [await bench.happened(f"k{n:05}") for n in range(20)] == [["delivered"]] * 20


@in_virtual_time
async def test_what_waits_to_be_settled_is_kept_from_others() -> None:
    bench = Bench()
    await bench.put(schedule())
    async with bench.running(RunOptions(lease=10)):
        await bench.until_arrived(1)
        bench.faults.away("fires.settle")
        await asyncio.sleep(120)
        (fire,) = await bench.fires()
        assert fire.deliver_after is not None
        assert fire.deliver_after > bench.clock.now_ms()
        bench.faults.back()
        await asyncio.sleep(20)
    assert await bench.happened() == ["delivered"]


# Fair.


@in_virtual_time
async def test_one_owners_retries_do_not_hold_up_anothers_trigger() -> None:
    bench = Bench()
    await bench.put(
        *many(300, policy=Policy(attempts=50, backoff=[1], timeout=30), owner="flood"), schedule(when=MINUTELY, owner="calm")
    )

    async def behave(delivery: Delivery) -> object:
        if delivery.owner == "flood":
            await asyncio.sleep(20)
            raise OSError("no")
        return None

    bench.behave = behave
    async with bench.running(RunOptions(in_flight=20, per_owner=10, queued=50, drain=0)):
        await asyncio.sleep(110)
        await bench.tickler.trigger("calm", "digest")
        triggered_at = bench.clock.now_ms()
        await asyncio.sleep(3)
    assert any(arrival.owner == "calm" and arrival.at_ms >= triggered_at for arrival in bench.arrived)


@in_virtual_time
async def test_a_tick_is_not_held_up_by_an_owner_at_its_limit() -> None:
    bench = Bench()
    await bench.put(*many(10, owner="slow"), schedule(when=12.0, owner="quick"))

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(8 if delivery.owner == "slow" else 0)
        return None

    bench.behave = behave
    await asyncio.sleep(11)
    ticking = asyncio.create_task(bench.tickler.tick(30_000, RunOptions(in_flight=20, per_owner=4, drain=5)))
    await asyncio.sleep(2)
    assert "quick" in {arrival.owner for arrival in bench.arrived}
    await ticking


@in_virtual_time
async def test_no_attempt_lasts_longer_than_the_worker_allows() -> None:
    bench = Bench()
    await bench.put(schedule(policy=Policy(timeout=86_400, attempts=1)))
    bench.behave = after(80_000)
    async with bench.running(RunOptions(longest=60)):
        await asyncio.sleep(100)
    (entry,) = await bench.history()
    assert (entry.happened, entry.detail) == ("failed", "no answer within 60 s")


# Ahead.


@in_virtual_time
async def test_what_is_held_until_its_instant_takes_nobodys_place() -> None:
    bench = Bench()
    await bench.put(*many(60, when=26.0), schedule("now", 20.5, owner="u2"))
    async with bench.running(RunOptions(in_flight=10, per_owner=10, ahead=6)):
        await bench.until_arrived(1)
        assert [(arrival.key, arrival.late_ms < 100) for arrival in bench.arrived] == [("now", True)]
        await bench.until_arrived(61)
    assert all(0 <= arrival.late_ms < 100 for arrival in bench.arrived)


@in_virtual_time
async def test_every_instant_of_what_is_claimed_ahead_fires_at_its_time() -> None:
    bench = Bench()
    await bench.put(schedule(when=Every(seconds=1)))
    async with bench.running(RunOptions(ahead=5)):
        await asyncio.sleep(20.5)
    assert [arrival.late_ms for arrival in bench.arrived] == [pytest.approx(0, abs=5)] * 20
    assert set(await bench.happened()) == {"delivered"}


@in_virtual_time
async def test_what_is_held_and_delivered_at_most_once_is_released_for_its_instant_when_told_to_stop() -> None:
    bench = Bench()
    await bench.put(schedule(policy=AT_MOST_ONCE))
    async with bench.running(RunOptions(ahead=5, drain=30)):
        await asyncio.sleep(6)
    assert bench.arrived == []
    async with bench.running():
        await asyncio.sleep(5)
    assert [arrival.late_ms for arrival in bench.arrived] == [pytest.approx(0, abs=60)]
    assert await bench.happened() == ["delivered"]


# Targets that are gone.


@in_virtual_time
async def test_a_target_that_is_gone_does_not_pause_a_schedule_that_was_put_again_meanwhile() -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY))

    async def put_again(delivery: Delivery) -> object:
        await bench.put(schedule(when=MINUTELY, host="new"))
        return Outcome(verdict="gone", status=410, detail="answered 410 Gone")

    await bench.put(schedule(when=MINUTELY, host="old"))
    bench.behave = put_again
    async with bench.running():
        await bench.until_arrived(1)
        await asyncio.sleep(1)
    assert (await bench.stored()).state == "active"


@in_virtual_time
async def test_a_one_shot_whose_target_is_gone_stays_finished() -> None:
    bench = Bench()
    await bench.put(schedule(host="old"))
    bench.behave = after(0, Outcome(verdict="gone", status=410))
    async with bench.running():
        await bench.until_arrived(1)
        await asyncio.sleep(1)
    assert (await bench.stored()).state == "finished"


# The end.


@in_virtual_time
async def test_a_handler_that_will_not_be_cancelled_is_left_behind_and_recorded(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.put(schedule())
    let_go = asyncio.Event()

    async def stubborn(delivery: Delivery) -> object:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return None

    bench.behave = stubborn
    async with bench.running(RunOptions(drain=1)):
        await bench.until_arrived(1)
    assert await bench.happened() == ["failed"]
    assert "u1/digest: the attempt was cancelled and does not end" in caplog.text
    let_go.set()
    await asyncio.sleep(0)


@in_virtual_time
async def test_a_handler_that_will_not_be_cancelled_holds_neither_its_place_nor_its_fire() -> None:
    bench = Bench()
    await bench.put(schedule(policy=Policy(timeout=5, attempts=1)), schedule("next", 11.0))
    let_go = asyncio.Event()

    async def behave(delivery: Delivery) -> object:
        while delivery.key == "digest" and not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()
        return None

    bench.behave = behave
    async with bench.running(RunOptions(in_flight=1)):
        await asyncio.sleep(50)
        assert bench.keys == ["digest", "next"]
        assert await bench.happened() == ["failed"]
        assert [fire.state for fire in await bench.fires("dead")] == ["dead"]
        (report,) = await bench.tickler.workers()
        assert (report.abandoned, report.counts["abandoned"], report.in_flight) == (1, 1, 0)
        let_go.set()


@pytest.mark.parametrize("stubborn", ["handler", "listener"])
@in_virtual_time
async def test_what_ends_after_it_was_cut_off_is_not_recorded_again(stubborn: str) -> None:
    bench = Bench()
    await bench.put(schedule())
    let_go = asyncio.Event()

    async def goes_on(delivery: Delivery, outcome: Outcome | None = None) -> None:
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()

    if stubborn == "handler":
        bench.behave = goes_on
    else:
        bench.tickler.on_dispatch(goes_on)
    running = asyncio.create_task(bench.tickler.run(RunOptions(drain=1)))
    await bench.until_arrived(1)
    bench.faults.away("fires.settle")
    bench.tickler.stop()
    await asyncio.sleep(4 if stubborn == "handler" else 6)  # 1 s to end, and 2 s each time that it is cancelled
    let_go.set()
    await asyncio.sleep(0.1)
    bench.faults.back()
    await running
    assert await bench.happened() == ["failed"]


@in_virtual_time
async def test_where_many_attempts_were_abandoned_no_more_begin_and_none_is_counted() -> None:
    bench = Bench()
    policy = Policy(timeout=5, attempts=1)
    await bench.put(*many(200, policy=policy), schedule("hook", 60.0, host="a"), schedule("other", 60.0, owner="u2"))
    let_go = asyncio.Event()

    async def behave(delivery: Delivery) -> object:
        while delivery.key.startswith("k") and not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()
        return None

    bench.behave = behave
    async with bench.running(RunOptions(per_owner=4)):
        await asyncio.sleep(100)
        assert 10 <= bench.at_once <= 13
        assert {"hook", "other"} <= set(bench.keys), "another target, and another owner"
        (report,) = await bench.tickler.workers()
        assert report.abandoned == bench.at_once
        still_open = await bench.fires()  # some may be leased just now, to be released at once
        waiting = [fire for fire in still_open if fire.worker is None]
        assert {fire.attempt for fire in waiting} == {0}
        assert {fire.reason for fire in waiting} == {f"released: {STUCK.detail}"}
        assert len(still_open) + len(await bench.fires("dead")) == 200
        let_go.set()
        await asyncio.sleep(30)
        assert len(set(bench.keys)) == 202


@in_virtual_time
async def test_what_an_abandoned_attempt_was_given_takes_memory_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_memory, "DecodingLimit", partial(DecodingLimit, 1))
    bench = Bench()
    large = [replace(each, payload=[[]] * 2_000) for each in many(2, policy=Policy(timeout=5, attempts=1))]
    await bench.put(*large)
    let_go = asyncio.Event()

    async def behave(delivery: Delivery) -> object:
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()
        return None

    bench.behave = behave
    async with bench.running():
        await asyncio.sleep(60)
        assert bench.keys == ["k00000"]
        (waiting,) = await bench.fires()
        assert (waiting.key, waiting.attempt, waiting.reason) == ("k00001", 0, f"released: {STUCK.detail}")
        let_go.set()
        await asyncio.sleep(15)
        assert await bench.happened("k00001") == ["delivered"]


@pytest.mark.parametrize("policy", [DEFAULT_POLICY, AT_MOST_ONCE], ids=["at least once", "at most once"])
@in_virtual_time
async def test_a_handler_that_raises_what_only_generators_do_has_failed(policy: Policy) -> None:
    bench = Bench()
    await bench.put(schedule(policy=policy))
    bench.behave = after(0, GeneratorExit())
    async with bench.running():
        await asyncio.sleep(10.5)
    assert (await bench.happened())[0] == "failed"
    assert {fire.worker for fire in await bench.fires()} <= {None}


INTERRUPTED = """
import asyncio
from deliver.at_work import AT_MOST_ONCE, Bench, after, schedule
from deliver.virtual_time import VirtualLoop

async def work():
    await bench.put(schedule(policy=AT_MOST_ONCE))
    bench.behave = after(0, KeyboardInterrupt())
    async with bench.running():
        await asyncio.sleep(60)

bench = Bench()
try:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())
except KeyboardInterrupt:
    (entry,) = asyncio.run(bench.history())
    print("interrupted:", entry.happened, entry.detail)
"""


def test_what_was_at_work_when_the_program_was_interrupted_is_remembered() -> None:
    """In a process of its own: pytest is a program too."""
    tests = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=tests, capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted: failed KeyboardInterrupt ended the attempt\n"


# What is said of it.


@in_virtual_time
async def test_what_is_given_up_is_said_and_of_very_many_the_first_and_how_many(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.put(*many(50, policy=Policy(attempts=1)))
    bench.behave = after(0, OSError("no way"))
    with caplog.at_level(logging.WARNING, "tickler.deliver"):
        async with bench.running():
            await bench.until_arrived(50)
    said = [record.message for record in caplog.records]
    assert sum("is dead after attempt 1: OSError: no way" in text for text in said) == 10
    assert "and 40 more are dead" in said


@in_virtual_time
async def test_a_settlement_that_no_store_can_take_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.put(*many(3))
    bench.faults.failing_once["fires.settle"] = [OverflowError("together"), None, OverflowError("alone"), None]
    async with bench.running():
        await bench.until_arrived(3)
        await asyncio.sleep(1)
    assert sorted([await bench.happened(f"k{n:05}") for n in range(3)]) == [[], ["delivered"], ["delivered"]]
    assert "cannot settle an attempt; its outcome is dropped" in caplog.text
