"""Conformance kit of releasing: a claimed fire that was not attempted is available again, and no attempt counts."""

from __future__ import annotations

from tickler.fires.contract import FireStore
from tickler.model.fire import Fire, Settlement, fire_id, release_reason, uncounted_fire
from tickler.model.policy import Policy
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import LEASE_MS, FireFixtures, Worker, put_and_claim, triggered
from tickler.testing.fire_queries import entries, fires_of, keys, listed
from tickler.testing.hourly import AT_MOST_ONCE, ONCE, hour, schedule
from tickler.testing.settlements import dead, done, release, retry

LATER = hour(1) + 5_000
REASON = "released: the worker has no handler 'digest'"


class ReleaseContract(FireFixtures):
    """Requirements on fires that are released. Part of `FireStoreContract`."""

    async def test_a_claim_without_a_fire_is_released_as_one_whose_first_attempt_is_to_come(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(policy=AT_MOST_ONCE, payload={"n": 1}))
        (claim,) = await worker.claim(hour(1))
        fire = uncounted_fire(claim, hour(1), LATER, REASON)
        assert await fires.open(fire)
        assert await fires.get(fire.id) == fire
        assert (fire.id, fire.attempt, fire.worker) == (fire_id("u1", "digest", hour(1)), 0, None)
        assert await other.lease(LATER - 1) == []
        (leased,) = await other.lease(LATER)
        assert (leased.schedule.payload, leased.nominal_at, leased.due_at) == ({"n": 1}, hour(1), hour(1))
        (again,) = fires_of([leased])
        assert (again.id, again.attempt, again.worker, again.reason) == (fire.id, 1, "other", REASON)
        assert await worker.lease(LATER) == []
        settlement = done(again, LATER)
        assert await other.settle(LATER, settlement) == []
        assert await fires.get(fire.id) is None
        assert await worker.lease(hour(1.9)) == []
        assert await entries(fires) == [settlement.entry]

    async def test_what_is_released_twice_is_there_once(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        await schedules.put(schedule(policy=AT_MOST_ONCE))
        (claim,) = await worker.claim(hour(1))
        fire = uncounted_fire(claim, hour(1), LATER)
        assert await fires.open(fire)
        assert not await fires.open(uncounted_fire(claim, hour(1) + 7, LATER + 7))
        (leased,) = await worker.lease(LATER)
        assert not await fires.open(fire)
        assert [found.id for found in await listed(fires, "open")] == [fire.id]
        assert await worker.lease(LATER) == []
        assert leased.fire is not None

    async def test_what_is_released_at_most_once_is_dead_when_its_next_attempt_is_not_heard_of(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await _released(schedules, fires, worker)
        await other.lease(LATER)
        assert await worker.lease(LATER + LEASE_MS) == []
        (buried,) = await listed(fires, "dead")
        assert (buried.id, buried.attempt) == (fire, 1)
        assert [entry.happened for entry in await entries(fires)] == ["expired"]

    async def test_what_is_released_at_most_once_and_fails_is_dead(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await _released(schedules, fires, worker)
        (leased,) = fires_of(await worker.lease(LATER))
        assert await worker.settle(LATER, dead(leased, LATER)) == []
        assert [found.id for found in await listed(fires, "dead")] == [fire]
        assert await worker.lease(hour(1.9)) == []

    async def test_what_is_released_can_be_released_again(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await _released(schedules, fires, worker)
        for n in range(1, 4):
            (leased,) = fires_of(await other.lease(LATER + n - 1))
            assert (leased.id, leased.attempt) == (fire, 1)
            assert await other.settle(LATER + n - 1, _release(leased, LATER + n, f"released: {n}")) == []
            waiting = await fires.get(fire)
            assert waiting is not None
            assert (waiting.attempt, waiting.worker, waiting.reason) == (0, None, f"released: {n}")
            assert waiting.deliver_after == LATER + n
        assert await entries(fires) == []

    async def test_a_one_shot_that_is_released_goes_after_its_delivery_and_not_before(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(when=ONCE, policy=AT_MOST_ONCE))
        (claim,) = await worker.claim(hour(1))
        assert await fires.open(uncounted_fire(claim, hour(1), LATER))
        assert await schedules.get("u1", "digest") is not None
        (leased,) = fires_of(await worker.lease(LATER))
        assert await worker.settle(LATER, done(leased, LATER, delete_schedule=True)) == []
        assert await schedules.get("u1", "digest") is None
        assert await listed(fires, "open") == []

    async def test_nothing_is_released_for_a_schedule_that_was_deleted_meanwhile(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=AT_MOST_ONCE))
        (claim,) = await worker.claim(hour(1))
        await schedules.delete("u1", "digest")
        fire = uncounted_fire(claim, hour(1), LATER)
        assert not await fires.open(fire)
        assert await fires.get(fire.id) is None

    async def test_a_schedule_that_is_deleted_takes_along_what_was_released(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await _released(schedules, fires, worker)
        await schedules.delete("u1", "digest")
        assert await worker.lease(hour(1.9)) == []
        assert await listed(fires, "open") == []
        assert [entry.happened for entry in await entries(fires)] == ["cancelled"]

    async def test_what_is_released_holds_up_no_later_instant(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await _released(schedules, fires, worker)
        (claim,) = await worker.claim(hour(2))
        assert (claim.fire, claim.nominal_at) == (None, hour(2))
        second = uncounted_fire(claim, hour(2), hour(2))
        assert await fires.open(second)
        assert sorted(leased.id for leased in fires_of(await worker.lease(hour(2)))) == sorted([fire, second.id])

    async def test_what_was_released_for_a_reason_is_left_to_others_for_a_head_start_and_nothing_else_is(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule(key) for key in ("gone", "failed", "released", "unbegun", "triggered")])
        claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(1)))}
        await worker.settle(
            hour(1), done(claimed["triggered"], hour(1)), retry(claimed["failed"], hour(1), hour(1)), release(claimed["released"])
        )
        await worker.settle(hour(1), _release(claimed["unbegun"], LATER, REASON))
        assert await fires.open(triggered("triggered", LATER))
        at = max(hour(1) + LEASE_MS, LATER + 999)
        assert at < LATER + 60_000
        taken = await other.lease(at, head_start_ms=60_000)
        assert sorted(keys(taken)) == ["failed", "gone", "released", "triggered"]
        assert {fire.deliver_after for fire in fires_of(taken)} == {at + LEASE_MS}
        assert await other.lease(LATER + 59_999, head_start_ms=60_000, expired=False) == []
        assert keys(await other.lease(LATER + 60_000, head_start_ms=60_000, expired=False)) == ["unbegun"]

    async def test_a_release_says_why_or_leaves_the_reason_that_was_there(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=Policy(attempts=5))
        await worker.settle(hour(1), retry(fire, hour(1), hour(1)))
        (second,) = fires_of(await worker.lease(hour(1)))
        await worker.settle(hour(1), release(second, hour(1)))
        kept = await fires.get(fire.id)
        assert kept is not None
        assert (kept.attempt, kept.reason) == (1, "it answered 503")
        (third,) = fires_of(await worker.lease(hour(1)))
        await worker.settle(hour(1), _release(third, LATER, REASON))
        released = await fires.get(fire.id)
        assert released is not None
        assert (released.attempt, released.reason, released.worker) == (1, REASON, None)

    async def test_a_long_reason_keeps_since_when_no_worker_could_begin_the_fire(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=Policy(attempts=5))
        await worker.settle(hour(1), retry(fire, hour(1), hour(1)))
        (second,) = fires_of(await worker.lease(hour(1)))
        since = second.opened_at + 3_000
        await worker.settle(hour(1), _release(second, LATER, release_reason("ä" * 300, since)))
        (third,) = fires_of(await other.lease(LATER))
        assert (third.has_release_reason, third.unbegun_since, third.opened_at) == (True, since, second.opened_at)
        assert str(third.reason).endswith("ä")


def _release(fire: Fire, deliver_after: int, reason: str) -> Settlement:
    return Settlement(fire.schedule_id, fire, "release", None, deliver_after, reason=reason)


async def _released(schedules: Schedules, fires: FireStore, worker: Worker) -> str:
    """Return the id of an at-most-once fire that was released until LATER."""
    await schedules.put(schedule(policy=AT_MOST_ONCE))
    (claim,) = await worker.claim(hour(1))
    fire = uncounted_fire(claim, hour(1), LATER, REASON)
    assert await fires.open(fire)
    return fire.id
