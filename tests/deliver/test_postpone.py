"""A target that finds it too early postpones its fire: nothing is counted, nothing forgotten, and it does not go on for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tickler import Delivery, ManualClock, Outcome, Policy, PythonTarget, RetryLater, RunOptions, Schedule, Tickler, connect
from tickler.deliver.attempt import NO_REASON
from tickler.deliver.retry import MAX_POSTPONEMENT_MS, MIN_POSTPONEMENT_MS, within_bounds
from tickler.deliver.retry import after as what_follows
from tickler.errors import StoreUnavailable
from tickler.fires.contract import LeaseRequest
from tickler.fires.lease import lease
from tickler.fires.settle import settled
from tickler.model.fire import POSTPONED, Claim, Entry, Fire, Settlement, fire_id, uncounted_fire
from tickler.model.policy import DEFAULT_POLICY
from tickler.model.schedule import StoredSchedule
from tickler.when import Cron, Every

from .at_work import AT_MOST_ONCE, Bench, after, schedule
from .test_release import ran
from .virtual_time import START_MS, in_virtual_time

BOTH = pytest.mark.parametrize("policy", [DEFAULT_POLICY, AT_MOST_ONCE], ids=["at least once", "at most once"])
DAY_MS = 86_400_000
DUE_MS = START_MS + 10_000


def until(at_ms: int, *, counts: bool = False, reason: str | None = "the bank is closed") -> Callable[[Delivery], Any]:
    """Return a behaviour that postpones until an instant, and then answers."""

    async def behave(delivery: Delivery) -> object:
        if bench_now() < at_ms:
            raise RetryLater(at=at_ms, counts=counts, reason=reason)
        return "done"

    def bench_now() -> int:
        return START_MS + round(asyncio.get_running_loop().time() * 1000)

    return behave


def always(error: RetryLater) -> Callable[[Delivery], Any]:
    async def behave(delivery: Delivery) -> object:
        raise error

    return behave


# From a handler.


@BOTH
@in_virtual_time
async def test_a_handler_that_says_when_is_called_again_exactly_then_and_no_attempt_counts(policy: Policy) -> None:
    bench = Bench()
    await bench.put(schedule(policy=replace(policy, attempts=1)))
    bench.behave = until(START_MS + 2_000_000)
    async with bench.running():
        await asyncio.sleep(100)
        (fire,) = await bench.fires()
        assert (fire.attempt, fire.worker, fire.deliver_after) == (0, None, START_MS + 2_000_000)
        assert fire.reason == f"{POSTPONED}the bank is closed"
        await asyncio.sleep(2_000)
    first, second = bench.arrived
    assert (first.attempt, second.attempt) == (1, 1)
    assert 0 <= second.at_ms - (START_MS + 2_000_000) < 10
    postponed, delivered = await bench.history()
    assert (postponed.happened, postponed.detail, postponed.until_at) == ("postponed", "the bank is closed", START_MS + 2_000_000)
    assert (postponed.attempt, postponed.gave_up, postponed.at, postponed.worker) == (1, False, first.at_ms, delivered.worker)
    assert (delivered.happened, delivered.attempt, delivered.answer) == ("delivered", 1, "done")
    assert postponed.fire_id == delivered.fire_id


@BOTH
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_plain_handlers_and_ticks_postpone_too(policy: Policy, plain: bool) -> None:
    """On a real loop: a plain handler has a thread of its own."""
    clock = ManualClock(START_MS)
    async with connect("sqlite://", clock=clock) as t:
        later: list[RetryLater] = [RetryLater(after=timedelta(minutes=5))]

        def function(delivery: Delivery) -> None:
            if later:
                raise later.pop()

        async def coroutine(delivery: Delivery) -> None:
            function(delivery)

        t.handler("work")(function if plain else coroutine)
        seen: list[Outcome] = []
        t.on_dispatch(lambda delivery, outcome: seen.append(outcome))
        await t.schedules.put(Schedule(owner="u1", key="k", when=Cron("0 * * * *"), target=PythonTarget("work"), policy=policy))
        clock.advance(3_600)
        summary = await t.tick()
        assert (summary.claimed, summary.postponed, summary.failed, summary.left) == (1, 1, 0, False)
        (fire,) = (await t.fires.list()).items
        assert fire.deliver_after == clock.now_ms() + 300_000
        assert fire.reason == POSTPONED + NO_REASON
        assert [(outcome.verdict, outcome.retry_at, outcome.detail) for outcome in seen] == [
            ("postpone", fire.deliver_after, None)
        ]
        clock.advance(299)
        assert (await t.tick()).claimed == 0
        clock.advance(1)
        summary = await t.tick()
        assert (summary.delivered, summary.postponed) == (1, 0)


@BOTH
@in_virtual_time
async def test_a_worker_that_looks_rarely_is_woken_for_what_its_target_postponed(policy: Policy) -> None:
    bench = Bench()
    bench.store.real.capabilities = replace(bench.store.real.capabilities, poll_ms=60_000)
    await bench.put(schedule(policy=replace(policy, timeout=timedelta(minutes=1))))

    async def behave(delivery: Delivery) -> None:
        if len(bench.arrived) == 1:
            await asyncio.sleep(30)
            raise RetryLater(after=1)

    bench.behave = behave
    async with bench.running():
        await asyncio.sleep(100)
    first, second = bench.arrived
    assert 31_000 <= second.at_ms - first.at_ms < 31_100


@BOTH
@pytest.mark.parametrize("error", [RetryLater(at=START_MS - DAY_MS), RetryLater(after=0)], ids=["past", "at once"])
@in_virtual_time
async def test_a_handler_that_always_postpones_to_the_past_is_called_once_a_second(policy: Policy, error: RetryLater) -> None:
    bench = Bench()
    await bench.put(schedule(when=0.5, policy=policy))
    bench.behave = always(error)
    async with bench.running():
        await asyncio.sleep(20.4)
    assert 18 <= len(bench.arrived) <= 20
    assert {arrival.attempt for arrival in bench.arrived} == {1}


@in_virtual_time
async def test_a_tick_that_meets_a_handler_that_always_postpones_ends() -> None:
    bench = Bench()
    await bench.put(schedule(when=0.5), schedule("other", 0.5, AT_MOST_ONCE))
    bench.behave = always(RetryLater(after=0))
    await asyncio.sleep(1)
    before = bench.clock.now_ms()
    summary = await bench.tickler.tick()
    assert (summary.claimed, summary.postponed, summary.left) == (2, 2, False)
    assert bench.clock.now_ms() - before < MIN_POSTPONEMENT_MS


@in_virtual_time
async def test_a_handler_that_was_cut_off_at_its_timeout_may_still_postpone() -> None:
    bench = Bench()
    await bench.put(schedule(policy=Policy(timeout=5)))

    async def behave(delivery: Delivery) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RetryLater(after=600, reason="half of it is done") from None

    bench.behave = behave
    async with bench.running():
        await asyncio.sleep(20)
    assert await bench.happened() == ["postponed"]


# Counted.


@in_virtual_time
async def test_one_that_counts_is_a_failed_attempt_and_the_next_is_exactly_then_until_none_is_left() -> None:
    bench = Bench()
    await bench.put(schedule(policy=Policy(attempts=3, backoff=[3_600])))
    bench.behave = always(RetryLater(after=100, counts=True, reason="rate limited"))
    async with bench.running():
        await asyncio.sleep(1_000)
    starts = [arrival.at_ms for arrival in bench.arrived]
    assert [arrival.attempt for arrival in bench.arrived] == [1, 2, 3]
    assert all(100_000 <= later - earlier < 100_010 for earlier, later in pairwise(starts)), "jitter"
    assert [(entry.happened, entry.detail, entry.gave_up) for entry in await bench.history()] == [
        ("failed", "rate limited", False), ("failed", "rate limited", False), ("failed", "rate limited", True),
    ]  # fmt: skip
    assert [fire.reason for fire in await bench.fires("dead")] == ["rate limited"]


@in_virtual_time
async def test_at_most_once_one_that_counts_was_the_only_attempt() -> None:
    bench = Bench()
    await bench.put(schedule(policy=AT_MOST_ONCE))
    bench.behave = always(RetryLater(after=100, counts=True))
    async with bench.running():
        await asyncio.sleep(1_000)
    assert len(bench.arrived) == 1
    assert [(entry.happened, entry.gave_up) for entry in await bench.history()] == [("failed", True)]
    assert await bench.fires() == await bench.fires("dead") == []


# From a deliverer.


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("raises", [False, True])
@BOTH
@in_virtual_time
async def test_a_deliverer_of_ones_own_raises_or_returns_a_postponement(policy: Policy, raises: bool, bounded: bool) -> None:
    bench = Bench()
    bench.bounded = bounded  # type: ignore[attr-defined]  # an option of a deliverer
    await bench.put(schedule(policy=policy, host="bank"))
    at_ms = DUE_MS + 60_000

    async def behave(delivery: Delivery) -> object:
        if bench.clock.now_ms() >= at_ms:
            return None
        if raises:
            raise RetryLater(at=at_ms, reason="it is closed")
        return Outcome(verdict="postpone", retry_at=at_ms, detail="it is closed", status=425)

    bench.behave = behave
    async with bench.running():
        await asyncio.sleep(100)
    assert [(entry.happened, entry.status) for entry in await bench.history()] == [
        ("postponed", 0 if raises else 425), ("delivered", 204),
    ]  # fmt: skip
    assert [0 <= arrival.at_ms - due < 10 for arrival, due in zip(bench.arrived, (DUE_MS, at_ms), strict=True)] == [True, True]


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (Outcome(verdict="postpone"), "returned a postponement without retry_at"),
        (Outcome(verdict="postpone", retry_after_ms=5), "returned a postponement without retry_at"),
        (Outcome(verdict="delivered", retry_at=DUE_MS), "returned retry_at with the verdict 'delivered'"),
        (Outcome(verdict="release", retry_at=DUE_MS), "returned retry_at with the verdict 'release'"),
        (Outcome(verdict="postpone", retry_at=DUE_MS / 1.0), "whole milliseconds"),  # type: ignore[arg-type]  # what is refused
        (Outcome(verdict="postpone", retry_at=DUE_MS // 1000), "looks like seconds"),
        (Outcome(verdict="postpone", retry_at=10**30), "looks like micro- or nanoseconds"),
    ],
)
@in_virtual_time
async def test_an_outcome_that_cannot_be_understood_is_a_failed_attempt_that_says_so(outcome: Outcome, says: str) -> None:
    bench = Bench()
    await bench.put(schedule(host="bank", policy=Policy(attempts=1)))
    bench.behave = after(0, outcome)
    async with bench.running():
        await asyncio.sleep(20)
    (entry,) = await bench.history()
    assert entry.happened == "failed"
    assert says in str(entry.detail)


# Thirty days.


def hourly(policy: Policy) -> StoredSchedule:
    when, target = Cron("0 * * * *"), PythonTarget("work")
    times: dict[str, Any] = {"version": 1, "created_at": START_MS, "updated_at": START_MS, "state": "active"}
    return StoredSchedule(owner="u1", key="k", when=when, target=target, policy=policy, **times)


def claimed(nominal_at: int, opened_at: int | None) -> Claim:
    """Return a claim; without a fire if it was not opened."""
    stored = hourly(DEFAULT_POLICY)
    fire = None
    if opened_at is not None:
        id = fire_id("u1", "k", nominal_at)
        fire = Fire(id=id, owner="u1", key="k", nominal_at=nominal_at, opened_at=opened_at, attempt=1, worker="w")
    return Claim(stored, nominal_at, fire, nominal_at)


@pytest.mark.parametrize(
    ("nominal_at", "opened_at", "since", "says"),
    [
        pytest.param(DUE_MS, DUE_MS, DUE_MS, "it was due", id="on time"),
        pytest.param(DUE_MS, DUE_MS - 5_000, DUE_MS, "it was due", id="claimed ahead"),
        pytest.param(DUE_MS, DUE_MS + 5, DUE_MS + 5, "it was opened", id="a moment late"),
        pytest.param(DUE_MS - 50 * DAY_MS, DUE_MS, DUE_MS, "it was opened", id="missed for 50 days, or retried by a person"),
        pytest.param(DUE_MS, None, DUE_MS + 20 * DAY_MS, "it was opened", id="at most once, missed for 20 days"),
    ],
)
def test_thirty_days_count_from_the_instant_or_from_when_the_fire_was_opened(
    nominal_at: int, opened_at: int | None, since: int, says: str
) -> None:
    claim, now_ms = claimed(nominal_at, opened_at), DUE_MS + 20 * DAY_MS
    last = Outcome(verdict="postpone", retry_at=since + MAX_POSTPONEMENT_MS, detail="closed")
    assert within_bounds(last, claim, now_ms) == last
    over = within_bounds(replace(last, retry_at=since + MAX_POSTPONEMENT_MS + 1), claim, now_ms)
    assert (over.verdict, over.retry_at) == ("give_up", None)
    assert str(over.detail).startswith("postponed until 20")
    assert str(over.detail).endswith(f" UTC, which is more than 30 days after {says}: closed")
    counted = replace(last, verdict="retry", retry_at=since + MAX_POSTPONEMENT_MS + 1)
    assert within_bounds(counted, claim, now_ms).verdict == "give_up"


@pytest.mark.parametrize("how", ["due", "triggered", "missed", "retried"])
async def test_a_fire_is_dead_as_soon_as_it_is_postponed_beyond_its_thirty_days(how: str) -> None:
    clock = ManualClock(START_MS)
    async with connect("sqlite://", clock=clock) as t:

        @t.handler("work")
        async def work(delivery: Delivery) -> None:
            raise RetryLater(after=timedelta(days=12), reason="the season has not begun")

        when = Cron("0 13 20 11 *")  # an hour later, and once a year
        fields: dict[str, Any] = {"policy": Policy(missed="all"), "enabled": how != "triggered"}
        await t.schedules.put(Schedule(owner="u1", key="k", when=when, target=PythonTarget("work"), **fields))
        if how == "triggered":
            await t.trigger("u1", "k")
        else:
            clock.advance(timedelta(hours=1, days=40 if how == "missed" else 0))
        assert await _postponed_twice(t, clock)
        if how == "retried":
            (dead,) = (await t.fires.list(state="dead")).items
            clock.advance(timedelta(days=90))
            await t.fires.retry(dead.id)
            assert await _postponed_twice(t, clock), "its thirty days began again"
        (dead,) = (await t.fires.list(state="dead")).items
        assert "which is more than 30 days after" in str(dead.reason)
        assert str(dead.reason).endswith("the season has not begun")
        entry = (await t.fires.history("u1", "k")).items[0]
        assert (entry.happened, entry.gave_up, entry.detail) == ("failed", True, dead.reason)


async def _postponed_twice(t: Tickler, clock: ManualClock) -> bool:
    """Return whether it is postponed twice, by twelve days, and is dead the third time."""
    for _ in range(2):
        if (await t.tick()).postponed != 1:
            return False
        clock.advance(timedelta(days=12))
    return (await t.tick()).dead == 1


async def test_a_fire_that_waited_for_a_postponed_one_has_its_own_thirty_days() -> None:
    clock = ManualClock(START_MS)
    async with connect("sqlite://", clock=clock) as t:
        calls: Counter[int] = Counter()

        @t.handler("work")
        async def work(delivery: Delivery) -> None:
            calls[delivery.nominal_at] += 1
            if calls[delivery.nominal_at] == 1:
                raise RetryLater(after=timedelta(days=29 if delivery.nominal_at == START_MS + DAY_MS else 20))

        policy = Policy(overlap="wait")
        await t.schedules.put(Schedule(owner="u1", key="k", when=Cron("0 12 * * *"), target=PythonTarget("work"), policy=policy))
        clock.advance(timedelta(days=1))
        assert (await t.tick()).postponed == 1
        clock.advance(timedelta(days=1))
        assert (await t.tick()).claimed == 0, "the second waits"
        clock.advance(timedelta(days=28))
        summary = await t.tick()
        assert (summary.delivered, summary.postponed, summary.dead) == (1, 1, 0)


# Kills and lost answers.


@in_virtual_time
async def test_a_worker_that_is_killed_before_it_settles_a_postponement_has_used_an_attempt_up() -> None:
    bench = Bench()
    await bench.put(schedule(policy=Policy(attempts=2)))
    bench.behave = always(RetryLater(after=5))
    bench.faults.failing["fires.settle"] = StoreUnavailable("cut off")
    bench.faults.failing["fires.extend"] = StoreUnavailable("cut off")
    first = asyncio.create_task(bench.tickler.run())
    await bench.until_arrived(1)
    await asyncio.sleep(1)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    bench.faults.back()
    bench.behave = after(0)
    async with bench.running():
        await asyncio.sleep(60)
    assert [(arrival.key, arrival.attempt) for arrival in bench.arrived] == [("digest", 1), ("digest", 2)]
    assert await bench.happened() == ["expired", "delivered"]


@in_virtual_time
async def test_at_most_once_a_worker_that_is_killed_before_it_settles_a_postponement_has_lost_the_fire() -> None:
    bench = Bench()
    await bench.put(schedule(policy=AT_MOST_ONCE))
    bench.behave = always(RetryLater(after=5))
    bench.faults.away("fires.open")
    await ran(bench.tickler, 20)
    bench.faults.back()
    await ran(bench.another(), 100)
    async with bench.running():
        await asyncio.sleep(100)
    assert len(bench.arrived) == 1
    assert await bench.history() == []
    assert await bench.fires() == []


@in_virtual_time
async def test_at_most_once_a_postponement_whose_answer_was_lost_is_attempted_and_recorded_once() -> None:
    """However long the first worker repeats what it does not know to be done, and whoever delivers the fire meanwhile."""
    bench = Bench()
    await bench.put(schedule(policy=AT_MOST_ONCE))
    bench.behave = until(DUE_MS + 5_000)
    bench.faults.losing_answers.add("fires.open")
    async with bench.running():
        await asyncio.sleep(60)
        assert len(bench.arrived) == 2
        bench.faults.losing_answers.clear()
        await asyncio.sleep(60)
    assert len(bench.arrived) == 2
    assert await bench.happened() == ["postponed", "delivered"]
    assert await bench.fires() == []


@in_virtual_time
async def test_a_postponement_whose_answer_was_lost_is_found_in_the_history_however_long_ago_its_attempt_began() -> None:
    bench = Bench()
    policy = Policy(delivery="at-most-once", timeout=timedelta(minutes=5))
    await bench.put(schedule(when=Every(seconds=1, start=START_MS), policy=policy))

    async def behave(delivery: Delivery) -> None:
        if len(bench.arrived) == 1:
            await asyncio.sleep(200)  # and 200 others are delivered meanwhile
            raise RetryLater(after=20)

    bench.behave = behave
    bench.faults.losing_answers.add("fires.open")
    async with bench.running():
        await asyncio.sleep(205)
        bench.faults.losing_answers.clear()
        await asyncio.sleep(30)
    first = bench.arrived[0].nominal_at
    assert sum(arrival.nominal_at == first for arrival in bench.arrived) == 2
    assert [entry.happened for entry in await bench.history() if entry.nominal_at == first] == ["postponed", "delivered"]


@in_virtual_time
async def test_at_most_once_what_is_postponed_after_its_schedule_was_deleted_is_recorded_and_cancelled() -> None:
    bench = Bench()
    await bench.put(schedule(policy=AT_MOST_ONCE))

    async def behave(delivery: Delivery) -> None:
        await bench.tickler.schedules.delete("u1", "digest")
        raise RetryLater(after=5)

    bench.behave = behave
    async with bench.running():
        await asyncio.sleep(60)
    assert len(bench.arrived) == 1
    assert sorted(await bench.happened()) == ["cancelled", "postponed"]


@in_virtual_time
async def test_a_worker_that_is_stopped_takes_the_postponements_of_its_last_attempts_along() -> None:
    bench = Bench()
    await bench.put(schedule("one"), schedule("two", policy=AT_MOST_ONCE))
    bench.behave = after(5, RetryLater(after=300))
    async with bench.running(RunOptions(drain=30)):
        await bench.until_arrived(2)
    assert sorted(fire.key for fire in await bench.fires()) == ["one", "two"]
    assert await bench.happened("one") == await bench.happened("two") == ["postponed"]


# Any mix of them.


@given(
    attempts=st.integers(1, 5),
    at_most_once=st.booleans(),
    missed_days=st.sampled_from([0, 0, 45]),
    does=st.lists(
        st.sampled_from(["fail", "die", "counted"]) | st.integers(-5, 40).map(lambda days: days * DAY_MS // 2),
        min_size=1,
        max_size=8,
    ),
    delivered_at=st.none() | st.integers(0, 40),
)
def test_any_mix_of_postponements_failures_and_deaths_ends_within_its_attempts(
    attempts: int, at_most_once: bool, missed_days: int, does: list[str | int], delivered_at: int | None
) -> None:
    """What the target does is repeated until the fire is settled; a number is for how long it postpones."""
    policy = Policy(attempts=attempts, delivery="at-most-once" if at_most_once else "at-least-once")
    life = Life(policy, DUE_MS + missed_days * DAY_MS)
    for call in count():
        assert call <= 100 * len(does), "it goes on for ever"
        if not life.goes_on("deliver" if call == delivered_at else does[call % len(does)]):
            break
    assert 1 <= life.counted <= (1 if at_most_once else attempts)


class Life:
    """What becomes of a fire by the pure decisions alone, with a worker that comes by half a day after each instant."""

    def __init__(self, policy: Policy, now_ms: int) -> None:
        self.stored = hourly(policy)
        self.now_ms = self.opened_at = now_ms
        self.counted = 0
        self.claim = Claim(self.stored, DUE_MS, None, DUE_MS)
        if policy.delivery == "at-least-once":
            fire = replace(uncounted_fire(self.claim, now_ms, now_ms), attempt=1, worker="w")
            self.claim = self.claim._replace(fire=fire)

    def goes_on(self, doing: str | int) -> bool:
        """Make the claimed attempt, and claim the next. Return False if there is none."""
        fire = self.claim.fire
        if doing == "die":
            self.counted += 1
        else:
            fire = self._attempted(fire, doing)
        if fire is None or fire.state == "dead":
            return False
        assert fire.deliver_after is not None
        self.now_ms = max(fire.deliver_after, self.now_ms) + DAY_MS // 2
        request = LeaseRequest(now_ms=self.now_ms, limit=1, worker="w", lease_ms=10_000, expires_at=0)
        plan = lease([(fire, self.stored)], request)
        self.claim = plan.claims[0] if plan.claims else self.claim
        return bool(plan.claims)

    def _attempted(self, fire: Fire | None, doing: str | int) -> Fire | None:
        """Return the fire after the attempt."""
        outcome = within_bounds(self._outcome(doing), self.claim, self.now_ms)
        then, deliver_after = what_follows(outcome, self.stored.policy, 1 if fire is None else fire.attempt, self.now_ms)
        if then == "postpone":
            assert deliver_after is not None
            assert self.now_ms + MIN_POSTPONEMENT_MS <= deliver_after <= max(DUE_MS, self.opened_at) + MAX_POSTPONEMENT_MS
        else:
            self.counted += 1
        if fire is None:
            return uncounted_fire(self.claim, self.now_ms, deliver_after or 0) if then == "postpone" else None
        entry = Entry(owner="u1", key="k", nominal_at=DUE_MS, at=self.now_ms, happened="failed")
        return settled(fire, Settlement(self.stored.id, fire, then, entry, deliver_after), self.now_ms)

    def _outcome(self, doing: str | int) -> Outcome:
        if isinstance(doing, int):
            return Outcome(verdict="postpone", retry_at=self.now_ms + doing)
        if doing == "deliver":
            return Outcome(verdict="delivered")
        return Outcome(verdict="retry", retry_at=self.now_ms + 5_000 if doing == "counted" else None)
