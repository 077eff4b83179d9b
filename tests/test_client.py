"""Tickler itself: fires by hand, what is registered with it, runs and ticks that begin and end."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from deliver.at_work import AT_MOST_ONCE, Bench, after, many, schedule
from deliver.virtual_time import START_MS, in_virtual_time

from tickler import (
    Cron,
    Delivery,
    HttpTarget,
    InvalidInput,
    InvalidSchedule,
    Outcome,
    Policy,
    PythonTarget,
    RunOptions,
    Schedule,
    ScheduleNotFound,
    StoreUnavailable,
    Tickler,
    connect,
)
from tickler.clock import ManualClock
from tickler.model.fire import fire_id

MINUTELY = Cron("* * * * *")
TIMEOUT_S = 20.0


async def waited_for(task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        await task


# Fires by hand.


@pytest.mark.parametrize("state", ["active", "paused", "finished"])
@in_virtual_time
async def test_a_schedule_is_fired_out_of_turn_whatever_its_state_and_keeps_its_turn(state: str) -> None:
    bench = Bench()
    await bench.put(schedule(when=5 if state == "finished" else MINUTELY))
    if state == "paused":
        await bench.tickler.schedules.pause("u1", "digest")
    await asyncio.sleep(10)
    await bench.tickler.tick()
    before = await bench.stored()
    assert before.state == state
    delivered, now_ms = len(bench.arrived), bench.clock.now_ms()

    fire = await bench.tickler.trigger("u1", "digest")

    assert fire.id == fire_id("u1", "digest", now_ms, triggered=True)
    assert (fire.nominal_at, fire.opened_at, fire.deliver_after, fire.attempt) == (now_ms, now_ms, now_ms, 0)
    assert await bench.tickler.fires.get(fire.id) == fire
    assert (await bench.tickler.tick()).delivered == 1
    assert (bench.arrived[delivered].nominal_at, bench.arrived[delivered].attempt) == (now_ms, 1)
    assert await bench.stored() == before


@in_virtual_time
async def test_what_is_triggered_several_times_within_a_millisecond_fires_as_often() -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY))
    fires = [await bench.tickler.trigger("u1", "digest") for _ in range(3)]
    assert [fire.nominal_at - START_MS for fire in fires] == [0, 1, 2]
    await asyncio.sleep(1)
    assert (await bench.tickler.tick()).delivered == 3


@pytest.mark.parametrize("fails", [False, True])
@in_virtual_time
async def test_what_is_delivered_at_most_once_is_tried_once_when_it_is_triggered_too(fails: bool) -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY, policy=AT_MOST_ONCE))
    bench.behave = after(0, ConnectionError("no") if fails else None)
    fire = await bench.tickler.trigger("u1", "digest")
    for _ in range(3):
        await bench.tickler.tick()
        await asyncio.sleep(10)
    assert len(bench.arrived) == 1
    assert [dead.id for dead in await bench.fires("dead")] == ([fire.id] if fails else [])


async def test_a_schedule_that_is_not_there_or_has_no_target_cannot_be_triggered() -> None:
    async with connect("memory://", clock=ManualClock(START_MS)) as t:
        with pytest.raises(ScheduleNotFound, match="no schedule u1/digest"):
            await t.trigger("u1", "digest")
        await t.schedules.put(Schedule(owner="u1", key="digest", when=MINUTELY))
        with pytest.raises(InvalidSchedule, match=r"^target: u1/digest has no target"):
            await t.trigger("u1", "digest")
        for owner, key, field in (("", "digest", "owner"), ("u1", "", "key"), (None, "digest", "owner")):
            with pytest.raises(InvalidSchedule, match=f"^{field}: "):
                await t.trigger(owner, key)  # type: ignore[arg-type]  # that is the point
        assert (await t.fires.list()).items == []


@in_virtual_time
async def test_a_schedule_that_is_deleted_while_it_is_triggered_is_not_found() -> None:
    bench = Bench()
    await bench.put(schedule(when=MINUTELY))
    bench.faults.held["schedules.get"] = asyncio.Event()
    triggering = asyncio.create_task(bench.tickler.trigger("u1", "digest"))
    await bench.faults.until_asked("schedules.get")
    await bench.tickler.schedules.delete("u1", "digest")
    bench.faults.held.pop("schedules.get").set()
    with pytest.raises(ScheduleNotFound):
        await triggering
    assert await bench.fires() == []


# What is registered.


def test_decorators_leave_functions_as_they_are() -> None:
    t = connect("memory://")

    def plain(fire: Delivery) -> None: ...

    async def listener(delivery: Delivery, outcome: Outcome) -> None: ...

    assert t.handler("plain")(plain) is plain
    assert t.on_dispatch(listener) is listener
    with pytest.raises(InvalidInput, match="handler 'plain' is registered already"):
        t.handler("plain")(plain)


class Deliverer:
    """Says what is done with it."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.fails = False

    async def open(self) -> None:
        if self.fails:
            raise StoreUnavailable("no network")
        self.did.append("open")

    async def deliver(self, delivery: Delivery, target: HttpTarget) -> Outcome:
        await asyncio.sleep(3)
        self.did.append(delivery.key)
        return Outcome(verdict="delivered", status=202, answer=target.url)

    async def close(self) -> None:
        self.did.append("close")


@in_virtual_time
async def test_a_deliverer_of_your_own_takes_the_place_of_ours_and_is_open_for_as_long_as_a_run() -> None:
    bench, own = Bench(), Deliverer()
    bench.tickler.deliver_with(HttpTarget, own)
    await bench.put(schedule("a", 1, host="h"), schedule("b", 2, host="h"), schedule("c", 20, host="h"))
    async with bench.running():
        await asyncio.sleep(3)  # both are still in flight
    assert own.did == ["open", "a", "b", "close"]
    (entry,) = await bench.history("a")
    assert (entry.status, entry.answer) == (202, "https://h.example/hook")
    await asyncio.sleep(20)
    assert (await bench.tickler.tick()).delivered == 1
    assert own.did[4:] == ["open", "c", "close"]
    assert bench.arrived == []


@in_virtual_time
async def test_a_deliverer_that_does_not_open_lets_nothing_be_claimed() -> None:
    bench, own = Bench(), Deliverer()
    own.fails = True
    bench.tickler.deliver_with(HttpTarget, own)
    await bench.put(schedule("a", 1, host="h"))
    await asyncio.sleep(2)
    for begin in (bench.tickler.run, bench.tickler.tick):
        with pytest.raises(StoreUnavailable, match="no network"):
            await begin()
    assert bench.faults.asked["fires.claim"] == 0
    bench.tickler.stop()  # and nothing is left that could be stopped


@in_virtual_time
async def test_listeners_hear_of_every_attempt_of_runs_and_ticks_and_may_come_late() -> None:
    bench = Bench()
    heard: list[tuple[str, str, int]] = []

    def note(name: str) -> None:
        bench.tickler.on_dispatch(lambda delivery, outcome: heard.append((name, delivery.key, outcome.status)))

    note("first")
    bench.behave = after(0, ConnectionError("refused"))  # no answer: status 0
    await bench.put(schedule("a", 1, host="h"), schedule("b", 2, host="h"), schedule("c", 3, host="h"))
    await asyncio.sleep(1)
    await bench.tickler.tick()
    bench.behave = after(0, Outcome(verdict="delivered", status=204))
    async with bench.running(RunOptions(lease=60)):
        await asyncio.sleep(1)
        note("second")
        await asyncio.sleep(1.5)
    assert [each for each in heard if each[1] != "a"] == [("first", "b", 204), ("first", "c", 204), ("second", "c", 204)]
    assert heard[0] == ("first", "a", 0)


# Runs.


@in_virtual_time
async def test_one_stop_ends_all_runs_and_another_run_may_follow() -> None:
    bench = Bench()
    await bench.put(*many(20, 1), schedule("later", 30))
    runs = [asyncio.create_task(bench.tickler.run()) for _ in range(3)]
    await bench.until_arrived(20)
    bench.tickler.stop()
    bench.tickler.stop()
    await asyncio.gather(*runs)
    await asyncio.sleep(30)
    assert len(bench.arrived) == 20
    async with bench.running():
        await bench.until_arrived(21)
    assert bench.keys[20] == "later"
    assert len(set(bench.keys)) == 21


@in_virtual_time
async def test_a_stop_is_for_what_runs_and_not_for_what_begins_later() -> None:
    bench = Bench()
    bench.tickler.stop()
    await bench.put(schedule())
    async with bench.running() as task:
        await bench.until_arrived(1)
        assert not task.done()


@in_virtual_time
async def test_a_run_that_is_cancelled_ends_what_it_began_and_releases_the_rest() -> None:
    bench = Bench()
    await bench.put(*many(5, 1))
    bench.behave = after(4)
    task = asyncio.create_task(bench.tickler.run(RunOptions(in_flight=2)))
    await bench.until_arrived(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.clock.now_ms() - START_MS == pytest.approx(5_000, abs=100)
    assert [await bench.happened(key) for key in bench.keys] == [["delivered"], ["delivered"]]
    assert [(fire.worker, fire.attempt) for fire in await bench.fires()] == [(None, 0)] * 3


def test_a_run_that_is_over_leaves_nothing_to_stop_or_to_wake() -> None:
    """Not even after its loop was closed."""
    t = connect("memory://")

    async def run() -> None:
        async with t:
            task = asyncio.create_task(t.run())
            await asyncio.sleep(0)
            t.stop()
            await waited_for(task)

    async def put() -> str:
        async with t:
            return (await t.schedules.put(Schedule(owner="u1", key="digest", when=MINUTELY, target="https://h.example"))).state

    asyncio.run(run())
    t.stop()
    assert asyncio.run(put()) == "active"


async def test_a_run_can_be_stopped_from_another_thread() -> None:
    handled = threading.Event()
    async with connect("memory://") as t:
        t.handler("work")(lambda fire: handled.set())
        await t.schedules.put(Schedule(owner="u1", key="digest", when=MINUTELY, target=PythonTarget("work")))
        task = asyncio.create_task(t.run())
        await t.trigger("u1", "digest")
        assert await asyncio.to_thread(handled.wait, TIMEOUT_S)
        await asyncio.to_thread(t.stop)
        await waited_for(task)
        assert [entry.happened for entry in (await t.fires.history("u1", "digest")).items] == ["delivered"]


async def test_a_handler_may_stop_the_run_it_is_in() -> None:
    async with connect("memory://") as t:
        t.handler("work")(lambda fire: t.stop())
        await t.schedules.put(Schedule(owner="u1", key="digest", when=MINUTELY, target=PythonTarget("work")))
        await t.trigger("u1", "digest")
        await waited_for(asyncio.create_task(t.run()))
        assert [entry.happened for entry in (await t.fires.history("u1", "digest")).items] == ["delivered"]


async def test_a_run_whose_store_is_closed_says_so_and_goes_on_when_it_is_opened_again(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    handled = asyncio.Event()
    t = await connect(sqlite_url).open()

    @t.handler("work")
    async def work(fire: Delivery) -> None:
        handled.set()

    task = asyncio.create_task(t.run())
    try:
        await t.close()
        async with asyncio.timeout(TIMEOUT_S):
            while "is closed" not in caplog.text:
                await asyncio.sleep(0.01)
        assert not task.done()
        await t.open()
        await t.schedules.put(Schedule(owner="u1", key="digest", when=MINUTELY, target=PythonTarget("work")))
        await t.trigger("u1", "digest")
        await asyncio.wait_for(handled.wait(), TIMEOUT_S)
    finally:
        t.stop()
        await waited_for(task)
        await t.close()


@in_virtual_time
async def test_a_run_that_is_stopped_while_the_store_is_away_waits_for_it_no_longer_than_it_must() -> None:
    bench = Bench()
    await bench.put(*many(5, 1))
    bench.behave = after(3_600)
    task = asyncio.create_task(bench.tickler.run(RunOptions(in_flight=2, drain=1)))
    await bench.until_arrived(2)
    bench.faults.away("fires.claim", "fires.lease", "fires.peek", "fires.settle", "fires.extend", "records.put")
    bench.tickler.stop()
    before = bench.clock.now_ms()
    await task
    assert bench.clock.now_ms() - before == pytest.approx(6_000, abs=100), "the drain, and a moment to write down what came of it"
    bench.faults.back()
    assert len(await bench.fires()) == 5, "what could not be released is taken over when the leases end"


@pytest.mark.parametrize("how", ["declare", "resume", "update"])
@in_virtual_time
async def test_every_change_of_schedules_in_this_process_wakes_its_runs(how: str) -> None:
    """Otherwise an idle run would find it a poll later only."""
    bench = Bench()
    schedules = bench.tickler.schedules
    asleep = schedule(when=Cron("0 0 1 1 *"))
    soon = schedule(when=100.02)
    if how != "declare":
        await schedules.put(soon if how == "resume" else asleep)
    if how == "resume":
        await schedules.pause("u1", "digest")
    async with bench.running():
        await asyncio.sleep(100)
        if how == "declare":
            await schedules.declare("u1", [soon])
        elif how == "resume":
            await schedules.resume("u1", "digest")
        else:
            await schedules.update(soon, version=1)
        await bench.until_arrived(1)
    assert bench.arrived[0].late_ms <= 5


# Ticks.


@pytest.mark.parametrize("budget_ms", [0, -1, True, 1.5, "50000", None, 86_400_001, timedelta(seconds=5)], ids=repr)
async def test_a_budget_that_is_none_is_refused_and_nothing_is_claimed(budget_ms: int) -> None:
    async with connect("memory://") as t:
        with pytest.raises(InvalidInput, match=r"^budget_ms: .* milliseconds up to a day: pass 50000 for 50 s"):
            await t.tick(budget_ms)
        assert await t.records.list("worker") == []


@in_virtual_time
async def test_a_tick_with_nothing_to_do_is_over_at_once() -> None:
    bench = Bench()
    await bench.put(schedule(when=3_600))
    summary = await bench.tickler.tick()
    assert (summary.claimed, summary.delivered, summary.failed, summary.dead, summary.left) == (0, 0, 0, 0, False)
    assert summary.duration_ms < 50


@in_virtual_time
async def test_a_tick_counts_what_was_delivered_what_failed_and_what_is_dead() -> None:
    bench = Bench()
    await bench.put(*many(4, 1), *(schedule(f"dies{n}", 1, Policy(attempts=1)) for n in range(2)), schedule("fails", 1))

    async def behave(delivery: Delivery) -> object:
        if not delivery.key.startswith("k"):
            raise ConnectionError("no")
        return None

    bench.behave = behave
    await asyncio.sleep(1)
    summary = await bench.tickler.tick()
    assert (summary.claimed, summary.delivered, summary.failed, summary.dead, summary.left) == (7, 4, 3, 2, False)


@in_virtual_time
async def test_a_tick_delivers_one_after_the_other_what_waits_for_each_other() -> None:
    """The end of one makes the next due, within the same tick."""
    bench = Bench()
    await bench.put(schedule(when=MINUTELY, policy=Policy(overlap="wait", missed="all")))
    await asyncio.sleep(305)
    bench.behave = after(1)
    summary = await bench.tickler.tick()
    assert (summary.delivered, summary.left, bench.most_at_once) == (5, False, 1)
    assert [arrival.nominal_at for arrival in bench.arrived] == [START_MS + n * 60_000 for n in range(1, 6)]


@pytest.mark.parametrize(("options", "ends_s"), [(None, 6), (RunOptions(drain=2), 3), (RunOptions(drain=0), 1)])
@in_virtual_time
async def test_what_is_in_flight_when_the_budget_is_spent_has_the_drain_to_end(options: RunOptions | None, ends_s: float) -> None:
    bench = Bench()
    await bench.put(schedule(when=1))
    await asyncio.sleep(1)
    bench.behave = after(3_600)
    summary = await bench.tickler.tick(1_000, options)
    assert summary.duration_ms == pytest.approx(ends_s * 1_000, abs=100)
    (entry,) = await bench.history()
    assert entry.happened == "failed"
    (fire,) = await bench.fires()
    assert (fire.worker, fire.attempt) == (None, 1)


@in_virtual_time
async def test_a_tick_beside_a_run_delivers_nothing_twice_and_is_not_ended_by_its_stop() -> None:
    bench = Bench()
    await bench.put(*many(300, 1))
    bench.behave = after(2)
    await asyncio.sleep(1)
    run = asyncio.create_task(bench.tickler.run(RunOptions(in_flight=20, queued=40)))  # leaves some for others
    tick = asyncio.create_task(bench.tickler.tick())
    await bench.until_arrived(50)
    bench.tickler.stop()
    await run
    assert not tick.done()
    await tick
    assert len(bench.arrived) == len(set(bench.keys)) == 300
    assert await bench.fires() == []


def test_the_time_is_that_of_the_clock_that_was_given() -> None:
    clock = ManualClock(START_MS)
    t: Tickler = connect("memory://", clock=clock)
    clock.advance(5)
    assert t.now_ms() == START_MS + 5_000
