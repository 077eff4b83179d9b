"""Conformance kit of manual changes: a person opens, retries or cancels a fire."""

from __future__ import annotations

import asyncio

import pytest

from tickler.errors import TransactionConflict
from tickler.fires.contract import FireStore
from tickler.model.fire import fire_id
from tickler.model.policy import Policy
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import EXPIRES_AT, FireFixtures, Worker, one_in_every_state, put_and_claim, triggered
from tickler.testing.fire_queries import Skip, entries, fires_of, keys, listed, nominals, skips
from tickler.testing.hourly import hour, schedule
from tickler.testing.settlements import dead, release, retry
from tickler.testing.store_contract import Begin, stored


class ManualChangeContract(FireFixtures):
    """Requirements on manual changes of fires. Part of `FireStoreContract`."""

    async def test_a_fire_opened_manually_is_another_than_the_scheduled_one_of_that_instant(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule())
        manual = triggered(at=hour(1))
        assert await fires.open(manual)
        assert await fires.get(manual.id) == manual
        (scheduled,) = fires_of(await worker.claim(hour(1)))
        (leased,) = fires_of(await worker.lease(hour(1)))
        assert scheduled.id == fire_id("u1", "digest", hour(1)) != manual.id
        assert (leased.id, leased.attempt, leased.nominal_at) == (manual.id, 1, hour(1))
        assert (await stored(schedules)).next_fire_at == hour(2)

    async def test_a_fire_opened_manually_is_leased_from_its_instant_on(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(payload=7))
        assert await fires.open(triggered(at=hour(0.5)))
        assert await worker.lease(hour(0.5) - 1) == []
        (claim,) = await worker.lease(hour(0.5))
        assert (claim.schedule.payload, claim.nominal_at) == (7, hour(0.5))

    async def test_a_fire_is_opened_once(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        await schedules.put(schedule())
        assert sum(await asyncio.gather(*(fires.open(triggered()) for _ in range(5)))) == 1
        (leased,) = fires_of(await worker.lease(hour(1)))
        assert await fires.open(triggered()) is False
        await worker.settle(hour(1), dead(leased, hour(1)))
        assert await fires.open(triggered()) is False
        assert len(await listed(fires, "dead")) == 1

    async def test_no_fire_is_opened_for_a_schedule_that_is_not_there(self, fires: FireStore) -> None:
        assert await fires.open(triggered("nothing")) is False
        assert await fires.get(triggered("nothing").id) is None

    async def test_a_fire_can_be_opened_while_its_schedule_is_paused(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(enabled=False))
        assert await fires.open(triggered())
        assert keys(await worker.lease(hour(1))) == ["digest"]

    async def test_a_fire_opened_in_a_transaction_is_open_when_that_commits(
        self, schedules: Schedules, fires: FireStore, worker: Worker, begin: Begin
    ) -> None:
        await schedules.put(schedule())
        async with begin() as transaction:
            assert await fires.open(triggered(), using=transaction)
            assert await fires.open(triggered("nothing"), using=transaction) is False
            assert await fires.get(triggered().id) is None, "nobody sees it before the commit"
        (leased,) = fires_of(await worker.lease(hour(1)))
        assert leased.id == triggered().id
        async with begin() as transaction:
            assert await fires.open(triggered(), using=transaction) is False

    async def test_a_fire_is_not_opened_if_the_transaction_is_rolled_back(
        self, schedules: Schedules, fires: FireStore, begin: Begin
    ) -> None:
        await schedules.put(schedule())

        async def attempt() -> None:
            async with begin() as transaction:
                assert await fires.open(triggered(), using=transaction)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await attempt()
        assert await fires.get(triggered().id) is None

    @pytest.mark.parametrize("change", ["delete", "open"])
    async def test_a_unit_of_work_conflicts_if_its_fire_can_no_longer_be_opened(
        self, schedules: Schedules, fires: FireStore, unit: Begin, change: str
    ) -> None:
        await schedules.put(schedule())

        async def attempt() -> None:
            async with unit() as transaction:
                await schedules.put(schedule("other"), using=transaction)
                assert await fires.open(triggered(), using=transaction)
                await (schedules.delete("u1", "digest") if change == "delete" else fires.open(triggered()))

        with pytest.raises(TransactionConflict, match="u1/digest"):
            await attempt()
        assert await schedules.get("u1", "other") is None
        assert (await fires.get(triggered().id) is None) is (change == "delete")

    async def test_a_schedule_is_put_and_fired_in_one_transaction_of_the_caller(
        self, schedules: Schedules, fires: FireStore, worker: Worker, own: Begin
    ) -> None:
        async with own() as transaction:
            await schedules.put(schedule(), using=transaction)
            assert await schedules.get("u1", "digest") is None
            assert await schedules.get("u1", "digest", using=transaction) is not None
            assert await fires.open(triggered(), using=transaction)
        assert keys(await worker.lease(hour(1))) == ["digest"]

    async def test_a_dead_fire_is_retried_from_now_on_with_no_attempts_counted(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        await worker.settle(hour(1), dead(fire, hour(1)))
        before = await fires.get(fire.id)
        assert await fires.change(fire.id, "open", hour(1.5), expires_at=EXPIRES_AT, why="by ada") == before
        after = await fires.get(fire.id)
        assert after is not None
        assert (after.state, after.attempt, after.deliver_after, after.worker) == ("open", 0, hour(1.5), None)
        assert (before and before.opened_at, after.opened_at) == (hour(1), hour(1.5)), "what counts from its opening begins anew"
        assert await listed(fires, "dead") == []
        (leased,) = fires_of(await worker.lease(hour(1.5)))
        assert (leased.id, leased.attempt, leased.nominal_at) == (fire.id, 1, hour(1))
        again = (await entries(fires))[0]
        assert (again.happened, again.fire_id, again.at, again.detail) == ("retried", fire.id, hour(1.5), "by ada")

    async def test_a_dead_fire_that_is_retried_overlaps(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker, policy=Policy(overlap="skip"))
        await worker.settle(hour(1), dead(fire, hour(1)))
        await fires.change(fire.id, "open", hour(1.5), expires_at=EXPIRES_AT)
        assert await worker.claim(hour(2)) == []
        assert await skips(fires) == [Skip("overlap", hour(2), hour(2), 1)]

    async def test_only_a_dead_fire_is_retried(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        made = await one_in_every_state(schedules, worker)
        (waiting,) = await listed(fires, "waiting")
        for id in (made["leased"].id, waiting.id, "nothing"):
            before = await fires.get(id)
            assert await fires.change(id, "open", hour(3), expires_at=EXPIRES_AT) is None
            assert await fires.get(id) == before
        await worker.settle(hour(3), retry(made["leased"], hour(2), hour(9)))
        assert await fires.change(made["leased"].id, "open", hour(3), expires_at=EXPIRES_AT) is None
        assert await worker.lease(hour(3)) == [], "a retry that was due later was not moved"

    async def test_a_fire_is_cancelled_when_it_waits_is_dead_or_open_and_not_leased(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        made = await one_in_every_state(schedules, worker)
        await worker.settle(hour(3), retry(made["leased"], hour(2), hour(9)))
        (waiting,) = await listed(fires, "waiting")
        for id in (waiting.id, made["dead"].id, made["leased"].id):
            before = await fires.get(id)
            assert before is not None
            assert await fires.change(id, "cancelled", hour(3.5), expires_at=EXPIRES_AT) == before
            assert await fires.get(id) is None
            assert await fires.change(id, "cancelled", hour(3.5), expires_at=EXPIRES_AT) is None
        cancelled = [entry for entry in await entries(fires) if entry.happened == "cancelled"]
        assert {(entry.fire_id, entry.nominal_at, entry.at, entry.detail) for entry in cancelled} == {
            (waiting.id, hour(3), hour(3.5), "by hand"),
            (made["dead"].id, hour(1), hour(3.5), "by hand"),
            (made["leased"].id, hour(2), hour(3.5), "by hand"),
        }
        assert await worker.lease(hour(9)) == []

    async def test_a_fire_that_is_leased_is_not_cancelled(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker)
        assert await fires.change(fire.id, "cancelled", hour(1) + 1, expires_at=EXPIRES_AT) is None
        assert await fires.get(fire.id) == fire
        assert await entries(fires) == []
        await worker.settle(hour(1) + 2, release(fire))
        assert await fires.change(fire.id, "cancelled", hour(1) + 3, expires_at=EXPIRES_AT) is not None

    async def test_a_cancelled_instant_does_not_come_back(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker)
        await worker.settle(hour(1), retry(fire, hour(1), hour(1)))
        await fires.change(fire.id, "cancelled", hour(1), expires_at=EXPIRES_AT)
        assert await worker.claim(hour(1.5)) == []
        assert await worker.lease(hour(1.5)) == []
        assert nominals(await worker.claim(hour(2))) == [hour(2)]
