"""Conformance kit of postponing: an attempt that was made too early is recorded and not counted, and the fire stays open."""

from __future__ import annotations

from msgspec.structs import replace

from tickler.fires.contract import FireStore, next_at
from tickler.model.fire import POSTPONED, Claim, Entry, Fire, fire_id, uncounted_fire
from tickler.model.policy import Policy
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import EXPIRES_AT, LEASE_MS, FireFixtures, Worker, put_and_claim
from tickler.testing.fire_queries import Skip, entries, fires_of, listed, nominals, skips
from tickler.testing.hourly import AT_MOST_ONCE, ONCE, WAIT, hour, schedule
from tickler.testing.settlements import dead, done, entry, postpone, postponement, retry

LATER = hour(1.5)
REASON = f"{POSTPONED}too early"


class PostponeContract(FireFixtures):
    """Requirements on fires that their target postpones. Part of `FireStoreContract`."""

    async def test_what_is_postponed_is_open_from_then_on_with_an_entry_and_without_the_attempt(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        settlement = postpone(fire, hour(1) + 3, LATER)
        assert await worker.settle(hour(1) + 9, settlement) == []
        open_again = replace(fire, attempt=0, deliver_after=LATER, worker=None, reason=REASON)
        assert await fires.get(fire.id) == open_again
        assert await listed(fires, "open") == [open_again]
        assert open_again.was_postponed
        assert await entries(fires) == [settlement.entry]
        assert await next_at(fires) == LATER
        assert await other.lease(LATER - 1) == []
        (again,) = fires_of(await other.lease(LATER))
        assert (again.id, again.attempt, again.worker, again.reason) == (fire.id, 1, "other", REASON)
        assert await other.settle(LATER, done(again, LATER)) == []
        assert await fires.get(fire.id) is None
        assert [said.happened for said in await entries(fires)] == ["delivered", "postponed"]

    async def test_postponements_between_failures_take_no_attempt_away(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=Policy(attempts=3))
        at, held = hour(1), fire
        for n in range(1, 4):
            assert held.attempt == n
            await worker.settle(at, postpone(held, at, at + 1_000))
            assert await worker.lease(at + 999) == []
            at += 1_000
            (held,) = fires_of(await worker.lease(at))
            assert held.attempt == n
            if n < 3:
                await worker.settle(at, retry(held, at, at))
                (held,) = fires_of(await worker.lease(at))
        await worker.settle(at, dead(held, at))
        (buried,) = await listed(fires, "dead")
        assert (buried.attempt, buried.reason) == (3, "it answered 410")
        counted = [said.attempt for said in await entries(fires) if said.happened == "failed"]
        assert sorted(counted) == [1, 2, 3]

    async def test_what_is_postponed_is_left_to_nobody_for_a_head_start(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        await worker.settle(hour(1), postpone(fire, hour(1), LATER))
        assert len(await other.lease(LATER, head_start_ms=60_000)) == 1

    async def test_a_postponement_that_is_repeated_leaves_a_later_lease_of_the_same_worker_and_attempt_alone(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        held = await put_and_claim(schedules, worker)
        for n in range(1, 3):
            at = hour(1) + n * 1_000
            earlier = held
            assert await worker.settle(at - 500, postpone(earlier, at - 500, at)) == []
            (held,) = fires_of(await worker.lease(at))
            assert (held.worker, held.attempt) == (earlier.worker, earlier.attempt)
            assert await worker.settle(at, postpone(earlier, at - 500, hour(9))) == [earlier]
            assert await fires.get(held.id) == held

    async def test_a_worker_that_is_not_heard_of_has_used_its_attempt_up_however_often_it_was_postponed(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=Policy(attempts=2))
        await worker.settle(hour(1), postpone(fire, hour(1), LATER))
        await worker.lease(LATER)  # and is killed, perhaps after it postponed the fire again
        (second,) = fires_of(await other.lease(LATER + LEASE_MS))
        assert second.attempt == 2
        await other.settle(LATER + LEASE_MS, postpone(second, LATER + LEASE_MS, hour(2)))
        (again,) = fires_of(await other.lease(hour(2)))
        assert again.attempt == 2
        assert await worker.lease(hour(2) + LEASE_MS) == []
        assert [buried.id for buried in await listed(fires, "dead")] == [fire.id]

    async def test_a_one_shot_that_is_postponed_goes_after_its_delivery_and_not_before(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, when=ONCE)
        await worker.settle(hour(1), postpone(fire, hour(1), LATER))
        assert await schedules.get("u1", "digest") is not None
        (again,) = fires_of(await worker.lease(LATER))
        await worker.settle(LATER, done(again, LATER, delete_schedule=True))
        assert await schedules.get("u1", "digest") is None

    async def test_a_postponed_fire_can_be_cancelled_and_goes_with_its_schedule(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule("one"), schedule("two")])
        for fire in fires_of(await worker.claim(hour(1))):
            await worker.settle(hour(1), postpone(fire, hour(1), LATER))
        assert await fires.change(fire_id("u1", "one", hour(1)), "cancelled", hour(1), expires_at=EXPIRES_AT) is not None
        await schedules.delete("u1", "two")
        assert await worker.lease(LATER) == []
        for key in ("one", "two"):
            assert sorted(said.happened for said in await entries(fires, key)) == ["cancelled", "postponed"]

    async def test_a_long_or_odd_reason_stays_recognisable(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker)
        detail = "ä" * 300 + "\0"
        await worker.settle(hour(1), postpone(fire, hour(1), LATER, detail))
        found = await fires.get(fire.id)
        assert found is not None
        assert found.was_postponed
        assert str(found.reason).startswith(f"{POSTPONED}ää")

    async def test_an_entry_of_a_kind_that_only_a_newer_version_knows_is_read(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        newer = replace(done(fire, hour(1)), entry=replace(entry(fire, hour(1)), happened="teleported"))
        await worker.settle(hour(1), newer)
        assert [said.happened for said in await entries(fires)] == ["teleported"]

    # overlap

    async def test_an_instant_that_comes_while_a_fire_is_postponed_is_skipped(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=Policy(overlap="skip"))
        await worker.settle(hour(1), postpone(fire, hour(1), hour(2.5)))
        assert await worker.claim(hour(2)) == []
        assert await skips(fires) == [Skip("overlap", hour(2), hour(2), 1)]
        (again,) = fires_of(await worker.lease(hour(2.5)))
        await worker.settle(hour(2.5), done(again, hour(2.5)))
        assert nominals(await worker.claim(hour(3))) == [hour(3)]

    async def test_an_instant_that_comes_while_a_fire_is_postponed_waits_and_opens_afterwards(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker, policy=WAIT)
        await worker.settle(hour(1), postpone(fire, hour(1), hour(3.5)))
        for n in (2, 3):
            assert await worker.claim(hour(n)) == []
        assert len(await listed(fires, "waiting")) == 2
        (again,) = fires_of(await worker.lease(hour(3.5)))
        await worker.settle(hour(3.5), postpone(again, hour(3.5), hour(3.7)))
        assert len(await listed(fires, "waiting")) == 2, "it was postponed again, and is still open"
        (again,) = fires_of(await worker.lease(hour(3.7)))
        await worker.settle(hour(3.7), done(again, hour(3.7)))
        (leased,) = await worker.lease(hour(3.7))
        (second,) = fires_of([leased])
        assert leased.nominal_at == hour(2)
        assert second.opened_at == hour(3.7), "its age counts from when it opened, not from when it began to wait"

    async def test_a_postponed_fire_does_not_change_what_is_missed(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        expected = {"latest": [hour(4)], "skip": [], "all": [hour(2), hour(3), hour(4)]}
        policies = [Policy(missed="latest"), Policy(missed="skip"), Policy(missed="all")]
        await schedules.put_many([schedule(policy.missed, policy=policy) for policy in policies])
        claimed = fires_of(await worker.claim(hour(1)))
        await worker.settle(hour(1), *(postpone(fire, hour(1), hour(9)) for fire in claimed))
        missed = await worker.claim(hour(4.5))
        assert {key: nominals([each for each in missed if each.schedule.key == key]) for key in expected} == expected
        assert {fire.id for fire in claimed} < {each.id for each in await listed(fires, "open")}

    # At most once.

    async def test_a_claim_without_a_fire_that_is_postponed_is_opened_together_with_its_entry(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        claim, fire, said = await _postponed_claim(schedules, worker)
        assert await fires.open(fire, said, expires_at=EXPIRES_AT)
        assert await fires.get(fire.id) == fire
        assert await entries(fires) == [said]
        assert await other.lease(LATER - 1) == []
        (leased,) = await other.lease(LATER)
        (only,) = fires_of([leased])
        assert (leased.nominal_at, only.id, only.attempt) == (claim.nominal_at, fire.id, 1)
        assert await other.settle(LATER, done(only, LATER)) == []
        assert sorted(each.happened for each in await entries(fires)) == ["delivered", "postponed"]

    async def test_a_fire_that_is_opened_twice_or_without_its_schedule_is_recorded_once_or_never(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        _, fire, said = await _postponed_claim(schedules, worker)
        assert await fires.open(fire, said, expires_at=EXPIRES_AT)
        assert not await fires.open(fire, replace(said, at=said.at + 1), expires_at=EXPIRES_AT)
        assert await entries(fires) == [said]
        await schedules.delete("u1", "digest")
        before = await entries(fires)
        assert not await fires.open(replace(fire, id="fire_other"), said, expires_at=EXPIRES_AT)
        assert await entries(fires) == before

    async def test_the_entry_that_came_with_a_fire_expires_like_others(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        _, fire, said = await _postponed_claim(schedules, worker)
        assert await fires.open(fire, said, expires_at=hour(3))
        assert await fires.prune(hour(3) - 1) == 0
        assert await entries(fires) == [said]
        pruned = await fires.prune(hour(3))  # none where the store expires entries by itself
        assert len(await entries(fires)) == 1 - pruned

    async def test_what_is_postponed_at_most_once_can_be_postponed_again_and_has_one_attempt(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        _, fire, said = await _postponed_claim(schedules, worker)
        assert await fires.open(fire, said, expires_at=EXPIRES_AT)
        for n in range(2):
            at = LATER + n * 1_000
            (leased,) = fires_of(await other.lease(at))
            assert leased.attempt == 1
            assert await other.settle(at, postpone(leased, at, at + 1_000)) == []
            found = await fires.get(fire.id)
            assert found is not None
            assert (found.attempt, found.deliver_after) == (0, at + 1_000)
        await other.lease(LATER + 2_000)  # and is killed
        assert await worker.lease(LATER + 2_000 + LEASE_MS) == []
        (buried,) = await listed(fires, "dead")
        assert (buried.id, buried.attempt) == (fire.id, 1)
        assert [each.happened for each in await entries(fires)] == ["expired", *["postponed"] * 3]


async def _postponed_claim(schedules: Schedules, worker: Worker) -> tuple[Claim, Fire, Entry]:
    """Return an at-most-once claim, the fire to open for it, and the entry that belongs to it."""
    await schedules.put(schedule(policy=AT_MOST_ONCE))
    (claim,) = await worker.claim(hour(1))
    assert claim.fire is None
    fire = uncounted_fire(claim, hour(1), LATER, REASON)
    return claim, fire, replace(postponement(fire, hour(1), LATER), attempt=1, worker="worker")
