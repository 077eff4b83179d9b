"""Conformance kit of fires whose schedule is paused, changed or deleted."""

from __future__ import annotations

import asyncio

import pytest

from tickler.fires.contract import FireStore
from tickler.model.policy import Policy
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import FireFixtures, Worker, one_in_every_state, put_and_claim
from tickler.testing.fire_queries import entries, fires_of, happenings, listed
from tickler.testing.hourly import CATCH_UP, WAIT, hour, schedule
from tickler.testing.settlements import done, retry


class LifecycleContract(FireFixtures):
    """Requirements on fires when their schedule changes. Part of `FireStoreContract`."""

    async def test_a_pause_holds_new_fires_while_open_ones_finish(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        await worker.settle(hour(1), retry(fire, hour(1), hour(1.5)))
        await schedules.pause("u1", "digest")
        assert await worker.claim(hour(2)) == []
        (leased,) = fires_of(await worker.lease(hour(2)))
        assert (leased.id, leased.attempt) == (fire.id, 2)
        assert await worker.settle(hour(2), done(leased, hour(2))) == []
        assert await fires.get(fire.id) is None

    async def test_a_put_leaves_open_fires_alone(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        await one_in_every_state(schedules, worker)
        before = [await listed(fires, state) for state in ("open", "waiting", "dead")]
        assert [len(found) for found in before] == [1, 1, 1]
        await schedules.put(schedule(payload="new", policy=WAIT, ends_at=hour(90)))
        assert [await listed(fires, state) for state in ("open", "waiting", "dead")] == before

    @pytest.mark.parametrize("verb", ["delete", "delete_all", "declare"])
    async def test_a_deleted_schedule_takes_its_fires_along_and_leaves_its_history(
        self, schedules: Schedules, fires: FireStore, worker: Worker, verb: str
    ) -> None:
        made = await one_in_every_state(schedules, worker)
        kept = await put_and_claim(schedules, worker, "kept", owner="u2")
        (waiting,) = await listed(fires, "waiting")
        if verb == "delete":
            assert await schedules.delete("u1", "digest")
        elif verb == "delete_all":
            assert await schedules.delete_all("u1") == 1
        else:
            assert (await schedules.declare("u1", [])).removed == ["digest"]
        for fire in (*made.values(), waiting):
            assert await fires.get(fire.id) is None
        assert [await listed(fires, state) for state in ("open", "waiting", "dead")] == [[kept], [], []]
        assert [claim.schedule.owner for claim in await worker.lease(hour(9))] == ["u2"]
        assert await happenings(fires) == [
            ("cancelled", hour(1)),
            ("cancelled", hour(2)),
            ("cancelled", hour(3)),
            ("failed", hour(1)),
        ]
        cancelled = {entry.fire_id for entry in await entries(fires) if entry.happened == "cancelled"}
        assert cancelled == {made["dead"].id, made["leased"].id, waiting.id}

    async def test_many_fires_of_many_schedules_are_cancelled_with_them(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n:02}", policy=CATCH_UP) for n in range(30)])
        assert len(await worker.claim(hour(5), 150)) == 150
        assert await schedules.delete_all("u1") == 30
        assert await listed(fires, "open") == []
        assert await happenings(fires, "k00") == await happenings(fires, "k29") == [("cancelled", hour(n)) for n in range(1, 6)]

    async def test_a_schedule_that_is_put_again_after_its_deletion_begins_anew(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        before = await put_and_claim(schedules, worker, policy=WAIT)
        await schedules.delete("u1", "digest")
        await schedules.put(schedule(policy=WAIT))
        (fire,) = fires_of(await other.claim(hour(1)))
        assert (fire.id, fire.attempt, fire.worker) == (before.id, 1, "other")
        assert await worker.settle(hour(1), done(before, hour(1))) == [before]
        assert await fires.get(fire.id) == fire

    async def test_a_deletion_beside_a_claim_leaves_no_fires_behind(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n:02}") for n in range(30)])
        deletions = (schedules.delete("u1", f"k{n:02}") for n in range(30))
        claims, _ = await asyncio.gather(worker.claim(hour(1)), asyncio.gather(*deletions))
        assert await listed(fires, "open") == []
        for claim in claims:
            assert await happenings(fires, claim.schedule.key) == [("cancelled", hour(1))]

    async def test_a_deletion_beside_leases_that_ran_out_leaves_no_fires_behind(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        every = [f"k{n:02}" for n in range(30)]
        await schedules.put_many([schedule(key, policy=Policy(missed="all", overlap="wait", attempts=1)) for key in every])
        await worker.claim(hour(3))
        leases = (Worker(fires, f"w{n}").lease(hour(4), 3) for n in range(15))
        deletions = (schedules.delete("u1", key) for key in reversed(every))
        await asyncio.gather(asyncio.gather(*leases), asyncio.gather(*deletions))
        assert [await listed(fires, state) for state in ("open", "waiting", "dead")] == [[], [], []]
        for key in every:
            cancelled = [nominal_at for happened, nominal_at in await happenings(fires, key) if happened == "cancelled"]
            assert cancelled == [hour(1), hour(2), hour(3)]
