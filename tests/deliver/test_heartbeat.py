"""A worker's heartbeat, and what it does while its clock is off. In virtual time, on an in-memory store."""

from __future__ import annotations

import asyncio
import logging
import os

import msgspec
import pytest
from msgspec.structs import replace

from tickler import Cron, Delivery, HttpTarget, Policy, PythonTarget, RunOptions, StoreUnavailable, Tickler
from tickler.clock import MAX_OFFSET_MS, SystemClock
from tickler.deliver.worker import new_name
from tickler.records import Record
from tickler.records.kinds import WORKER
from tickler.records.worker_status import EVERY_S, STATUS_RETENTION_MS

from .at_work import Bench, after, many, schedule
from .virtual_time import START_MS, in_virtual_time

MINUTELY = Cron("* * * * *")
OFF = "not claiming: its clock is off"


class Life(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Return the report of a worker."""

    name: str
    doing: str
    started_at: int
    seen_at: int
    last_round_at: int | None
    last_claim_at: int | None
    in_flight: int
    queued: int
    counts: dict[str, int]
    clock_offset_ms: int
    delivers_to: list[str]
    lacks: dict[str, int]
    short_of: str | None
    abandoned: int


class Machine(Bench):
    """A bench on a machine whose clock people set; the store has a machine of its own, whose clock is right."""

    def __init__(self) -> None:
        super().__init__()
        self.off_ms = 0
        self.store.clock = self.clock.now_ms
        self.system_clock = SystemClock(lambda: (self.clock.now_ms() + self.off_ms) * 1_000_000, self._steady_ns)
        self.tickler = Tickler(self.store.store(), self.system_clock, self.settings)
        self.tickler.handler("work")(self._work)
        self.tickler.deliver_with(HttpTarget, self)

    def _steady_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1_000_000_000)


async def records(bench: Bench) -> list[Record]:
    return await bench.tickler.records.list(WORKER)


async def lives(bench: Bench) -> list[Life]:
    return [msgspec.convert(record.value, Life) for record in await records(bench)]


async def life(bench: Bench) -> Life:
    (only,) = await lives(bench)
    return only


def since_start(at_ms: int | None) -> float | None:
    return None if at_ms is None else (at_ms - START_MS) / 1000


# A sign of life.


@in_virtual_time
async def test_a_worker_says_every_20_seconds_that_it_works() -> None:
    bench, seen = Bench(), list[float | None]()
    await asyncio.sleep(7)
    async with bench.running():
        await asyncio.sleep(EVERY_S / 2)
        for _ in range(4):
            seen.append(since_start((await life(bench)).seen_at))
            await asyncio.sleep(EVERY_S)
        assert bench.faults.asked["records.put"] == 5
        assert (await life(bench)).started_at == START_MS + 7_000
    assert seen == [7, 27, 47, 67]


@in_virtual_time
async def test_it_says_what_it_has_done_and_has_in_its_hands() -> None:
    bench = Bench()
    await bench.put(*many(5, 1), schedule("fails", 1, Policy(attempts=1)))
    await bench.put(*many(3, 5, owner="u2"))

    async def behave(delivery: Delivery) -> object:
        if delivery.key == "fails":
            raise ConnectionError("no")
        await asyncio.sleep(3_600 if delivery.owner == "u2" else 0)
        return None

    bench.behave = behave
    async with bench.running(RunOptions(per_owner=2, drain=0)):
        await asyncio.sleep(EVERY_S + 1)
        said = await life(bench)
    assert said.doing == "working"
    assert (said.in_flight, said.queued) == (2, 1)
    assert (said.counts["claimed"], said.counts["delivered"], said.counts["failed"], said.counts["dead"]) == (9, 5, 1, 1)
    assert since_start(said.last_claim_at) == pytest.approx(5, abs=0.1)
    assert said.last_round_at is not None
    assert said.last_claim_at is not None
    assert said.last_claim_at <= said.last_round_at <= said.seen_at
    assert said.clock_offset_ms == 0


@pytest.mark.parametrize("fault", ["hangs", "is away"])
@in_virtual_time
async def test_it_beats_whatever_the_rounds_do(fault: str) -> None:
    """The report shows that the process is alive and that its rounds are not."""
    bench = Bench()
    await bench.put(schedule(when=10))
    async with bench.running():
        await asyncio.sleep(5)
        if fault == "hangs":
            bench.faults.held["fires.claim"] = asyncio.Event()
        else:
            bench.faults.away("fires.claim", "fires.lease", "fires.peek")
        await asyncio.sleep(100)
        said = await life(bench)
        assert since_start(said.seen_at) == 100
        last_round_s = since_start(said.last_round_at)
        assert last_round_s is not None
        assert last_round_s < 11
        bench.faults.back()
        for held in bench.faults.held.values():
            held.set()
        await bench.until_arrived(1)


@in_virtual_time
async def test_a_store_that_keeps_no_record_for_a_while_stops_no_delivery_and_gets_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    await bench.put(schedule(when=50))
    async with bench.running():
        await asyncio.sleep(30)
        bench.faults.away("records.put")
        await asyncio.sleep(40)
        assert since_start((await life(bench)).seen_at) == 20
        assert bench.keys == ["digest"]
        bench.faults.back()
        await asyncio.sleep(20)
        assert since_start((await life(bench)).seen_at) == 80
    assert caplog.text.count("no heartbeat: the store is away") == 2


@in_virtual_time
async def test_the_record_of_a_worker_that_is_not_heard_of_any_more_is_kept_for_a_day() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(21)
        (record,) = await records(bench)
        assert record.expires_at == START_MS + 20_000 + STATUS_RETENTION_MS
        assert STATUS_RETENTION_MS == 24 * 3_600_000


@in_virtual_time
async def test_every_worker_has_a_record_of_its_own_under_a_name_that_says_where_it_runs() -> None:
    bench = Bench()
    async with bench.running(), bench.running():
        await asyncio.sleep(1)
        names = [record.name for record in await records(bench)]
        assert len(set(names)) == 2
        assert all(f":{os.getpid()}:" in name for name in names)
    assert len({new_name() for _ in range(100)}) == 100


# The end.


@pytest.mark.parametrize("how", ["stopped", "cancelled"])
@in_virtual_time
async def test_a_worker_that_ends_says_that_it_stopped_after_what_was_in_flight(how: str) -> None:
    bench = Bench()
    await bench.put(schedule(when=10))
    bench.behave = after(5)
    task = asyncio.create_task(bench.tickler.run())
    await asyncio.sleep(12)
    if how == "stopped":
        bench.tickler.stop()
    else:
        task.cancel()
    await asyncio.sleep(1)
    assert (await life(bench)).doing == "working", "it still is"
    await asyncio.wait([task])
    said = await life(bench)
    assert (said.doing, said.in_flight, said.counts["delivered"]) == ("stopped", 0, 1)
    assert since_start(said.seen_at) == pytest.approx(15, abs=0.1)
    assert task.cancelled() is (how == "cancelled")


@in_virtual_time
async def test_a_worker_that_cannot_say_that_it_stopped_stops_all_the_same() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(1)
        bench.faults.away("records.put")
    assert (await life(bench)).doing == "working"


@in_virtual_time
async def test_a_worker_whose_deliverers_do_not_open_leaves_no_sign_of_life() -> None:
    bench = Bench()

    class Broken(Bench):
        async def open(self) -> None:
            raise OSError("no such network")

    bench.tickler.deliver_with(HttpTarget, Broken())
    with pytest.raises(OSError, match="no such network"):
        await bench.tickler.run()
    assert await records(bench) == []


@in_virtual_time
async def test_it_says_what_it_delivers_to_and_what_it_lacked_lately() -> None:
    bench = Bench()
    bench.tickler.handler("digest")(lambda delivery: None)
    await bench.put(replace(schedule(when=5.0), target=PythonTarget("missing")))
    async with bench.running():
        await asyncio.sleep(25)
        said = await life(bench)
    assert {"http", "python:digest", "python:echo", "python:work"} <= set(said.delivers_to)
    assert list(said.lacks) == ["python:missing"]
    assert 5 <= (since_start(said.lacks["python:missing"]) or 0) < 25


@in_virtual_time
async def test_a_tick_leaves_a_record_that_says_when_it_ended_and_what_it_did() -> None:
    bench = Bench()
    await bench.put(schedule(when=1))
    await asyncio.sleep(2)
    bench.behave = after(3)
    await bench.tickler.tick(30_000)
    said = await life(bench)
    assert (said.doing, said.counts["delivered"], since_start(said.started_at)) == ("stopped", 1, 2)
    assert since_start(said.seen_at) == pytest.approx(5, abs=0.1)


@in_virtual_time
async def test_ticks_that_have_ended_share_one_record_and_one_that_is_at_work_has_its_own() -> None:
    """A beat a minute would leave 1,440 of them a day."""
    bench = Bench()
    await bench.put(schedule(when=1))
    await asyncio.sleep(2)
    bench.behave = after(3)
    at_work = asyncio.create_task(bench.tickler.tick(30_000))
    await asyncio.sleep(1)
    assert [said.doing for said in await lives(bench)] == ["working"]
    await bench.tickler.tick()
    assert {said.doing for said in await lives(bench)} == {"working", "stopped"}
    await at_work
    for _ in range(3):
        await asyncio.sleep(60)
        await bench.tickler.tick()
    said = await life(bench)
    assert (said.name, said.doing, said.counts.get("delivered", 0)) == ("tick", "stopped", 0)
    assert since_start(said.seen_at) == pytest.approx(185, abs=0.5)
    assert since_start(said.last_claim_at) == pytest.approx(2, abs=0.1), "of the last one that found something"


@in_virtual_time
async def test_a_tick_on_a_store_that_is_away_says_so_and_claims_nothing() -> None:
    bench = Bench()
    await bench.put(schedule(when=1))
    await asyncio.sleep(2)
    bench.faults.away("records.put")
    with pytest.raises(StoreUnavailable, match="the store is away"):
        await bench.tickler.tick(30_000)
    assert (bench.arrived, bench.faults.asked["fires.claim"]) == ([], 0)


# Clocks.


@pytest.mark.parametrize("off_ms", [MAX_OFFSET_MS + 1, -MAX_OFFSET_MS - 1, 3_600_000])
@in_virtual_time
async def test_a_clock_that_is_set_far_off_stops_claiming_and_one_that_is_set_right_starts_it_again(
    caplog: pytest.LogCaptureFixture, off_ms: int
) -> None:
    machine = Machine()
    await machine.put(schedule(when=MINUTELY))
    async with machine.running():
        await machine.until_arrived(2)
        machine.off_ms = off_ms
        await asyncio.sleep(EVERY_S + 1)
        said = await life(machine)
        assert (said.doing, said.clock_offset_ms) == (OFF, -off_ms)
        claimed = machine.faults.asked["fires.claim"]
        await asyncio.sleep(200)
        assert (len(machine.arrived), machine.faults.asked["fires.claim"]) == (2, claimed)
        machine.off_ms = 0
        await asyncio.sleep(EVERY_S)
        assert len(machine.arrived) == 3, "the latest of those that were missed, as the policy says"
        assert (await life(machine)).doing == "working"
        await machine.until_arrived(4)
    assert all(arrival.late_ms < 100 for arrival in (*machine.arrived[:2], machine.arrived[3]))
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    consequence = "the worker claims nothing until the clock is corrected"
    assert f"this machine's clock is {off_ms:+d} ms off the store's: {consequence}" in errors
    assert caplog.text.count("the worker resumes claiming") == 1


@pytest.mark.parametrize("off_ms", [MAX_OFFSET_MS, -MAX_OFFSET_MS, 1_999])
@in_virtual_time
async def test_a_clock_that_is_not_so_far_off_claims_by_the_stores(off_ms: int) -> None:
    machine = Machine()
    machine.off_ms = off_ms
    await machine.tickler.open()
    await machine.put(schedule(when=MINUTELY))
    async with machine.running():
        await machine.until_arrived(2)
        said = await life(machine)
        assert (said.doing, said.clock_offset_ms) == ("working", -off_ms)
    assert [since_start(arrival.nominal_at) for arrival in machine.arrived] == [60, 120]
    assert all(0 <= arrival.late_ms <= 5 for arrival in machine.arrived)


@in_virtual_time
async def test_a_worker_that_begins_with_a_clock_far_off_claims_nothing_from_the_first() -> None:
    machine = Machine()
    await machine.put(schedule(when=1))
    await asyncio.sleep(2)
    machine.off_ms = 3_600_000
    await machine.tickler.open()
    async with machine.running():
        await asyncio.sleep(100)
        assert (machine.arrived, machine.faults.asked["fires.claim"], machine.faults.asked["fires.lease"]) == ([], 0, 0)
        assert (await life(machine)).doing == OFF


@in_virtual_time
async def test_what_was_in_flight_when_the_clock_was_set_ends_and_keeps_its_lease() -> None:
    machine = Machine()
    await machine.put(schedule(policy=Policy(timeout=600)))
    machine.behave = after(200)
    async with machine.running(RunOptions(lease=5)):
        await machine.until_arrived(1)
        machine.off_ms = -3_600_000
        await asyncio.sleep(100)
        assert (await life(machine)).doing == OFF
        (fire,) = await machine.fires()
        assert fire.deliver_after is not None
        assert fire.deliver_after > machine.clock.now_ms()
        await asyncio.sleep(120)
        assert await machine.happened() == ["delivered"]


@in_virtual_time
async def test_a_tick_whose_clock_is_far_off_claims_nothing_and_says_that_something_is_left() -> None:
    machine = Machine()
    await machine.put(schedule(when=1))
    await asyncio.sleep(2)
    machine.off_ms = 3_600_000
    summary = await machine.tickler.tick(10_000)
    assert (summary.claimed, summary.left, machine.arrived) == (0, True, [])
    machine.off_ms = 0
    summary = await machine.tickler.tick(10_000)
    assert (summary.claimed, summary.delivered, summary.left) == (1, 1, False)


@in_virtual_time
async def test_a_store_without_a_clock_of_its_own_leaves_this_machines_alone() -> None:
    machine = Machine()
    machine.store.clock = None
    machine.off_ms = 3_600_000
    await machine.put(schedule(when=3_610))  # as this machine's clock has it: an hour and ten seconds from the start
    async with machine.running():
        await asyncio.sleep(11)
        said = await life(machine)
    assert (machine.keys, said.doing, said.clock_offset_ms) == (["digest"], "working", 0)


@in_virtual_time
async def test_a_store_that_does_not_say_the_time_for_a_while_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    await machine.put(schedule(when=50))

    def away() -> int:
        raise StoreUnavailable("no answer")

    async with machine.running():
        await asyncio.sleep(30)
        machine.store.clock = away
        await machine.until_arrived(1)
        machine.store.clock = machine.clock.now_ms
        await asyncio.sleep(EVERY_S)
        assert (await life(machine)).doing == "working"
    assert caplog.text.count("no heartbeat: no answer") == 1
