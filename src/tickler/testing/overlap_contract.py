"""Conformance kit of the `overlap` policy."""

from __future__ import annotations

import asyncio

import pytest

from tickler.clock import ManualClock
from tickler.fires.contract import FireStore
from tickler.model.fire import fire_id
from tickler.model.policy import Policy
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import EXPIRES_AT, FireFixtures, Worker, put_and_claim, triggered
from tickler.testing.fire_queries import Skip, fires_of, listed, nominals, skips
from tickler.testing.hourly import WAIT, hour, schedule
from tickler.testing.settlements import dead, done, retry
from tickler.testing.store_contract import HOUR_MS, stored

SKIP_OVERLAP = Policy(overlap="skip")


class OverlapContract(FireFixtures):
    """Requirements on `overlap`. Part of `FireStoreContract`."""

    async def test_an_overlap_is_skipped_while_one_is_open_and_claimed_again_after_it(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=SKIP_OVERLAP)
        assert await other.claim(hour(2)) == []
        assert await skips(fires) == [Skip("overlap", hour(2), hour(2), 1)]
        assert (await stored(schedules)).next_fire_at == hour(3)
        await worker.settle(hour(2.5), done(fire, hour(1)))
        assert nominals(await other.claim(hour(3))) == [hour(3)]

    @pytest.mark.parametrize("policy", [SKIP_OVERLAP, WAIT], ids=lambda policy: policy.overlap)
    async def test_a_fire_that_waits_for_its_next_attempt_is_open(
        self, schedules: Schedules, worker: Worker, policy: Policy
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=policy)
        await worker.settle(hour(1), retry(fire, hour(1), hour(9)))
        assert await worker.claim(hour(2)) == []

    @pytest.mark.parametrize("policy", [SKIP_OVERLAP, WAIT], ids=lambda policy: policy.overlap)
    async def test_a_dead_fire_is_not_open(self, schedules: Schedules, worker: Worker, policy: Policy) -> None:
        fire = await put_and_claim(schedules, worker, policy=policy)
        await worker.settle(hour(1), dead(fire, hour(1)))
        assert nominals(await worker.claim(hour(2))) == [hour(2)]

    async def test_the_open_fires_of_others_do_not_overlap(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many([schedule(key, policy=SKIP_OVERLAP) for key in ("a", "b")])
        assert len(await worker.claim(hour(1))) == 2
        await schedules.put(schedule("c", policy=SKIP_OVERLAP))
        assert [claim.schedule.key for claim in await worker.claim(hour(2))] == ["c"]

    async def test_a_second_fire_waits_until_the_one_before_it_is_done(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        await fires.extend([fire], hour(3))
        assert await other.claim(hour(2)) == []
        (waiting,) = await listed(fires, "waiting")
        assert (waiting.id, waiting.nominal_at, waiting.state) == (fire_id("u1", "digest", hour(2)), hour(2), "waiting")
        assert (waiting.attempt, waiting.worker) == (0, None)
        assert await other.lease(hour(2)) == []
        await worker.settle(hour(2.5), done(fire, hour(1)))
        assert await listed(fires, "waiting") == []
        (claim,) = await other.lease(hour(2.5))
        (leased,) = fires_of([claim])
        assert (claim.nominal_at, claim.due_at) == (hour(2), hour(2))
        assert (leased.id, leased.attempt, leased.worker, leased.state) == (waiting.id, 1, "other", "open")

    async def test_a_waiting_fire_is_woken_when_the_one_before_it_dies(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        await other.claim(hour(2))
        await worker.settle(hour(2), dead(fire, hour(1)))
        assert nominals(await other.lease(hour(2))) == [hour(2)]

    async def test_a_fire_that_was_claimed_before_others_had_to_wait_wakes_them_too(
        self, schedules: Schedules, fires: FireStore, worker: Worker, clock: ManualClock
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        clock.set(hour(1))
        await schedules.put(schedule(policy=WAIT))
        assert await worker.claim(hour(2)) == []
        await worker.settle(hour(2), done(fire, hour(2)))
        assert await listed(fires, "waiting") == []
        assert nominals(await worker.lease(hour(2))) == [hour(2)]

    async def test_what_was_claimed_ahead_and_had_to_wait_is_woken_for_its_time(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        assert await worker.claim(hour(1.9), ahead_ms=HOUR_MS // 5) == []
        assert await worker.settle(hour(1.95), done(fire, hour(1.95))) == []
        assert await worker.lease(hour(2) - 1) == []
        assert nominals(await worker.lease(hour(2))) == [hour(2)]

    async def test_a_fire_that_will_be_tried_again_wakes_nobody(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        await worker.claim(hour(2))
        await worker.settle(hour(2), retry(fire, hour(1), hour(3)))
        assert await worker.lease(hour(2)) == []
        assert len(await listed(fires, "waiting")) == 1

    async def test_waiting_fires_are_woken_one_at_a_time_in_nominal_order(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        for n in (2, 3, 4):
            assert await worker.claim(hour(n)) == []
        for n in (2, 3, 4):
            await worker.settle(hour(4), done(fire, hour(4)))
            (fire,) = fires_of(await worker.lease(hour(4)))
            assert fire.nominal_at == hour(n)
            assert len(await listed(fires, "waiting")) == 4 - n

    async def test_nobody_is_woken_while_another_fire_is_open(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        await worker.claim(hour(2))
        by_hand = triggered(at=hour(2.1))
        assert await fires.open(by_hand)
        await worker.settle(hour(2.2), done(fire, hour(1)))
        assert len(await listed(fires, "waiting")) == 1
        (leased,) = fires_of(await worker.lease(hour(2.2)))
        assert leased.id == by_hand.id
        await worker.settle(hour(2.3), done(leased, hour(2.2)))
        assert nominals(await worker.lease(hour(2.3))) == [hour(2)]

    async def test_a_waiting_fire_is_woken_when_the_one_before_it_dies_of_its_lease(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(overlap="wait", attempts=1)))
        await worker.claim(hour(1))
        await worker.claim(hour(2))
        leased = [*await other.lease(hour(2)), *await other.lease(hour(2))]
        assert nominals(leased) == [hour(2)]
        assert [fire.nominal_at for fire in await listed(fires, "dead")] == [hour(1)]

    async def test_a_waiting_fire_is_woken_when_the_one_before_it_is_cancelled(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        await worker.settle(hour(1), retry(fire, hour(1), hour(9)))
        await worker.claim(hour(2))
        assert await fires.change(fire.id, "cancelled", hour(2.5), expires_at=EXPIRES_AT)
        assert nominals(await worker.lease(hour(2.5))) == [hour(2)]

    async def test_of_all_missed_instants_the_first_is_claimed_and_the_others_wait(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(missed="all", overlap="wait", max_catchup=3)))
        assert nominals(await worker.claim(hour(4.5))) == [hour(1)]
        assert [fire.nominal_at for fire in await listed(fires, "waiting")] == [hour(2), hour(3)]
        assert await skips(fires) == [Skip("max_catchup", hour(4), hour(4), 1)]
        assert await worker.claim(hour(4.5)) == []

    async def test_of_all_missed_instants_the_first_is_claimed_and_the_others_overlap(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(missed="all", overlap="skip")))
        assert nominals(await worker.claim(hour(3.5))) == [hour(1)]
        assert await listed(fires, "waiting") == []
        assert await skips(fires) == [Skip("overlap", hour(2), hour(3), 2)]

    async def test_a_wake_beside_a_claim_leaves_nobody_waiting_for_nothing(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        every = [f"k{n:02}" for n in range(20)]
        await schedules.put_many([schedule(key, policy=WAIT) for key in every])
        owing = fires_of(await worker.claim(hour(1)))
        for n in range(2, 6):
            claiming = [other.claim(hour(n), 5) for _ in range(8)]
            settling = [worker.settle(hour(n), done(fire, hour(n))) for fire in owing]
            claimed, lost = await asyncio.gather(asyncio.gather(*claiming), asyncio.gather(*settling))
            assert lost == [[]] * 20
            assert await listed(fires, "waiting") == []
            claims = [claim for each in claimed for claim in each]
            owing = fires_of([*claims, *await other.claim(hour(n)), *await other.lease(hour(n))])
            assert sorted(fire.key for fire in owing) == every
            assert {fire.nominal_at for fire in owing} == {hour(n)}
