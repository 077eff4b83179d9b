"""Clocks that are wrong, and clocks that are set while workers work."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial

import pytest

from tickler import At, Delivery, Every, ManualClock, Policy, PythonTarget, Schedule, Tickler, connect
from tickler.clock import SystemClock, to_datetime
from under_fire.accounts import Due, all_entries
from under_fire.processes import until
from under_fire.running import running
from under_fire.sink import Arrival
from under_fire.target_windows import Declared, Run, check_windows, declared
from under_fire.watched import watched

NOW_MS = 1_921_406_400_000  # a Wednesday
HOUR_S = 3_600
LEASE_MS = 5_000
EARLY_MS = 200  # as exactly as a busy machine can tell the store's clock
PROMPTLY_MS = 4_500  # less than the clocks below are off


def one_shot(key: str, at_ms: int, handler: str = "count") -> Schedule:
    policy = Policy(backoff=[0.2], timeout=60)
    return Schedule(owner="u1", key=key, when=At(to_datetime(at_ms)), target=PythonTarget(handler), policy=policy)


class SetClock:
    """A machine's clock that a test sets."""

    def __init__(self, off_s: float = 0) -> None:
        self.off_s = off_s
        self.told_ms: set[int] = set()

    def __call__(self) -> int:
        now_ns = time.time_ns() + round(self.off_s * 1e9)
        self.told_ms.add(now_ns // 1_000_000)
        return now_ns


async def has_beaten(tickler: Tickler) -> bool:
    return bool(await tickler.records.list("worker"))


async def test_a_clock_that_jumps_neither_steals_a_lease_nor_fires_twice(sqlite_url: str) -> None:
    """SQLite has no clock of its own: what the machine's says is all that a worker has."""
    machine = SetClock()
    go_on = asyncio.Event()
    begun: Counter[str] = Counter()
    arrivals: list[Arrival] = []
    load: list[Declared] = []

    def arrived(fire: Delivery) -> None:
        begun[fire.key] += 1
        # What was claimed just before the clock was set back is no earlier for that: it counts by what the clock told then.
        at_ms = max(machine() // 1_000_000, *(fires.claimed_at.get(fire.id, 0) for _, fires in workers))
        arrivals.append(Arrival(fire.id, fire.attempt, fire.owner, fire.key, fire.nominal_at, at_ms, 200))

    async with AsyncExitStack() as stack:
        workers = [watched(sqlite_url, SystemClock(wall_ns=machine)) for _ in range(2)]
        for tickler, _ in workers:
            await stack.enter_async_context(tickler)

            @tickler.handler("slow")
            async def slow(fire: Delivery) -> None:
                arrived(fire)
                await go_on.wait()

            @tickler.handler("count")
            async def count(fire: Delivery) -> None:
                arrived(fire)

        tickler = workers[0][0]
        now_ms = tickler.now_ms()
        for schedule in (
            one_shot("slow", now_ms + 500, "slow"),
            one_shot("in half an hour", now_ms + 1_800_000),
            # So that both look every second, and not only when there is something for them.
            Schedule(owner="u1", key="often", when=Every(seconds=1), target=PythonTarget("count")),
        ):
            load.append(declared(await tickler.schedules.put(schedule)))
        await stack.enter_async_context(running(*(tickler for tickler, _ in workers)))
        await until("a fire is in flight", lambda: begun["slow"] == 1)
        (slow_fire,) = (await tickler.fires.list(key="slow", owner="u1")).items

        machine.off_s = HOUR_S
        await until("what is due by this clock is delivered", lambda: begun["in half an hour"] == 1)
        takeovers = [fires.takeovers for _, fires in workers]
        await until(
            "both take over from the dead again",
            lambda: all(fires.takeovers > number + 1 for number, (_, fires) in zip(takeovers, workers, strict=True)),
        )
        assert begun["slow"] == 1

        machine.off_s = 0

        async def lease_ends_soon() -> bool:
            fire = await tickler.fires.get(slow_fire.id)
            return fire is not None and fire.deliver_after is not None and fire.deliver_after <= tickler.now_ms() + LEASE_MS

        await until("the lease is kept by the clock as it is", lease_ends_soon)
        machine.off_s = HOUR_S
        load.append(declared(await tickler.schedules.put(one_shot("last", tickler.now_ms() + 1_000))))
        await until("the last is delivered", lambda: begun["last"] == 1)
        looks = [fires.looks for _, fires in workers]
        await until(
            "both have looked again",
            lambda: all(fires.looks > number + 1 for number, (_, fires) in zip(looks, workers, strict=True)),
        )

        go_on.set()

        async def slow_is_delivered() -> bool:
            return await tickler.fires.get(slow_fire.id) is None

        await until("it is delivered", slow_is_delivered)
        await tickler.schedules.pause("u1", "often")

        async def nothing_is_open() -> bool:
            return not (await tickler.fires.list()).items

        await until("all that was claimed is settled", nothing_is_open)
        for key in ("slow", "in half an hour", "last"):
            assert [entry.happened for entry in (await tickler.fires.history("u1", key)).items] == ["delivered"]
            assert begun[key] == 1
        entries = await all_entries(tickler, [Due(each.owner, each.key, 0) for each in load])
        often = [entry for entry in entries if entry.key == "often" and entry.happened != "skipped"]
        assert len({entry.nominal_at for entry in often}) == len(often)
        assert all(machine.told_ms.issuperset(fires.claimed_at.values()) for _, fires in workers)
        paused_after = max(entry.nominal_at for entry in often)
        check_windows(Run(declared=load, arrivals=arrivals, entries=entries, until=paused_after, lateness_ms=HOUR_S * 1000))


@pytest.mark.parametrize("off_s", [HOUR_S, -HOUR_S])
async def test_a_worker_whose_clock_is_an_hour_off_claims_nothing(postgres_url: str, off_s: int) -> None:
    wrong, wrong_fires = watched(postgres_url, SystemClock(wall_ns=SetClock(off_s)))
    right, right_fires = watched(postgres_url, SystemClock())
    delivered: list[Delivery] = []
    async with wrong, right:
        wrong.handler("count")(delivered.append)
        right.handler("count")(delivered.append)
        due_at = right.now_ms() + 1_000
        await right.schedules.put(one_shot("due", due_at))
        await until("it is due", lambda: right.now_ms() > due_at)

        async with running(wrong):

            async def says_so() -> bool:
                doing = [record.value for record in await right.records.list("worker") if isinstance(record.value, dict)]
                return any(
                    "not claiming" in each["doing"] and abs(each["clock_offset_ms"] + off_s * 1000) < 1_000 for each in doing
                )

            await until("its record says that it claims nothing", says_so)
            assert not delivered

            async with running(right):
                await until("another delivers it", lambda: bool(delivered))

    assert wrong_fires.looks == 0
    assert not wrong_fires.taken
    assert [claim.nominal_at for claim in right_fires.taken] == [due_at]


@pytest.mark.parametrize("off_s", [5, -5])
async def test_a_worker_whose_clock_is_five_seconds_off_warns_and_is_on_time(
    postgres_url: str, off_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    arrived: dict[int, int] = {}
    with caplog.at_level(logging.WARNING, "tickler.clock"):
        async with connect(postgres_url, clock=SystemClock(wall_ns=SetClock(off_s))) as tickler:

            @tickler.handler("count")
            async def count(fire: Delivery) -> None:
                arrived[fire.nominal_at] = time.time_ns() // 1_000_000

            due_at = time.time_ns() // 1_000_000 + 2_000
            await tickler.schedules.put(one_shot("due", due_at))
            async with running(tickler):
                await until("it is delivered", lambda: bool(arrived))

    assert -EARLY_MS <= arrived[due_at] - due_at < PROMPTLY_MS
    assert "check time synchronisation here" in caplog.text


async def test_a_clock_that_is_set_while_a_worker_works_makes_it_neither_early_nor_late(postgres_url: str) -> None:
    machine = SetClock()
    arrived: dict[str, int] = {}
    async with connect(postgres_url, clock=SystemClock(wall_ns=machine)) as tickler:

        @tickler.handler("count")
        async def count(fire: Delivery) -> None:
            arrived[fire.key] = time.time_ns() // 1_000_000

        now_ms = time.time_ns() // 1_000_000
        await tickler.schedules.put(one_shot("in half an hour", now_ms + 1_800_000))
        async with running(tickler):
            await until("it has looked at the store's clock", lambda: has_beaten(tickler))  # it does so every 20 s
            for key, off_s in (("forward", HOUR_S), ("back", -HOUR_S), ("right", 0)):
                machine.off_s = off_s
                due_at = time.time_ns() // 1_000_000 + 1_000
                await tickler.schedules.put(one_shot(key, due_at))
                await until("it is delivered", partial(arrived.__contains__, key))
                assert -EARLY_MS <= arrived[key] - due_at < PROMPTLY_MS
    assert list(arrived) == ["forward", "back", "right"]


async def test_how_late_a_fire_was_is_in_the_history(any_url: str) -> None:
    clock = ManualClock(NOW_MS)
    async with connect(any_url, clock=clock) as tickler:
        tickler.handler("count")(lambda fire: None)
        await tickler.schedules.put(one_shot("late", NOW_MS + 1_000))
        clock.set(NOW_MS + 91_000)

        summary = await tickler.tick(5_000)

        (entry,) = (await tickler.fires.history("u1", "late")).items
        assert summary.delivered == 1
        assert (entry.happened, entry.late_ms) == ("delivered", 90_000)
