"""`tickler.testing.play`: what comes due while time passes, in the same order each time."""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from datetime import time as wall_time
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import tickler
from tickler import (
    At,
    Cron,
    Delivery,
    Every,
    GiveUp,
    HttpTarget,
    InvalidInput,
    ManualClock,
    Outcome,
    Policy,
    PythonTarget,
    Schedule,
    Tickler,
    Weekly,
    When,
)
from tickler.fires import Entry
from tickler.index.advance import ROW_FORMAT
from tickler.testing import Played, play

START = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


def schedule(key: str, when: When | str, *, owner: str = "u1", handler: str = "work", **policy: Any) -> Schedule:
    return Schedule(owner=owner, key=key, when=when, target=PythonTarget(handler), policy=Policy(**policy))


def opened(url: str, clock: ManualClock) -> Tickler:
    """A Tickler with handlers that succeed, fail twice, and fail always."""
    t = tickler.connect(url, clock=clock)

    @t.handler("work")
    async def work(delivery: Delivery) -> str:
        return delivery.key

    @t.handler("flaky")
    def flaky(delivery: Delivery) -> None:
        if delivery.attempt < 3:
            raise ConnectionError("hung up")

    @t.handler("broken")
    async def broken(delivery: Delivery) -> None:
        raise GiveUp("closed")

    return t


def seen(played: Played) -> list[tuple[object, ...]]:
    return [(e.key, e.nominal_at, e.at, e.attempt, e.happened, e.detail, e.answer, e.gave_up) for e in played.attempts]


async def mixed(url: str, clock: ManualClock, seed: int = 0) -> Played:
    async with opened(url, clock) as t:
        await t.schedules.put_many(
            [
                schedule("daily", Cron("0 9 * * *", tz="Europe/Paris")),
                schedule("same", Cron("0 9 * * *", tz="Europe/Paris"), owner="u0"),
                schedule("flaky", "0 10 * * *", handler="flaky"),
                schedule("dead", "@daily", handler="broken"),
                schedule("maybe", "@every 10h", delivery="at-most-once"),
                schedule("once", At(START + DAY)),
            ]
        )
        played = await play(t, clock, until=3 * DAY, seed=seed)
        assert clock.now_ms() == (START + 3 * DAY).timestamp() * 1000
        assert await t.schedules.get("u1", "once") is None, "it was delivered, and is gone"
        assert [fire.key for fire in (await t.fires.list(state="dead")).items] == ["dead"] * 3
        history = (await t.fires.history("u1", "flaky")).items[::-1]
        assert history == played.of("u1", "flaky").attempts
    return played


STORES = ["memory", "sqlite", "postgres", *(["dynamodb"] if os.environ.get("TICKLER_SOAK") == "1" else [])]


@pytest.mark.parametrize("any_url", STORES, indirect=True)
async def test_every_store_plays_the_same(any_url: str, clock: ManualClock) -> None:
    played = await mixed(any_url, clock)
    assert Counter(entry.key for entry in played.delivered) == {"daily": 3, "same": 3, "flaky": 3, "maybe": 7, "once": 1}
    assert Counter(entry.key for entry in played.failed) == {"flaky": 6, "dead": 3}
    assert [entry.nominal for entry in played.dead] == [START + n * DAY for n in (1, 2, 3)]
    at_nine = [(entry.owner, entry.key) for entry in played.attempts if entry.nominal.hour == 8]
    assert at_nine == [("u0", "same"), ("u1", "daily")] * 3
    assert [entry.at for entry in played.attempts] == sorted(entry.at for entry in played.attempts)
    assert seen(played) == seen(await mixed("memory://", ManualClock(START)))


async def test_the_random_part_of_retries_comes_from_the_seed_alone(clock: ManualClock) -> None:
    before = random.getstate()
    first, again, other = [await mixed("memory://", ManualClock(START), seed) for seed in (1, 1, 2)]
    assert seen(first) == seen(again) != seen(other)
    assert random.getstate() == before
    delays = {entry.at - entry.nominal_at for entry in first.of("u1", "flaky").attempts if entry.attempt == 2}
    assert len(delays) == 3
    assert all(0 <= delay <= 5_000 for delay in delays)


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
async def test_a_weekly_plan_keeps_its_local_times_through_a_year(url: str, clock: ManualClock) -> None:
    async with opened(url, clock) as t:
        plans = {"America/New_York": ("tue", wall_time(9)), "Europe/Berlin": ("sun", wall_time(2, 30))}
        for tz, (day, at) in plans.items():
            await t.schedules.put(schedule(tz, Weekly({day: f"{at:%H:%M}"}, tz=tz)))
        played = await play(t, clock, until=START + 365 * DAY)
    offsets = set()
    for tz, (day, at) in plans.items():
        zone, weekday = ZoneInfo(tz), ("mon", "tue", "wed", "thu", "fri", "sat", "sun").index(day)
        days = [date(2030, 1, 1) + n * DAY for n in range(365)]
        expected = [datetime.combine(each, at, zone) for each in days if each.weekday() == weekday]
        # In Berlin, 2:30 does not exist on the last Sunday of March, so it is the first instant after the gap.
        gap = datetime(2030, 3, 31, 3, tzinfo=zone)
        expected = [gap if tz == "Europe/Berlin" and each.date() == gap.date() else each for each in expected]
        times = played.of("u1", tz).nominal_times(tz)
        assert [each.isoformat() for each in times] == [each.isoformat() for each in expected]
        assert len(times) in (52, 53)
        offsets |= {(tz, each.utcoffset()) for each in times}
    assert len(offsets) == 4, "summer and winter in both"
    assert all(entry.late_ms == 0 for entry in played.attempts)


async def test_what_handlers_do_is_followed(clock: ManualClock) -> None:
    async with opened("sqlite://", clock) as t:
        did: list[str] = []

        @t.handler("chain")
        async def chain(delivery: Delivery) -> None:
            did.append(f"{delivery.key} {delivery.nominal:%d %H:%M}")
            if delivery.key == "first":
                await t.schedules.put(schedule("second", At(delivery.nominal + timedelta(hours=2)), handler="chain"))
                await t.trigger("u1", "manual")
            elif delivery.key == "second":
                await t.schedules.delete("u1", "first")

        await t.schedules.put(schedule("first", "@daily", handler="chain"))
        await t.schedules.put(schedule("manual", "@yearly", handler="chain"))
        played = await play(t, clock, until=5 * DAY)
        assert did == ["first 02 00:00", "manual 02 00:00", "second 02 02:00"]
        assert len(played.delivered) == 3


@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
async def test_a_handler_may_postpone_its_fire(clock: ManualClock, delivery: str) -> None:
    async with opened("sqlite://", clock) as t:

        @t.handler("bank")
        async def bank(delivery: Delivery) -> None:
            if delivery.nominal.day == 2 and clock.now_ms() < (START + DAY + timedelta(hours=9)).timestamp() * 1000:
                raise tickler.RetryLater(after=timedelta(hours=4), reason="closed")
            if delivery.nominal.day == 3:
                raise tickler.RetryLater(after=timedelta(days=12), reason="closed")

        await t.schedules.put(schedule("bank", "@daily", handler="bank", delivery=delivery))
        played = await play(t, clock, until=START + 32 * DAY)
        assert len(played.delivered) == 31, "each day but one, on which the bank closed for good"
        bank_2nd = [entry for entry in played.attempts if entry.nominal.day == 2 and entry.nominal.month == 1]
        assert [(to_hours(entry.at), entry.happened) for entry in bank_2nd] == [
            *((24.0 + 4 * n, "postponed") for n in range(3)),
            (36.0, "delivered"),
        ]
        assert [entry.nominal.day for entry in played.postponed] == [2, 2, 2, 3, 3]
        if delivery == "at-least-once":
            (dead,) = played.dead
            assert (dead.nominal, to_hours(dead.at)) == (START + 2 * DAY, 24.0 * (2 + 24))


async def test_a_handler_may_take_virtual_time_and_policies_decide_about_what_it_misses(clock: ManualClock) -> None:
    async with opened("memory://", clock) as t:

        @t.handler("slow")
        async def slow(delivery: Delivery) -> None:
            clock.advance(timedelta(hours=2.5))

        await t.schedules.put(schedule("slow", Every(hours=1, start=START), handler="slow", missed="latest"))
        played = await play(t, clock, until=timedelta(hours=7))
        assert [entry.nominal.hour for entry in played.delivered] == [1, 3, 6]
        assert [entry.duration_ms for entry in played.delivered] == [9_000_000] * 3
        skipped = [entry for entry in (await t.fires.history("u1", "slow")).items if entry.happened == "skipped"]
        assert [(entry.nominal.hour, entry.count) for entry in reversed(skipped)] == [(2, 1), (4, 2)]


async def test_waiting_fires_and_those_of_a_dead_worker_come_in_their_time(clock: ManualClock) -> None:
    async with opened("memory://", clock) as t:
        await t.schedules.put(schedule("waits", Every(hours=1, start=START), overlap="wait"))
        clock.advance(timedelta(hours=1))
        (claim,) = await t.fires.claim(clock.now_ms(), worker="ghost", lease_ms=9_000_000)
        played = await play(t, clock, until=timedelta(hours=3.5))
        assert [(entry.nominal.hour, entry.attempt) for entry in played.delivered] == [(1, 2), (2, 1), (3, 1), (4, 1)]
        assert [to_hours(entry.at) for entry in played.delivered] == [3.5, 3.5, 3.5, 4.0]
        assert claim.fire is not None


async def test_a_target_that_is_gone_pauses_its_schedule(clock: ManualClock) -> None:
    class Gone:
        async def open(self) -> None: ...

        async def close(self) -> None: ...

        async def deliver(self, delivery: Delivery, target: HttpTarget) -> Outcome:
            return Outcome(verdict="gone", status=410, detail="is gone")

    async with opened("memory://", clock) as t:
        t.deliver_with(HttpTarget, Gone())
        await t.schedules.put(Schedule(owner="u1", key="hook", when="@daily", target="https://gone.example/"))
        played = await play(t, clock, until=10 * DAY)
        assert len(played.dead) == 1
        stored = await t.schedules.get("u1", "hook")
        assert stored is not None
        assert (stored.state, stored.reason) == ("paused", "its target is gone")


async def test_what_no_worker_can_claim_does_not_stop_time(clock: ManualClock) -> None:
    async with opened("memory://", clock) as t:
        await t.schedules.put(schedule("newer", "@daily"))
        await t.schedules.put(schedule("digest", "@daily"))
        t.store.index._tables.index["u1", "newer"].format = ROW_FORMAT + 1  # type: ignore[attr-defined]  # of the memory store
        await t.index.upsert(tickler.IndexRow("u1", "mine", Cron("@hourly"), clock.now_ms()))  # dispatched by its caller
        played = await play(t, clock, until=3 * DAY)
        assert [entry.key for entry in played.delivered] == ["digest"] * 3


async def test_time_may_be_played_on_from_where_it_stands(clock: ManualClock) -> None:
    async with opened("memory://", clock) as t:
        await t.schedules.put(schedule("digest", "@daily"))
        played = [await play(t, clock, until=START + n * DAY) for n in (1, 1, 2, 4)]
        assert [len(each.delivered) for each in played] == [1, 0, 1, 2]


async def test_more_attempts_than_allowed_are_an_error_that_names_the_busiest_schedule(clock: ManualClock) -> None:
    async with opened("memory://", clock) as t:
        await t.schedules.put(schedule("busy", "@every 1s"))
        await t.schedules.put(schedule("calm", "@every 10s"))
        with pytest.raises(InvalidInput) as refused:
            await play(t, clock, until=365 * DAY, max_attempts=110)
    assert str(refused.value) == (
        "play: more than 110 attempts were made by 2030-01-01T00:01:41+00:00, 101 of them of u1/busy: "
        "choose an earlier `until`, or pass max_attempts"
    )


async def test_a_fire_that_nothing_here_delivers_is_an_error_and_not_a_month_of_waiting(clock: ManualClock) -> None:
    async with opened("memory://", clock) as t:
        await t.schedules.put(schedule("typo", "@daily", handler="wrok"))
        with pytest.raises(InvalidInput, match=r"u1/typo cannot be delivered: .*wrok"):
            await play(t, clock, until=DAY)


async def test_what_cannot_be_played_is_refused(clock: ManualClock) -> None:
    async with opened("memory://", clock) as t:
        with pytest.raises(InvalidInput, match="has passed at 2030-01-01T00:00:00"):
            await play(t, clock, until=START - DAY)
        with pytest.raises(InvalidInput, match="pass the same ManualClock to connect"):
            await play(t, ManualClock(START), until=DAY)
        async with t.running():
            with pytest.raises(InvalidInput, match="a worker runs here"):
                await play(t, clock, until=DAY)


def test_it_plays_without_await(sqlite_url: str, clock: ManualClock) -> None:
    with tickler.connect_sync(sqlite_url, clock=clock) as t:
        told: list[Entry] = []

        def tell(delivery: Delivery) -> None:
            told.append(t.fires.history("u1", "digest").items)  # it may call, as any other thread may

        t.handler("tell")(tell)
        t.schedules.put(schedule("digest", "0 9 * * *", handler="tell"))
        played = play(t, clock, until=3 * DAY)
        assert [f"{each:%d %H:%M}" for each in played.nominal_times()] == ["01 09:00", "02 09:00", "03 09:00"]
        assert [len(items) for items in told] == [0, 1, 2]  # type: ignore[arg-type]  # pages


async def test_ten_thousand_schedules_and_a_year_of_a_hundred(clock: ManualClock, soak: bool) -> None:
    number, days = (10_000, 3) if soak else (1_000, 1)
    async with opened("memory://", clock) as t:
        await t.schedules.put_many([schedule(f"k{n}", "0 9 * * *", owner=f"u{n % 50}") for n in range(number)])
        played = await play(t, clock, until=days * DAY)
        assert len(played.delivered) == number * days
    number, days = (100, 365) if soak else (5, 60)
    async with opened("memory://", ManualClock(START)) as t:
        await t.schedules.put_many([schedule(f"k{n:02}", Cron(f"{n % 60} {n // 60} * * *")) for n in range(number)])
        year = await play(t, t.clock, until=days * DAY)  # type: ignore[call-overload]  # it is a ManualClock
        assert len(year.delivered) == number * days
        assert [entry.key for entry in year.attempts[:3]] == ["k00", "k01", "k02"] if soak else True


def to_hours(ms: int) -> float:
    return (ms - START.timestamp() * 1000) / 3_600_000
