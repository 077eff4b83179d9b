"""What Prometheus is told: of a runner at work on SQLite, and of a store however it stands."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from tickler import (
    At,
    Delivery,
    GiveUp,
    IndexRow,
    ManualClock,
    Outcome,
    Policy,
    PythonTarget,
    RetryLater,
    RunOptions,
    Schedule,
    Tickler,
    connect,
)
from tickler.clock import to_datetime
from tickler.errors import StoreUnavailable
from tickler.model.fire import Claim, DueItem, Settlement
from tickler.observe import metrics as module
from tickler.observe.metrics import OUTCOMES, Metrics
from tickler.records.kinds import WORKER
from tickler.records.worker_status import WorkerReport

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
NAMES = {
    "tickler_claims_total",
    "tickler_dead_fires",
    "tickler_deliveries_total",
    "tickler_due",
    "tickler_in_flight",
    "tickler_index_rows",
    "tickler_last_claim_timestamp_seconds",
    "tickler_lateness_seconds",
    "tickler_oldest_due_seconds",
    "tickler_round_seconds",
    "tickler_store_up",
    "tickler_workers_alive",
}

Values = dict[str, float]


async def values(metrics: Metrics, *, anew: bool = True) -> Values:
    """As a scraper reads them, by name and label."""
    if anew:
        metrics._read_at = -math.inf
    found: Values = {}
    for family in text_string_to_metric_families((await metrics.render()).decode()):
        for sample in family.samples:
            labels = "".join(f"{{{value}}}" for name, value in sorted(sample.labels.items()))
            found[sample.name + labels] = sample.value
    return found


@asynccontextmanager
async def running(t: Tickler) -> AsyncIterator[None]:
    task = asyncio.create_task(t.run(RunOptions(drain=5)))
    try:
        yield
    finally:
        t.stop()
        await task


async def until(holds: Callable[[Values], bool], metrics: Metrics) -> Values:
    async with asyncio.timeout(30):
        while not holds(found := await values(metrics)):
            await asyncio.sleep(0.01)
    return found


@pytest.fixture
async def t(sqlite_url: str) -> AsyncIterator[Tickler]:
    async with connect(sqlite_url) as tickler:
        yield tickler


@pytest.fixture
async def quiet() -> AsyncIterator[Tickler]:
    async with connect("memory://", clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


async def due(t: Tickler, key: str, handler: str, *, late_s: float = 60, policy: Policy | None = None) -> None:
    """A schedule that has been due for so long: put at a time when it was not, or it would be refused."""
    at_ms = t.now_ms() - round(late_s * 1000)
    schedules = type(t.schedules)(t.store.schedules, ManualClock(at_ms - HOUR_MS))
    when = At(to_datetime(at_ms))
    await schedules.put(Schedule(owner="u1", key=key, when=when, target=PythonTarget(handler), policy=policy or Policy()))


async def test_postponements_are_counted_apart_and_make_nothing_late(quiet: Tickler) -> None:
    metrics, clock = Metrics(quiet), quiet._clock
    assert isinstance(clock, ManualClock)
    later = [RetryLater(after=600)] * 2

    @quiet.handler("later")
    async def handle(delivery: Delivery) -> None:
        if later:
            raise later.pop()

    for key, policy in (("a", Policy()), ("b", Policy(delivery="at-most-once"))):
        await quiet.schedules.put(
            Schedule(owner="u1", key=key, when=At(to_datetime(NOW_MS + 1_000)), target=PythonTarget("later"), policy=policy)
        )
    clock.advance(1)
    await quiet.tick()
    found = await values(metrics)
    assert (found["tickler_deliveries_total{postponed}"], found["tickler_oldest_due_seconds"]) == (2, 0)
    clock.advance(600)
    await quiet.tick()
    found = await values(metrics)
    assert (found["tickler_deliveries_total{delivered}"], found["tickler_deliveries_total{postponed}"]) == (2, 2)
    assert found["tickler_lateness_seconds_count"] == found["tickler_lateness_seconds_bucket{0.01}"] == 2
    assert found["tickler_dead_fires"] == 0


async def test_a_runner_at_work_is_counted(t: Tickler) -> None:
    metrics = Metrics(t)
    blocked, go = asyncio.Event(), asyncio.Event()

    @t.handler("fine")
    async def fine(delivery: Delivery) -> None: ...

    @t.handler("slow")
    async def slow(delivery: Delivery) -> None:
        blocked.set()
        await go.wait()

    @t.handler("fails")
    async def fails(delivery: Delivery) -> None:
        raise ValueError("no")

    @t.handler("hopeless")
    async def hopeless(delivery: Delivery) -> None:
        raise GiveUp("never")

    class Gone:
        async def open(self) -> None: ...

        async def close(self) -> None: ...

        async def deliver(self, delivery: Delivery, target: object) -> Outcome:
            return Outcome(verdict="gone", status=410)

    for n in range(3):
        await due(t, f"fine{n}", "fine", late_s=3)
    await due(t, "slow", "slow")
    await due(t, "fails", "fails", policy=Policy(attempts=5, backoff=[3600]))
    await due(t, "hopeless", "hopeless")
    await due(t, "lost", "fails", policy=Policy(delivery="at-most-once"))
    before = await values(metrics)
    assert (before["tickler_due"], before["tickler_claims_total"], before["tickler_workers_alive"]) == (7, 0, 0)
    assert 59 < before["tickler_oldest_due_seconds"] < 120
    assert before["tickler_last_claim_timestamp_seconds"] == 0
    assert {name for name in before if name.startswith("tickler_deliveries_total")} == {
        f"tickler_deliveries_total{{{outcome}}}" for outcome in OUTCOMES
    }, "also those that have not happened yet, so that a rate can be taken of them"
    began_s = t.now_ms() / 1000
    async with running(t):
        await blocked.wait()
        busy = await until(lambda found: found["tickler_deliveries_total{lost}"] == 1, metrics)
        assert (busy["tickler_in_flight"], busy["tickler_workers_alive"]) == (1, 1)
        assert busy["tickler_deliveries_total{delivered}"] == 3
        go.set()
        found = await until(lambda found: found["tickler_deliveries_total{delivered}"] == 4, metrics)
        found = await until(lambda found: found["tickler_dead_fires"] == 1, metrics)
    assert found["tickler_claims_total"] == 7
    assert {outcome: found[f"tickler_deliveries_total{{{outcome}}}"] for outcome in OUTCOMES} == {
        "delivered": 4,
        "retry": 1,
        "postponed": 0,
        "dead": 1,
        "gone": 0,
        "lost": 1,
    }
    assert (found["tickler_due"], found["tickler_oldest_due_seconds"], found["tickler_dead_fires"]) == (0, 0, 1)
    assert found["tickler_lateness_seconds_count"] == 7
    assert found["tickler_lateness_seconds_bucket{2.5}"] == 0
    assert found["tickler_lateness_seconds_bucket{30.0}"] == 3, "the three that were due for three seconds"
    assert found["tickler_round_seconds_count"] >= 1
    assert 0 < found["tickler_round_seconds_sum"] < 60
    assert began_s - 1 <= found["tickler_last_claim_timestamp_seconds"] <= t.now_ms() / 1000
    assert (await values(metrics))["tickler_in_flight"] == 0
    t.deliver_with(PythonTarget, Gone())
    await due(t, "gone", "fine")
    await t.tick(budget_ms=5_000)
    assert (await values(metrics))["tickler_deliveries_total{gone}"] == 1, "a tick is counted, too"


async def test_lateness_is_of_first_attempts_and_leaves_the_spread_out(t: Tickler) -> None:
    metrics = Metrics(t)
    attempts = 0

    @t.handler("second")
    async def second(delivery: Delivery) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ValueError("not yet")

    await due(t, "again", "second", late_s=40, policy=Policy(attempts=3, backoff=[0.05]))
    async with running(t):
        found = await until(lambda found: found["tickler_deliveries_total{delivered}"] == 1, metrics)
    assert attempts == 2
    assert found["tickler_lateness_seconds_count"] == 1
    assert 39 < found["tickler_lateness_seconds_sum"] < 60
    minutely = Schedule(
        owner="u1", key="spread", when="* * * * *", target=PythonTarget("second"), policy=Policy(spread=timedelta(seconds=50))
    )
    async with connect("memory://", clock=ManualClock(NOW_MS)) as other:
        other.handler("second")(second)
        spread = Metrics(other)
        await other.schedules.put(minutely)
        (row,), _ = await other.index.walk()
        assert row.offset_ms > 100
        clock = other.clock
        assert isinstance(clock, ManualClock)
        clock.set(row.next_fire_at + 70)
        await other.tick()
        found = await values(spread)
        assert found["tickler_lateness_seconds_sum"] == pytest.approx(0.07)


async def test_lateness_leaves_out_what_was_postponed_also_if_it_was_released_afterwards(sqlite_url: str) -> None:
    clock = ManualClock(NOW_MS)
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as without_handler:
        metrics = Metrics(t)
        postponements = [RetryLater(after=timedelta(hours=1)), RetryLater(after=timedelta(hours=1))]

        @t.handler("work")
        async def work(delivery: Delivery) -> None:
            if postponements:
                raise postponements.pop()

        await t.send("u1", "k", PythonTarget("work"), None)
        for _ in range(2):
            assert (await t.tick()).postponed == 1
            clock.advance(3_600)
        for _ in range(2):
            assert (await without_handler.tick()).released == 1
            clock.advance(60)
        assert (await t.tick()).delivered == 1
        assert (await values(metrics))["tickler_lateness_seconds_count"] == 1


async def test_every_metric_is_there_and_says_what_it_is(quiet: Tickler) -> None:
    families = list(text_string_to_metric_families((await Metrics(quiet).render()).decode()))
    named = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    assert {name for name in named if not name.endswith("_created")} == NAMES
    assert all(family.documentation.endswith(".") for family in families if not family.name.endswith("_created"))


async def test_it_has_a_registry_of_its_own(quiet: Tickler) -> None:
    first, second = Metrics(quiet), Metrics(quiet)
    assert first.registry is not second.registry
    assert not any(family.name.startswith("tickler") for family in REGISTRY.collect())
    assert first.media_type.startswith("text/plain")


async def test_rows_are_those_of_the_last_forecast_or_counted_so_far(quiet: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 5)
    monkeypatch.setattr(module, "MAX_DUE", 4)
    metrics = Metrics(quiet)
    when = At(to_datetime(NOW_MS))
    await quiet.index.upsert_many(IndexRow("u1", f"k{n}", when, NOW_MS) for n in range(9))
    found = await values(metrics)
    assert (found["tickler_index_rows"], found["tickler_due"]) == (5, 4)
    assert found["tickler_oldest_due_seconds"] == 0, "no worker could take them: they are claimed from the index"
    await quiet.forecast()
    assert (await values(metrics))["tickler_index_rows"] == 9


async def test_workers_elsewhere_are_seen_by_what_they_said_last(quiet: Tickler) -> None:
    metrics = Metrics(quiet)
    for name, seen_at, claimed_at in (("w1", NOW_MS, NOW_MS - 5_000), ("w2", NOW_MS - 10 * 60_000, NOW_MS - 4_000)):
        report = WorkerReport(name=name, doing="working", started_at=0, seen_at=seen_at, last_claim_at=claimed_at)
        await quiet.store.records.put(WORKER, name, msgspec.json.encode(report), now_ms=NOW_MS)
    found = await values(metrics)
    assert found["tickler_workers_alive"] == 1
    assert found["tickler_last_claim_timestamp_seconds"] == (NOW_MS - 4_000) / 1000


async def test_a_store_that_is_gone_is_said_and_what_was_counted_is_still_told(
    quiet: Tickler, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics(quiet)
    metrics.round_ended(NOW_MS, 0.2, 3)
    assert (await values(metrics))["tickler_store_up"] == 1

    async def gone(due_by: int, limit: int) -> list[DueItem]:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(quiet.store.fires, "peek", gone)
    found = await values(metrics)
    assert (found["tickler_store_up"], found["tickler_claims_total"]) == (0, 3)
    assert math.isnan(found["tickler_due"])
    monkeypatch.undo()
    assert (await values(metrics))["tickler_due"] == 0

    async def hangs(due_by: int, limit: int) -> list[DueItem]:
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(quiet.store.fires, "peek", hangs)
    monkeypatch.setattr(module, "SNAPSHOT_TIMEOUT_S", 0.01)
    assert (await values(metrics))["tickler_store_up"] == 0


async def test_the_store_is_not_asked_again_at_once(quiet: Tickler) -> None:
    metrics = Metrics(quiet)
    assert (await values(metrics))["tickler_due"] == 0
    await quiet.index.upsert_many([IndexRow("u1", "k", At(to_datetime(NOW_MS)), NOW_MS)])
    assert (await values(metrics, anew=False))["tickler_due"] == 0
    assert (await values(metrics))["tickler_due"] == 1


async def test_those_who_ask_at_once_get_the_same_answer_and_the_store_is_asked_once(
    quiet: Tickler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer, peek = 0, asyncio.Event(), quiet.store.fires.peek

    async def slow(due_by: int, limit: int) -> list[DueItem]:
        nonlocal asked
        asked += 1
        await answer.wait()
        return await peek(due_by, limit)

    monkeypatch.setattr(quiet.store.fires, "peek", slow)
    metrics = Metrics(quiet)
    scrapes = [asyncio.create_task(values(metrics, anew=False)) for _ in range(3)]
    await asyncio.sleep(0)
    scrapes.pop(0).cancel()  # a scraper that goes away takes the answer from nobody
    await asyncio.sleep(0)
    answer.set()
    assert [(await scrape)["tickler_store_up"] for scrape in scrapes] == [1, 1]
    assert asked == 2, "by the one that went away, and by one for both"


async def test_a_listener_that_fails_disturbs_neither_work_nor_others(t: Tickler, caplog: pytest.LogCaptureFixture) -> None:
    class Fails:
        def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
            raise RuntimeError("round")

        def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
            raise RuntimeError("attempt")

    t.listen(Fails())
    metrics = Metrics(t)
    await due(t, "k", "fine")
    t.handler("fine")(lambda delivery: None)
    summary = await t.tick(budget_ms=5_000)
    assert (summary.delivered, summary.left) == (1, False)
    found = await values(metrics)
    assert (found["tickler_claims_total"], found["tickler_deliveries_total{delivered}"]) == (1, 1)
    assert "RuntimeError: round" in caplog.text
    assert "u1/k: a listener failed at the end of an attempt" in caplog.text
