"""The doctor, on every store: each fault is made for real, found with an example and a remedy, repaired, and gone."""

from __future__ import annotations

import asyncio
import re
import time
import zoneinfo
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from conformance import faults
from tickler import (
    At,
    Cron,
    Delivery,
    Every,
    GiveUp,
    IndexRow,
    ManualClock,
    Policy,
    PythonTarget,
    Schedule,
    SqsTarget,
    StoredSchedule,
    Tickler,
    connect,
)
from tickler.clock import SystemClock
from tickler.index.advance import ROW_FORMAT
from tickler.observe import Diagnosis, Finding
from tickler.observe.checks.snapshot import MAX_COUNTED
from tickler.observe.doctor import DEEP, PASSED_MESSAGES, QUICK, name_of
from tickler.records.worker_status import WorkerReport, report
from tickler.stores.dynamodb import DynamodbStore
from tickler.stores.optional import FindsOrphans
from tickler.when import tzdata_version

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
DIGEST = PythonTarget("digest")
REPAIR = "`tickler doctor --repair`"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect(any_url, clock=clock, create=True, keep_history=timedelta(days=1)) as tickler:
        tickler.handler("digest")(lambda fire: None)
        yield tickler


@pytest.fixture
async def memory(clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect("memory://", clock=clock) as tickler:
        yield tickler


async def put(t: Tickler, key: str = "digest", **fields: object) -> StoredSchedule:
    given: dict[str, object] = {"owner": "u1", "key": key, "when": "0 * * * *", "target": DIGEST, **fields}
    return await t.schedules.put(Schedule(**given))  # type: ignore[arg-type]  # any field of a schedule


async def speak(t: Tickler, name: str = "w1", **fields: object) -> None:
    """A worker says of itself what a heartbeat would."""
    now_ms = t.now_ms()
    given: dict[str, object] = {"doing": "working", "started_at": now_ms, "seen_at": now_ms, "last_round_at": now_ms, **fields}
    await report(t._store.records, WorkerReport(name=name, **given))  # type: ignore[arg-type]  # any field of a report


@asynccontextmanager
async def at_work(t: Tickler) -> AsyncIterator[None]:
    """A real worker, that has spoken."""
    running = asyncio.create_task(t.run())
    try:
        await until(lambda: heard_of(t))
        yield
    finally:
        t.stop()
        await running


async def heard_of(t: Tickler) -> bool:
    return bool(await t._store.records.list("worker", now_ms=t.now_ms()))


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.02)


def of(diagnosis: Diagnosis, check: str) -> Finding:
    (found,) = (finding for finding in diagnosis.findings if finding.check == check)
    return found


def checks(diagnosis: Diagnosis) -> list[str]:
    return [finding.check for finding in diagnosis.findings]


async def state(t: Tickler, key: str = "digest") -> StoredSchedule:
    found = await t.schedules.get("u1", key)
    assert found is not None
    return found


# Healthy stores.


async def test_a_store_in_which_all_is_well_has_no_findings(t: Tickler, clock: ManualClock) -> None:
    assert (await t.doctor(deep=True, repair=True)).findings == []
    await put(t)
    await put(t, "paris", when="30 9 * * *", tz="Europe/Paris", policy=Policy(spread=600))
    await put(t, "bounded", starts_at=NOW_MS + DAY_MS, ends_at=NOW_MS + 2 * DAY_MS)
    await put(t, "once", when=At("2030-11-20T13:00:00Z"), delete_after=False)
    await put(t, "mine", target=None)
    await put(t, "paused", enabled=False)
    await t.index.upsert(IndexRow("u1", "alone", Cron("0 * * * *"), NOW_MS + 1))
    clock.advance(timedelta(hours=1))
    assert (await t.tick()).delivered == 2
    await speak(t, last_claim_at=clock.now_ms())
    clock.advance(timedelta(seconds=40))
    for deep in (False, True):
        diagnosis = await t.doctor(deep=deep)
        names = list(PASSED_MESSAGES)[0 if deep else len(DEEP) :]
        assert diagnosis == Diagnosis(at=clock.now_ms(), deep=deep, findings=[], passed=names)
        assert diagnosis.healthy
    assert {each.state for each in (await t.schedules.list()).items} == {"active", "paused", "finished"}


async def test_rows_that_others_claim_from_the_index_need_no_worker_and_are_not_overdue(t: Tickler, clock: ManualClock) -> None:
    await t.index.upsert(IndexRow("u1", "alone", Cron("0 * * * *"), NOW_MS - DAY_MS))
    await put(t, "mine", target=None)
    clock.advance(timedelta(hours=2))
    await speak(t)
    assert (await t.doctor(deep=True)).findings == []


# Schedules and the index.


async def test_schedules_that_are_not_in_the_index_are_put_back(t: Tickler, clock: ManualClock) -> None:
    await put(t, "a", policy=Policy(spread=600))
    await put(t, "b")
    await put(t, "over", when=At("2030-11-20T13:00:00Z"))
    await speak(t)
    for key in ("a", "over"):
        await faults.lose_row(t._store, "u1", key)
    assert (await state(t, "a")).state == "unindexed"
    assert (await t.doctor()).healthy, "only a look at everything finds it"
    clock.advance(timedelta(hours=1, seconds=2))
    await speak(t, last_claim_at=clock.now_ms())

    found = of(await t.doctor(deep=True), "unindexed")
    assert (found.severity, found.count, found.at_least, found.example) == ("critical", 2, False, "u1/a")
    assert found.says == "2 enabled schedules are not in the index: they will never fire"
    assert (found.remedy, found.repairable, found.repaired) == (REPAIR, True, None)
    assert (await state(t, "a")).state == "unindexed", "it only looked"
    assert "tickler doctor --repair" in (await t.why("u1", "a")).sentence

    repaired = await t.doctor(deep=True, repair=True)
    assert of(repaired, "unindexed") == msgspec.structs.replace(found, repaired=2, left=0)
    assert repaired.healthy
    stored = await state(t, "a")
    assert (stored.state, stored.next_fire_at) == ("active", NOW_MS + 2 * HOUR_MS + stored.offset_ms())
    assert (await state(t, "over")).state == "finished", "its only instant has passed"
    assert checks(await t.doctor(deep=True)) == []


async def test_what_cannot_be_put_back_is_left_and_said(memory: Tickler) -> None:
    await put(memory)
    await speak(memory)
    await faults.rewrite_when(memory._store, "u1", "digest", "nonsense")
    await faults.lose_row(memory._store, "u1", "digest")
    diagnosis = await memory.doctor(deep=True, repair=True)
    found = of(diagnosis, "unindexed")
    assert (found.repaired, found.left, found.is_repaired, diagnosis.healthy) == (0, 1, False, False)


async def test_rows_whose_schedule_is_gone_are_dropped_and_no_worker_looks_at_them_in_vain(
    t: Tickler, clock: ManualClock
) -> None:
    if isinstance(t._store, DynamodbStore):
        pytest.skip("row and schedule are one item there")
    for key in ("a", "b", "kept"):
        await put(t, key)
    for key in ("a", "b"):
        await faults.lose_schedule(t._store, "u1", key)
    await speak(t)
    found = of(await t.doctor(deep=True), "orphans")
    assert (found.severity, found.count, found.example, found.remedy) == ("warning", 2, "u1/a", REPAIR)
    assert found.says == "2 index rows have no schedule: workers skip them each time they are due"
    assert await t.index.count() == 3

    repaired = await t.doctor(deep=True, repair=True)
    assert of(repaired, "orphans") == msgspec.structs.replace(found, repaired=2, left=0)
    assert repaired.healthy
    assert await t.index.count() == 1
    clock.advance(timedelta(hours=1))
    assert (await t.tick()).delivered == 1
    await speak(t)
    assert checks(await t.doctor(deep=True)) == []


async def test_schedules_that_wait_for_an_instant_that_is_not_their_next_are_moved_to_it(t: Tickler, clock: ManualClock) -> None:
    for key in ("a", "b", "due"):
        await put(t, key)
    await put(t, "paris", when="30 9 * * *", tz="Europe/Paris")  # 08:30 UTC
    right = (await state(t, "paris")).next_fire_at
    assert right is not None
    await speak(t)
    await faults.move_row(t._store, "u1", "b", NOW_MS + 3 * HOUR_MS)
    await faults.move_row(t._store, "u1", "paris", right - HOUR_MS)  # as if it had summer time
    await faults.move_row(t._store, "u1", "due", NOW_MS - 5_000)
    assert (await t.doctor()).healthy

    found = of(await t.doctor(deep=True), "stale-next-fire")
    assert (found.severity, found.count, found.remedy, found.repairable) == ("warning", 2, REPAIR, True)
    assert found.says.startswith("2 schedules have a wrong next fire, such as from a time zone database older than 20")
    assert found.example == "u1/b, 0 * * * *, has 2030-11-20 15:00:00 UTC"

    repaired = await t.doctor(deep=True, repair=True)
    assert of(repaired, "stale-next-fire") == msgspec.structs.replace(found, repaired=2, left=0)
    assert repaired.healthy
    assert (await state(t, "b")).next_fire_at == NOW_MS + HOUR_MS
    assert (await state(t, "paris")).next_fire_at == right
    assert (await state(t, "due")).next_fire_at == NOW_MS - 5_000, "what is due is left to the workers"
    assert (await state(t, "a")).version == 1, "what waits where it should is not touched"
    assert checks(await t.doctor(deep=True)) == []


async def test_what_is_about_to_be_due_is_left_for_another_time(memory: Tickler, clock: ManualClock) -> None:
    await put(memory)
    await faults.move_row(memory._store, "u1", "digest", NOW_MS + DAY_MS)
    clock.advance(timedelta(minutes=59, seconds=50))
    await speak(memory)
    diagnosis = await memory.doctor(deep=True, repair=True)
    found = of(diagnosis, "stale-next-fire")
    assert (found.repaired, found.left, diagnosis.healthy) == (0, 1, False)
    clock.advance(timedelta(seconds=11))
    assert of(await memory.doctor(deep=True, repair=True), "stale-next-fire").is_repaired
    assert (await state(memory)).next_fire_at == NOW_MS + 2 * HOUR_MS


# Time zones and clocks.


@pytest.fixture
def newer_zones(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Makes this machine's time zone database one of the year 2999."""
    folder = tmp_path / "zoneinfo"
    folder.mkdir()
    (folder / "UTC").write_bytes((files("tzdata") / "zoneinfo" / "UTC").read_bytes())
    (folder / "+VERSION").write_text("2999a")
    yield lambda: zoneinfo.reset_tzpath(to=[folder])
    zoneinfo.reset_tzpath()


async def test_an_older_time_zone_database_than_the_stores_is_told_and_proves_nothing_against_what_is_stored(
    t: Tickler, clock: ManualClock, newer_zones: Callable[[], None]
) -> None:
    await put(t)
    await speak(t)
    await t._store.records.put("store", "tzdata", b'{"version": "2999a"}', now_ms=NOW_MS)
    quick = of(await t.doctor(), "tzdata")
    assert (quick.severity, quick.count, quick.repairable) == ("warning", 1, False)
    assert quick.says == f"this machine's time zone database is {tzdata_version()}, and the store was used with 2999a"
    assert "pip install --upgrade tzdata" in quick.remedy
    assert checks(await t.doctor(deep=True)) == ["tzdata"]

    await faults.move_row(t._store, "u1", "digest", NOW_MS + 3 * HOUR_MS)
    diagnosis = await t.doctor(deep=True, repair=True)
    deep = of(diagnosis, "tzdata")
    assert deep.says == f"{quick.says}: by its rules 1 schedule would fire at other times"
    assert (deep.count, deep.example, deep.repaired) == (1, "u1/digest, 0 * * * *, has 2030-11-20 15:00:00 UTC", None)
    assert (checks(diagnosis), diagnosis.healthy) == (["tzdata"], False)
    assert (await state(t)).next_fire_at == NOW_MS + 3 * HOUR_MS, "the older rules were not applied"

    newer_zones()
    assert checks(await t.doctor()) == []
    assert of(await t.doctor(deep=True, repair=True), "stale-next-fire").is_repaired
    assert checks(await t.doctor(deep=True)) == []


@pytest.fixture(params=["postgres", "dynamodb"])
def with_a_clock(request: pytest.FixtureRequest) -> str:
    """Stores that have one of their own."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.mark.parametrize(
    ("off_s", "severity", "example"),
    [
        (5, "warning", r"the clock of this machine is (4|5|6) s ahead"),
        (-90, "critical", r"the clock of this machine is 1 min (29|30|31) s behind"),
    ],
)
async def test_a_machine_whose_clock_is_off_the_stores_is_told_until_it_is_set(
    with_a_clock: str, off_s: int, severity: str, example: str
) -> None:
    async with connect(with_a_clock, clock=SystemClock(wall_ns=lambda: time.time_ns() + off_s * 1_000_000_000)) as t:
        found = of(await t.doctor(), "clock")
    assert (found.severity, found.count) == (severity, 1)
    assert found.says.startswith("1 clock is more than 2 s off the store's")
    assert "timedatectl" in found.remedy
    assert found.example is not None
    assert re.fullmatch(example, found.example)
    async with connect(with_a_clock) as t:
        assert checks(await t.doctor()) == []


async def test_a_worker_whose_clock_is_far_off_claims_nothing_and_both_are_told(postgres_url: str) -> None:
    skewed = SystemClock(wall_ns=lambda: time.time_ns() + 60_000_000_000)
    async with connect(postgres_url) as t, connect(postgres_url, clock=skewed) as elsewhere:
        await put(t, when=Every(hours=1))
        t.handler("digest")(lambda delivery: None)
        async with at_work(elsewhere):
            await until(lambda: _is_not_claiming(t))
            diagnosis = await t.doctor()
        assert checks(diagnosis) == ["clock", "no-worker"]
        assert of(diagnosis, "clock").severity == "critical"
        assert "a worker more than 30 s off claims nothing" in of(diagnosis, "clock").says
        assert "is not claiming: its clock is off" in of(diagnosis, "no-worker").says
        async with at_work(t):
            await until(lambda: _is_well(t))


async def _is_not_claiming(t: Tickler) -> bool:
    found = await t._store.records.list("worker", now_ms=t.now_ms())
    return any("not claiming" in str(record.value) for record in found)


async def _is_well(t: Tickler) -> bool:
    return (await t.doctor(deep=True)).findings == []


async def test_clocks_of_workers_are_looked_at_while_they_are_alive(memory: Tickler, clock: ManualClock) -> None:
    await speak(memory, "w1", clock_offset_ms=3_000)
    await speak(memory, "w2", clock_offset_ms=-2_500)
    await speak(memory, "w3", clock_offset_ms=2_000)
    found = of(await memory.doctor(), "clock")
    assert (found.severity, found.count, found.example) == ("warning", 2, "the clock of w1 is 3 s behind")
    clock.advance(timedelta(minutes=2))
    assert checks(await memory.doctor()) == []


# Workers.


async def test_nobody_at_work_is_worse_when_something_is_due(t: Tickler, clock: ManualClock) -> None:
    await put(t)
    found = of(await t.doctor(), "no-worker")
    assert (found.severity, found.says) == (
        "warning",
        "no worker has run on this store; the next fire is due at 2030-11-20 13:00:00 UTC",
    )
    clock.advance(timedelta(hours=1, seconds=30))
    found = of(await t.doctor(), "no-worker")
    assert (found.severity, found.count, found.remedy) == ("critical", 1, "`tickler work`")
    assert found.says == "no worker has run on this store, and 1 fire has been due for 30 s"
    assert found.example == "u1/digest, due since 2030-11-20 13:00:00 UTC"

    await t.tick()
    diagnosis = await t.doctor()
    assert (of(diagnosis, "no-worker").severity, diagnosis.healthy) == ("info", True), "something may tick from outside"
    clock.advance(timedelta(hours=2))
    diagnosis = await t.doctor()
    assert (of(diagnosis, "no-worker").severity, diagnosis.healthy) == ("critical", False)
    async with at_work(t):
        await until(lambda: _is_well(t))


async def test_what_comes_due_between_two_ticks_is_only_worth_knowing(t: Tickler, clock: ManualClock) -> None:
    await put(t, when="* * * * *")
    clock.advance(timedelta(seconds=65))
    assert (await t.tick()).delivered == 1
    clock.advance(timedelta(seconds=35))
    assert of(await t.doctor(), "no-worker").severity == "info"
    clock.advance(timedelta(seconds=35))
    diagnosis = await t.doctor()
    found = of(diagnosis, "no-worker")
    assert (found.severity, found.count, diagnosis.healthy) == ("info", 1, True)
    assert found.says == "no worker is running: tick stopped 1 min 10 s ago, and 1 fire has been due for 15 s"
    assert (found.example, found.remedy) == (
        "u1/digest, due since 2030-11-20 12:02:00 UTC",
        "`tickler work`, or `tickler tick`",
    )
    clock.advance(timedelta(minutes=5))
    assert of(await t.doctor(), "no-worker").severity == "critical", "no tick has come for too long"


@pytest.mark.parametrize(("doing", "seen_s"), [("working", 60), ("stopped", 70)], ids=["killed", "stopped while it was due"])
async def test_what_came_due_before_a_worker_stopped_or_after_one_was_killed_is_critical(
    memory: Tickler, clock: ManualClock, doing: str, seen_s: int
) -> None:
    await put(memory, when="* * * * *")
    await speak(memory, doing=doing, seen_at=NOW_MS + seen_s * 1_000)
    clock.advance(timedelta(minutes=2, seconds=20))
    assert of(await memory.doctor(), "no-worker").severity == "critical"


async def test_a_worker_that_was_killed_is_missed(memory: Tickler, clock: ManualClock) -> None:
    await put(memory)
    await speak(memory)
    clock.advance(timedelta(seconds=60))
    assert checks(await memory.doctor()) == []
    clock.advance(timedelta(seconds=10))
    found = of(await memory.doctor(), "no-worker")
    assert found.severity == "warning", "it did not stop by itself"
    assert found.says.startswith("no worker is running: w1 was last seen 1 min 10 s ago; ")


async def test_a_worker_that_is_alive_and_claims_nothing_although_something_is_due_is_the_worst_there_is(
    t: Tickler, clock: ManualClock
) -> None:
    """Rows of a newer format are made by an upgrade that has not reached this worker yet."""
    await put(t)
    await faults.set_format(t._store, "u1", "digest", 99)
    clock.advance(timedelta(hours=1, seconds=20))
    async with at_work(t):
        await until(lambda: _has_met_newer_rows(t))
        diagnosis = await t.doctor(deep=True, repair=True)
        assert checks(diagnosis) == ["nothing-claimed", "outdated"]
        found = of(diagnosis, "nothing-claimed")
        assert (found.severity, found.count, found.example) == (
            "critical",
            1,
            "u1/digest, due since 2030-11-20 13:00:00 UTC",
        )
        assert found.says.endswith("although 1 fire has been due for 20 s")
        assert "the log of" in found.remedy
        outdated = of(diagnosis, "outdated")
        assert (outdated.severity, outdated.count, outdated.repaired) == ("warning", 1, None)
        assert outdated.says == "1 worker is older than some rows and skipped them: they do not fire there"
        assert "pip install --upgrade ticklerfile" in outdated.remedy

        await faults.set_format(t._store, "u1", "digest", ROW_FORMAT)
        await until(lambda: _was_delivered(t))
        assert checks(await t.doctor(deep=True)) == ["outdated"]
    clock.advance(timedelta(minutes=11))
    await speak(t)
    assert checks(await t.doctor(deep=True)) == [], "nobody has said so for ten minutes"


async def _has_met_newer_rows(t: Tickler) -> bool:
    return bool(await t._store.records.list("outdated", now_ms=t.now_ms()))


async def _was_delivered(t: Tickler) -> bool:
    return bool((await t.fires.history("u1", "digest")).items)


async def test_workers_that_look_and_find_nothing_are_told_from_workers_that_do_not_look(
    memory: Tickler, clock: ManualClock
) -> None:
    await put(memory)
    clock.advance(timedelta(hours=1, seconds=20))
    await speak(memory, "w1", last_claim_at=NOW_MS + HOUR_MS - 1)
    await speak(memory, "w2")
    found = of(await memory.doctor(), "nothing-claimed")
    assert found.says == "2 workers looked for due fires and found none, although 1 fire has been due for 20 s"
    await speak(memory, "w1", last_round_at=NOW_MS)
    await speak(memory, "w2", last_round_at=None)
    found = of(await memory.doctor(), "nothing-claimed")
    assert found.says.startswith("2 workers are running but none has looked for due fires, although ")
    await speak(memory, "w2", last_claim_at=NOW_MS + HOUR_MS)
    assert checks(await memory.doctor()) == [], "one of them is at it"
    await speak(memory, "w2", last_round_at=None, seen_at=NOW_MS + HOUR_MS + 9_000)
    await speak(memory, "w1", last_round_at=None, seen_at=NOW_MS + HOUR_MS + 9_000)
    assert checks(await memory.doctor()) == [], "nobody has spoken long enough after it was due"


async def test_workers_that_do_not_keep_up_are_told_from_those_that_claim_nothing(t: Tickler, clock: ManualClock) -> None:
    for key in ("a", "b"):
        await put(t, key)
    clock.advance(timedelta(hours=1, seconds=50))
    await speak(t, queued=7)
    assert checks(await t.doctor()) == [], "a minute is nothing"
    clock.advance(timedelta(seconds=20))
    for busy in ({"queued": 7}, {"last_claim_at": clock.now_ms()}):
        await speak(t, "w1", **busy)
        found = of(await t.doctor(), "overdue")
        assert (found.severity, found.count, found.repairable) == ("warning", 2, False)
        assert found.says == "2 fires have been due, the first for 1 min 10 s, although 1 worker is running"
        assert found.example is not None
        assert found.example.endswith(", due since 2030-11-20 13:00:00 UTC")
        assert found.remedy.startswith("start more workers with `tickler work`; `tickler why u1 ")
    await t.tick()
    assert checks(await t.doctor()) == []


async def test_counts_of_quick_checks_end_somewhere(memory: Tickler, clock: ManualClock) -> None:
    many = [Schedule(owner="u1", key=f"k{n}", when="0 * * * *", target=DIGEST) for n in range(MAX_COUNTED + 1)]
    await memory.schedules.put_many(many)
    clock.advance(timedelta(hours=1, seconds=30))
    found = of(await memory.doctor(), "no-worker")
    assert (found.count, found.at_least) == (MAX_COUNTED, True)
    assert found.says.endswith("at least 500 fires have been due, the first for 30 s")


async def test_quick_checks_ask_as_much_of_a_large_store_as_of_a_small_one(dynamodb_url: str, clock: ManualClock) -> None:
    async with connect(dynamodb_url, clock=clock, create=True) as t:
        assert isinstance(t._store, DynamodbStore)
        usage, asked = t._store.client.usage, list[int]()
        for number in (1, 150):
            await t.schedules.put_many(
                [Schedule(owner="u1", key=f"k{n}", when="0 * * * *", target=DIGEST) for n in range(number)]
            )
            before = usage.requests.total()
            await t.doctor()
            asked.append(usage.requests.total() - before)
        assert asked[0] == asked[1]


# What piles up.


async def test_what_does_not_read_is_told_with_its_reason_and_taken_back_when_it_reads(t: Tickler, clock: ManualClock) -> None:
    await put(t)
    await faults.rewrite_when(t._store, "u1", "digest", "61 * * * *")
    clock.advance(timedelta(hours=1))
    await t.tick()
    await speak(t)
    diagnosis = await t.doctor(repair=True)
    found = of(diagnosis, "set-aside")
    assert (checks(diagnosis), found.severity, found.count, found.repairable) == (["set-aside"], "warning", 1, False)
    assert found.says == "1 schedule cannot be read and was set aside: it does not fire"
    assert found.example is not None
    assert found.example.startswith("u1/digest: '61 * * * *' in UTC cannot be read: ")
    assert (found.remedy, found.repaired, diagnosis.healthy) == ("put it again", None, False)

    await faults.rewrite_when(t._store, "u1", "digest", "0 * * * *")
    found = of(await t.doctor(), "set-aside")
    assert found.repairable
    assert found.remedy.startswith(REPAIR)
    repaired = await t.doctor(repair=True)
    assert (of(repaired, "set-aside").repaired, of(repaired, "set-aside").left, repaired.healthy) == (1, 0, True)
    assert (await state(t)).state == "active"
    assert (await t.tick()).delivered == 1
    await speak(t)
    assert checks(await t.doctor(deep=True)) == []


async def test_what_was_given_up_is_told_until_it_is_sent_again(t: Tickler, clock: ManualClock) -> None:
    willing = False

    @t.handler("fussy")
    def fussy(fire: object) -> None:
        if not willing:
            raise GiveUp("no such user")

    await put(t, target=PythonTarget("fussy"))
    clock.advance(timedelta(hours=1))
    await t.tick()
    await speak(t)
    diagnosis = await t.doctor(deep=True, repair=True)
    (dead,) = (await t.fires.list(state="dead")).items
    found = of(diagnosis, "dead")
    assert (checks(diagnosis), found.severity, found.count, found.repairable) == (["dead"], "warning", 1, False)
    assert found.says == "1 fire is dead, and is not retried"
    assert found.example == "u1/digest of 2030-11-20 13:00:00 UTC: no such user"
    assert f"`tickler retry {dead.id}`" in found.remedy
    assert f"`tickler fires --cancel {dead.id}`" in found.remedy

    willing = True
    await t.fires.retry_all()
    assert (await t.tick()).delivered == 1
    await speak(t)
    assert checks(await t.doctor(deep=True)) == []


async def test_history_that_nobody_prunes_is_told_and_pruned(t: Tickler, clock: ManualClock) -> None:
    """Neither a worker nor a tick has come by for a day."""
    await put(t)
    clock.advance(timedelta(hours=1))
    await t.tick()
    clock.advance(timedelta(days=1, minutes=59))
    await speak(t, last_claim_at=clock.now_ms())
    assert "unpruned" not in checks(await t.doctor())
    clock.advance(timedelta(minutes=2))
    if t.capabilities.prunes_itself:
        assert "unpruned" not in checks(await t.doctor())
        return
    found = of(await t.doctor(), "unpruned")
    assert (found.severity, found.count, found.repairable) == ("warning", 1, True)
    assert found.says == "the history is not pruned: it has entries that expired more than 1 h ago"
    assert found.remedy.startswith(REPAIR)
    repaired = of(await t.doctor(repair=True), "unpruned")
    assert (repaired.repaired, repaired.left) == (1, 0)
    assert (await t.fires.history("u1", "digest")).items == []
    assert "unpruned" not in checks(await t.doctor())


# All together.


async def test_the_worst_comes_first_and_progress_is_told(memory: Tickler, clock: ManualClock) -> None:
    said: list[tuple[str, int, int | None]] = []
    await put(memory, "a")
    await put(memory, "b")
    await faults.lose_schedule(memory._store, "u1", "a")
    clock.advance(timedelta(hours=2))
    diagnosis = await memory.doctor(deep=True, on_progress=lambda *step: said.append(step))
    assert [found.severity for found in diagnosis.findings] == ["critical", "warning"]
    assert ("computing next fires", 1, 2) in said
    assert msgspec.json.decode(msgspec.json.encode(diagnosis))["healthy"] is False


async def test_repairs_while_workers_run_lose_nothing_and_double_nothing(postgres_url: str) -> None:
    """Faults are made and repaired all the while; what was never at fault must not notice, and what was waits for its next."""
    delivered: Counter[tuple[str, int]] = Counter()

    def deliver(fire: Delivery) -> None:
        delivered[fire.key, fire.nominal_at] += 1

    async with connect(postgres_url) as t, connect(postgres_url) as one, connect(postgres_url) as other:
        for worker in (one, other):
            worker.handler("digest")(deliver)
        start = t.now_ms() + 1_000
        every, policy = Every(seconds=1, start=start), Policy(missed="all")
        kept = [f"kept{n}" for n in range(15)]
        at_fault = [f"lost{n}" for n in range(5)] + [f"moved{n}" for n in range(5)]
        await t.schedules.put_many(
            [Schedule(owner="u1", key=key, when=every, target=DIGEST, policy=policy) for key in [*kept, *at_fault]]
        )
        repaired: Counter[str] = Counter()
        async with at_work(one), at_work(other):
            while t.now_ms() < start + 4_000:
                await put(t, "orphan", when=every, policy=policy)
                await faults.lose_schedule(t._store, "u1", "orphan")
                for key in at_fault:
                    if key.startswith("lost"):
                        await faults.lose_row(t._store, "u1", key)
                    else:
                        await faults.move_row(t._store, "u1", key, start + DAY_MS)
                diagnosis = await t.doctor(deep=True, repair=True)
                repaired.update({found.check: found.repaired or 0 for found in diagnosis.findings})
                assert not {"unindexed", "orphans", "stale-next-fire"} & set(checks(await t.doctor(deep=True)))
                await asyncio.sleep(0.05)
            ended = t.now_ms()
            instants = range(start + 1_000, ended, 1_000)
            await until(lambda: _all_delivered(delivered, kept, instants))
        assert repaired["unindexed"] >= 5
        assert repaired["stale-next-fire"] >= 5
        assert repaired["orphans"] >= 1
        assert max(delivered.values()) == 1, "something was delivered twice"
        assert isinstance(t._store.index, FindsOrphans)
        assert await t._store.index.orphans(10) == []
        stored = (await t.schedules.list()).items
        assert [each.key for each in stored] == sorted([*kept, *at_fault])
        assert all(each.next_fire_at < ended + 20_000 for each in stored if each.next_fire_at is not None)
        assert {each.state for each in stored} == {"active"}


async def _all_delivered(delivered: Counter[tuple[str, int]], keys: list[str], instants: range) -> bool:
    return all(delivered[key, at] for key in keys for at in instants)


# What was found to be right.


@pytest.mark.parametrize("deep", [False, True])
async def test_checks_that_find_nothing_are_named_and_say_what_they_have_shown(deep: bool) -> None:
    async with connect("memory://") as t:
        diagnosis = await t.doctor(deep=deep)
    slow, quick = [name_of(check) for check in DEEP], [name_of(check) for check in QUICK]
    assert diagnosis.passed == [*(slow if deep else ()), *quick]
    assert [*slow, *quick] == list(PASSED_MESSAGES)


async def test_a_check_that_found_something_or_could_not_be_made_has_not_passed() -> None:
    clock = ManualClock(NOW_MS)
    async with connect("memory://", clock=clock) as t:
        await t.schedules.put(Schedule(owner="u1", key="a", when="0 * * * *", target=PythonTarget("echo")))
        clock.advance(7200)
        diagnosis = await t.doctor(deep=True)
    assert [finding.check for finding in diagnosis.findings] == ["no-worker"]
    assert not {"no-worker", "nothing-claimed", "overdue", "no-handler", "unserved"} & set(diagnosis.passed)
    assert diagnosis.repaired == 0


# What workers have and lack.


async def test_a_handler_that_no_worker_has_is_told_and_one_that_some_have_is_worth_knowing(
    memory: Tickler, clock: ManualClock
) -> None:
    await put(memory)
    clock.advance(timedelta(hours=1, seconds=20))
    now_ms = memory.now_ms()
    lacks = {"python:digest": now_ms - 7_000}
    await speak(memory, last_claim_at=now_ms, delivers_to=["http", "python:echo"], lacks=lacks)
    await speak(memory, "w2", last_claim_at=now_ms, delivers_to=["http"])
    diagnosis = await memory.doctor()
    found = of(diagnosis, "no-handler")
    assert (found.severity, found.count, diagnosis.healthy) == ("critical", 1, False)
    assert found.example == "no worker has the handler 'digest', last needed 7 s ago"

    await speak(memory, "w2", last_claim_at=now_ms, delivers_to=["python:digest"])
    diagnosis = await memory.doctor()
    found = of(diagnosis, "passed-on")
    assert (found.severity, found.example) == ("info", "w1 lacks the handler 'digest'")
    assert "no-handler" not in checks(diagnosis)

    await speak(memory, "w2", last_claim_at=now_ms)  # of a version that does not say
    assert "no-handler" not in checks(await memory.doctor())


async def test_a_handler_that_ticks_lack_is_told(t: Tickler, clock: ManualClock) -> None:
    await put(t, target=PythonTarget("missing"))
    clock.advance(timedelta(hours=1))
    assert (await t.tick()).released == 1
    clock.advance(30)
    assert of(await t.doctor(), "no-handler").example == "no worker has the handler 'missing', last needed 30 s ago"


async def test_schedules_that_no_worker_could_deliver_are_found_before_they_are_due(memory: Tickler) -> None:
    await put(memory, "fine", target="https://example.org")
    await put(memory, "a")
    await put(memory, "b", target=SqsTarget("arn:aws:sqs:eu-west-1:123456789012:fires"))
    assert "unserved" not in checks(await memory.doctor(deep=True)), "nobody is at work at all"
    await speak(memory, delivers_to=["http", "python:echo"])
    assert "unserved" not in checks(await memory.doctor())
    found = of(await memory.doctor(deep=True), "unserved")
    assert (found.severity, found.count, found.example) == ("warning", 2, "u1/a needs the handler 'digest'")
    await speak(memory, "w2", delivers_to=["sqs", "python"])  # with a deliverer of its own for all handlers
    assert "unserved" not in checks(await memory.doctor(deep=True))


async def test_workers_that_ran_out_of_something_or_abandoned_attempts_are_told(memory: Tickler) -> None:
    await put(memory)
    await speak(memory, short_of="the worker could not connect: too many open files", abandoned=3)
    diagnosis = await memory.doctor()
    assert of(diagnosis, "exhausted").example == "w1: the worker could not connect: too many open files"
    found = of(diagnosis, "abandoned")
    assert (found.count, found.says) == (3, "3 attempts run past their timeout")
