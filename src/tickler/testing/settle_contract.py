"""Conformance kit of settling: the history entry, the fire and the schedule after an attempt."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from tickler.clock import ManualClock
from tickler.fires.contract import FireStore
from tickler.model.fire import Entry, Settlement
from tickler.model.policy import Policy
from tickler.model.schedule import Id
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import FireFixtures, Worker, put_and_claim, triggered
from tickler.testing.fire_queries import entries, fires_of, keys, listed
from tickler.testing.hourly import AT_MOST_ONCE, CATCH_UP, ONCE, hour, schedule
from tickler.testing.settlements import dead, done, entry, noted, release, retry
from tickler.testing.store_contract import stored
from tickler.when import At

LATER = At("2030-11-20T18:00:00Z")


class SettleContract(FireFixtures):
    """Requirements on settling. Part of `FireStoreContract`."""

    async def test_what_is_done_is_gone_and_in_the_history(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker)
        settlement = done(fire, hour(1) + 3)
        assert await worker.settle(hour(1) + 9, settlement) == []
        assert await fires.get(fire.id) is None
        assert await listed(fires, "open") == []
        assert await worker.lease(hour(1.9)) == []
        assert await entries(fires) == [settlement.entry]

    async def test_what_is_given_up_is_dead_with_its_reason_and_not_leased_again(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        settlement = dead(fire, hour(1))
        assert await worker.settle(hour(1), settlement) == []
        (buried,) = await listed(fires, "dead")
        assert (buried.id, buried.state, buried.attempt, buried.worker) == (fire.id, "dead", 1, None)
        assert buried.reason == "it answered 410"
        assert await fires.get(fire.id) == buried
        assert await listed(fires, "open") == []
        assert await worker.lease(hour(1.9)) == []
        assert await entries(fires) == [settlement.entry]

    async def test_what_is_delivered_at_most_once_is_only_remembered(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(delivery="at-most-once", missed="all")))
        settlements = [noted(claim, hour(3)) for claim in await worker.claim(hour(3))]
        assert await worker.settle(hour(3) + 1, *settlements) == []
        assert sorted(entry.nominal_at for entry in await entries(fires)) == [hour(1), hour(2), hour(3)]
        assert {entry.fire_id for entry in await entries(fires)} == {None}
        assert await listed(fires, "open") == []

    async def test_nothing_to_settle_is_settled(self, worker: Worker) -> None:
        assert await worker.settle(hour(1)) == []

    async def test_many_settlements_of_every_kind_are_each_applied(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        many = [f"k{n:03}" for n in range(300)]
        await schedules.put_many([schedule(key, policy=AT_MOST_ONCE if n % 5 == 4 else Policy()) for n, key in enumerate(many)])
        claims = {claim.schedule.key: claim for claim in await worker.claim(hour(1), 1000)}
        assert sorted(claims) == many
        now_ms = hour(1) + 100

        def settlement(n: int) -> Settlement:
            claim = claims[many[n]]
            if claim.fire is None:
                return noted(claim, now_ms)
            return (
                done(claim.fire, now_ms),
                retry(claim.fire, now_ms, now_ms + 1),
                dead(claim.fire, now_ms),
                release(claim.fire),
            )[n % 5]

        late = fires_of([claims[key] for key in many[:10:5]])
        assert await worker.settle(now_ms, *(done(fire, now_ms) for fire in late)) == []
        returned = await worker.settle(now_ms, *(settlement(n) for n in range(300)))
        assert sorted(fire.key for fire in returned) == many[:10:5], "those that were settled before, and no other"
        assert [fire.key for fire in sorted(await listed(fires, "dead"), key=lambda fire: fire.key)] == many[2::5]
        assert sorted(fire.key for fire in await listed(fires, "open")) == sorted(many[1::5] + many[3::5])
        leased = {fire.key: fire.attempt for fire in fires_of(await other.lease(now_ms + 1, 1000))}
        assert leased == dict.fromkeys(many[1::5], 2) | dict.fromkeys(many[3::5], 1)
        for n, happened in {290: ["delivered"], 291: ["failed"], 292: ["failed"], 293: [], 294: ["delivered"]}.items():
            assert [entry.happened for entry in await entries(fires, many[n])] == happened

    async def test_fires_of_one_schedule_are_settled_together_each_in_its_way(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=CATCH_UP))
        first, second, third, fourth, fifth = fires_of(await worker.claim(hour(5)))
        now_ms = hour(5) + 7
        settlements = [done(first, now_ms), retry(second, now_ms, hour(6)), dead(third, now_ms), release(fourth)]
        assert await worker.settle(now_ms, *settlements) == []
        assert [(fire.id, fire.attempt, fire.worker) for fire in await listed(fires, "open")] == [
            (second.id, 1, None),
            (fourth.id, 0, None),
            (fifth.id, 1, "worker"),
        ]
        assert [fire.id for fire in await listed(fires, "dead")] == [third.id]
        assert sorted(entry.nominal_at for entry in await entries(fires)) == [hour(1), hour(2), hour(3)]

    async def test_settling_twice_changes_nothing_and_is_told(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule("done"), schedule("dead"), schedule("retry")])
        claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(1)))}
        settlements = [
            done(claimed["done"], hour(1)),
            dead(claimed["dead"], hour(1)),
            retry(claimed["retry"], hour(1), hour(1.5)),
        ]
        assert await worker.settle(hour(1), *settlements) == []
        before = [await fires.get(fire.id) for fire in claimed.values()]
        returned = await worker.settle(hour(1), *settlements)
        assert sorted(fire.id for fire in returned) == sorted(fire.id for fire in claimed.values())
        assert [await fires.get(fire.id) for fire in claimed.values()] == before

    async def test_an_attempt_that_lost_its_lease_is_told_apart_from_the_one_after_it(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        """One worker may hold both, and settle them together."""
        for then in (done, dead):
            claimed = await put_and_claim(schedules, worker)
            (again,) = fires_of(await worker.lease(hour(1.5)))
            assert await worker.settle(hour(1.5), done(claimed, hour(1)), then(again, hour(1.5))) == [claimed]
            assert await listed(fires, "open") == []
            await schedules.delete("u1", "digest")

    async def test_of_two_who_settle_one_fire_at_once_exactly_one_does(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n}") for n in range(10)])
        claimed = fires_of(await worker.claim(hour(1)))
        answers = await asyncio.gather(*(worker.settle(hour(1), end(fire, hour(1))) for fire in claimed for end in (done, dead)))
        assert [sorted(map(len, answers[n : n + 2])) for n in range(0, 20, 2)] == [[0, 1]] * 10
        gone = [await fires.get(fire.id) is None for fire in claimed]
        assert gone == [not answers[n] for n in range(0, 20, 2)]

    # Schedules that are deleted after delivery.

    @pytest.mark.parametrize("policy", [Policy(), AT_MOST_ONCE], ids=lambda policy: policy.delivery)
    async def test_a_finished_schedule_goes_after_its_delivery_and_its_history_stays(
        self, schedules: Schedules, fires: FireStore, worker: Worker, policy: Policy
    ) -> None:
        await schedules.put(schedule(when=ONCE, policy=policy))
        (claim,) = await worker.claim(hour(1))
        settlement = noted(claim, hour(1), delete_schedule=True)
        if claim.fire is not None:
            settlement = done(claim.fire, hour(1), delete_schedule=True)
        assert await worker.settle(hour(1), settlement) == []
        assert await schedules.get("u1", "digest") is None
        assert await entries(fires) == [settlement.entry]

    async def test_a_finished_schedule_stays_when_nobody_asks_for_it_to_go(self, schedules: Schedules, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker, when=ONCE, delete_after=False)
        await worker.settle(hour(1), done(fire, hour(1)))
        assert (await stored(schedules)).state == "finished"

    async def test_a_schedule_stays_while_its_fire_is_dead(self, schedules: Schedules, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker, when=ONCE)
        await worker.settle(hour(1), dead(fire, hour(1), delete_schedule=True))
        assert (await stored(schedules)).state == "finished"

    @pytest.mark.parametrize("state", ["open", "dead"])
    async def test_a_schedule_stays_while_another_fire_of_it_is_open_or_dead(
        self, schedules: Schedules, fires: FireStore, worker: Worker, state: str
    ) -> None:
        await schedules.put(schedule(when=ONCE))
        assert await fires.open(triggered())
        (fire,) = fires_of(await worker.claim(hour(1)))
        (second,) = fires_of(await worker.lease(hour(1)))
        if state == "dead":
            await worker.settle(hour(1), dead(second, hour(1)))
        assert await worker.settle(hour(1), done(fire, hour(1), delete_schedule=True)) == []
        assert (await stored(schedules)).state == "finished"
        assert [found.id for found in await listed(fires, state)] == [second.id]
        if state == "open":
            await worker.settle(hour(1), done(second, hour(1), delete_schedule=True))
            assert await schedules.get("u1", "digest") is None

    async def test_a_schedule_stays_while_another_fire_of_it_waits(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        policy = Policy(missed="all", overlap="wait")
        await schedules.put(schedule(ends_at=hour(2), delete_after=True, policy=policy))
        (fire,) = fires_of(await worker.claim(hour(2)))
        await worker.settle(hour(2), done(fire, hour(2), delete_schedule=True))
        assert (await stored(schedules)).state == "finished"
        (last,) = fires_of(await worker.lease(hour(2)))
        await worker.settle(hour(2), done(last, hour(2), delete_schedule=True))
        assert await schedules.get("u1", "digest") is None

    async def test_a_schedule_stays_while_the_fire_is_leased_by_another(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        late = await put_and_claim(schedules, worker, when=ONCE)
        (held,) = fires_of(await other.lease(hour(2)))
        assert await worker.settle(hour(2), done(late, hour(1), delete_schedule=True)) == [late]
        assert (await stored(schedules)).state == "finished"
        assert await fires.get(late.id) == held

    async def test_the_last_of_several_settled_together_lets_the_schedule_go(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put(schedule(ends_at=hour(3), delete_after=True, policy=CATCH_UP))
        settlements = [done(fire, hour(3), delete_schedule=True) for fire in fires_of(await worker.claim(hour(3)))]
        assert await worker.settle(hour(3), *settlements) == []
        assert await schedules.get("u1", "digest") is None

    async def test_a_schedule_that_is_active_stays(self, schedules: Schedules, worker: Worker, clock: ManualClock) -> None:
        await schedules.put_many([schedule("hourly"), schedule("again", ONCE)])
        claimed = fires_of(await worker.claim(hour(1)))
        clock.set(hour(1))
        await schedules.put(schedule("again", LATER))
        assert await worker.settle(hour(1), *(done(fire, hour(1), delete_schedule=True) for fire in claimed)) == []
        assert (await stored(schedules, "hourly")).state == (await stored(schedules, "again")).state == "active"
        assert sorted(keys(await worker.claim(hour(6)))) == ["again", "hourly"]

    async def test_a_schedule_that_is_put_again_while_it_goes_is_there(
        self, schedules: Schedules, worker: Worker, clock: ManualClock
    ) -> None:
        await schedules.put_many([schedule(f"k{n:02}", ONCE) for n in range(20)])
        claimed = fires_of(await worker.claim(hour(1)))
        clock.set(hour(1))
        await asyncio.gather(
            *(worker.settle(hour(1), done(fire, hour(1), delete_schedule=True)) for fire in claimed),
            *(schedules.put(schedule(fire.key, LATER)) for fire in claimed),
        )
        assert {(await stored(schedules, fire.key)).state for fire in claimed} == {"active"}

    async def test_a_fire_that_is_opened_while_its_schedule_goes_is_refused_or_keeps_it(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n:02}", ONCE) for n in range(20)])
        claimed = fires_of(await worker.claim(hour(1)))
        settlements = [worker.settle(hour(1), done(fire, hour(1), delete_schedule=True)) for fire in claimed]
        opened, _ = await asyncio.gather(
            asyncio.gather(*(fires.open(triggered(fire.key)) for fire in claimed)), asyncio.gather(*settlements)
        )
        kept = [fire.key for fire, open in zip(claimed, opened, strict=True) if open]
        assert sorted(fire.key for fire in await listed(fires, "open")) == sorted(kept)
        assert sorted(each.key for each in (await schedules.list()).items) == sorted(kept)

    async def test_an_entry_comes_back_as_it_was_given(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        await schedules.put_many([schedule("full"), schedule("bare")])
        claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(1)))}
        full = Entry(
            owner="u1",
            key="full",
            nominal_at=hour(1),
            at=hour(1) + 17,
            happened="failed",
            fire_id=claimed["full"].id,
            attempt=1,
            status=0,
            duration_ms=0,
            detail="it said: 'nö' 🐌\n",
            answer="é日\u2028" + "ä" * 1021,
            worker="worker",
        )
        bare = entry(claimed["bare"], hour(1))
        await worker.settle(
            hour(1) + 20,
            Settlement(Id("u1", "full"), claimed["full"], "retry", full, hour(2)),
            Settlement(Id("u1", "bare"), claimed["bare"], "done", bare),
        )
        assert await entries(fires, "full") == [full]
        assert await entries(fires, "bare") == [bare]
        assert (await entries(fires, "full"))[0].late_ms == 17

    async def test_a_null_character_in_what_a_target_said_stops_nobodys_settlement(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule("odd"), schedule("even")])
        odd, even = sorted(fires_of(await worker.claim(hour(1))), key=lambda fire: fire.key, reverse=True)
        failed = replace(entry(odd, hour(1), "failed", "it said \x00"), answer="\x00")
        assert await worker.settle(hour(1), Settlement(Id("u1", "odd"), odd, "retry", failed, hour(2)), done(even, hour(1))) == []
        assert await fires.get(even.id) is None
        assert [said.happened for said in await entries(fires, "odd")] == ["failed"]
        tried = await fires.get(odd.id)
        assert tried is not None
        assert (tried.worker, tried.deliver_after) == (None, hour(2))
        assert str(tried.reason).startswith("it said")
