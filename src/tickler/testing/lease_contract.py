"""Conformance kit of leases: who holds a fire, until when, and what happens after a crash."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tickler.fires.contract import FireStore
from tickler.model.fire import Settlement, fire_id
from tickler.model.policy import Policy
from tickler.model.schedule import Id
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import EXPIRES_AT, LEASE_MS, FireFixtures, Worker, put_and_claim, triggered
from tickler.testing.fire_queries import entries, fires_of, keys, listed, nominals
from tickler.testing.hourly import AT_MOST_ONCE, CATCH_UP, HOOK, ONCE, SPREAD, hour, minutely, schedule
from tickler.testing.settlements import dead, done, postpone, release, retry

EXPIRED = hour(1) + LEASE_MS  # end of a lease that was claimed at hour(1)


class LeaseContract(FireFixtures):
    """Requirements on leases. Part of `FireStoreContract`."""

    async def test_nothing_is_leased_when_nothing_is_open(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put(schedule())
        assert await worker.lease(hour(1)) == []

    async def test_a_fire_is_not_leased_before_its_next_attempt_and_then_with_one_attempt_more(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(payload={"n": 1}))
        (claimed,) = await worker.claim(hour(1))
        (fire,) = fires_of([claimed])
        await worker.settle(hour(1) + 10, retry(fire, hour(1), hour(1) + 5_000))
        assert await other.lease(hour(1) + 4_999) == []
        (leased,) = await other.lease(hour(1) + 5_000)
        assert (leased.schedule.id, leased.schedule.payload) == (("u1", "digest"), {"n": 1})
        assert (leased.nominal_at, leased.due_at) == (claimed.nominal_at, claimed.due_at)
        (again,) = fires_of([leased])
        assert (again.id, again.nominal_at, again.opened_at) == (fire.id, fire.nominal_at, fire.opened_at)
        assert (again.attempt, again.worker, again.state) == (2, "other", "open")
        assert again.deliver_after == hour(1) + 5_000 + LEASE_MS
        assert await fires.get(fire.id) == again
        assert await worker.lease(hour(1) + 5_000) == []

    async def test_a_lease_knows_why_the_attempt_before_failed(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        await worker.settle(hour(1), retry(fire, hour(1), hour(1)))
        waiting = await fires.get(fire.id)
        assert waiting is not None
        assert (waiting.reason, waiting.worker, waiting.attempt) == ("it answered 503", None, 1)
        assert waiting.deliver_after == hour(1)

    async def test_a_fire_has_the_same_id_on_every_attempt(self, schedules: Schedules, worker: Worker) -> None:
        fire = await put_and_claim(schedules, worker)
        ids = [fire.id]
        for _ in range(3):
            await worker.settle(hour(1), retry(fire, hour(1), hour(1)))
            (fire,) = fires_of(await worker.lease(hour(1)))
            ids.append(fire.id)
        assert fire.attempt == 4
        assert set(ids) == {fire_id("u1", "digest", hour(1))}

    async def test_a_lease_has_the_due_instant_of_a_spread(self, schedules: Schedules, worker: Worker, other: Worker) -> None:
        declared = schedule(policy=SPREAD)
        await schedules.put(declared)
        due_at = hour(1) + declared.offset_ms()
        await worker.claim(due_at)
        (leased,) = await other.lease(due_at + LEASE_MS)
        assert (leased.nominal_at, leased.due_at) == (hour(1), due_at)

    async def test_leases_come_earliest_first_and_no_more_than_the_limit(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", policy=CATCH_UP) for n in range(6)])
        for fire in fires_of(await worker.claim(hour(1))):
            await worker.settle(hour(1), retry(fire, hour(1), hour(1) + 100 - int(fire.key[1:])))
        calls = [keys(await worker.lease(hour(1) + 100, 4)) for _ in range(3)]
        assert [len(call) for call in calls] == [4, 2, 0]
        assert all(call == sorted(call, reverse=True) for call in calls)
        if store.capabilities.order == "total":
            assert calls == [["k5", "k4", "k3", "k2"], ["k1", "k0"], []]

    async def test_the_fires_of_one_schedule_are_leased_each_in_nominal_order(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(policy=CATCH_UP))
        await worker.claim(hour(5))
        calls = [nominals(await other.lease(hour(5) + LEASE_MS, 3)) for _ in range(3)]
        assert [len(call) for call in calls] == [3, 2, 0]
        assert all(call == sorted(call) for call in calls)
        assert sorted(calls[0] + calls[1]) == [hour(n) for n in range(1, 6)]

    async def test_concurrent_leases_never_share_and_together_get_everything(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n:02}", policy=CATCH_UP) for n in range(40)])
        await worker.claim(hour(2))

        async def lease_all(name: str) -> list[str]:
            mine: list[str] = []
            while leased := await Worker(fires, name).lease(hour(2) + LEASE_MS, 7):
                mine += [fire.id for fire in fires_of(leased)]
            return mine

        shares = await asyncio.gather(*(lease_all(f"w{n}") for n in range(5)))
        expected = Counter(fire_id("u1", f"k{n:02}", at) for n in range(40) for at in (hour(1), hour(2)))
        assert Counter(id for share in shares for id in share) == expected

    async def test_what_was_changed_between_attempts_is_seen_by_the_next(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(payload="old"))
        await worker.claim(hour(1))
        await schedules.put(schedule(payload="new", target=f"{HOOK}/new", policy=Policy(timeout=3)))
        (leased,) = await other.lease(EXPIRED)
        expected = schedule(payload="new", target=f"{HOOK}/new", policy=Policy(timeout=3))
        found = leased.schedule
        assert (found.payload, found.target, found.policy) == (expected.payload, expected.target, expected.policy)

    async def test_the_fire_of_a_one_shot_is_leased_though_its_schedule_is_finished(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(when=ONCE, payload=7))
        await worker.claim(hour(1))
        (leased,) = await other.lease(EXPIRED)
        assert (leased.schedule.payload, leased.schedule.when, leased.nominal_at) == (7, ONCE, hour(1))

    async def test_the_fires_of_a_schedule_that_does_not_read_any_more_are_leased_all_the_same(
        self, store: Store, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule("bad", payload=7), schedule("good")])
        await worker.claim(hour(1))
        await self.corrupt(store, "u1", "bad", when_text="never")
        assert keys(await worker.claim(hour(2))) == ["good"]
        leased = await other.lease(hour(2))
        assert {(claim.schedule.key, claim.schedule.payload) for claim in leased} == {("bad", 7), ("good", None)}

    # Crashed workers.

    async def test_a_lease_that_ran_out_goes_to_another_and_the_history_says_who_had_it(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        assert await other.lease(EXPIRED - 1) == []
        assert await entries(fires) == []
        (leased,) = fires_of(await other.lease(EXPIRED))
        assert (leased.id, leased.attempt, leased.worker) == (fire.id, 2, "other")
        (said,) = await entries(fires)
        assert (said.happened, said.worker, said.attempt) == ("expired", "worker", 1)
        assert (said.fire_id, said.nominal_at) == (fire.id, hour(1))

    async def test_leases_that_ran_out_can_be_left_alone_while_retries_are_taken(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule("gone"), schedule("failed"), schedule("released")])
        claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(1)))}
        await worker.settle(hour(1), retry(claimed["failed"], hour(1), EXPIRED), release(claimed["released"]))
        assert sorted(keys(await other.lease(EXPIRED, expired=False))) == ["failed", "released"]
        assert await fires.get(claimed["gone"].id) == claimed["gone"]
        assert await entries(fires, "gone") == []

    async def test_leases_that_ran_out_and_are_left_alone_hide_no_retries(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule(f"gone{n}") for n in range(6)])
        await worker.claim(hour(1))
        fire = await put_and_claim(schedules, worker, "failed")
        await worker.settle(hour(1), retry(fire, hour(1), hour(1.5)))
        assert keys(await other.lease(hour(1.5), 2, expired=False)) == ["failed"]

    async def test_a_fire_with_no_attempts_left_dies_of_its_lease(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(attempts=2)))
        await worker.claim(hour(1))
        (second,) = fires_of(await other.lease(EXPIRED))
        assert await worker.lease(EXPIRED + LEASE_MS) == []
        (buried,) = await listed(fires, "dead")
        assert (buried.id, buried.attempt, buried.state, buried.worker) == (second.id, 2, "dead", None)
        assert buried.reason
        said = {(entry.happened, entry.worker, entry.attempt) for entry in await entries(fires)}
        assert said == {("expired", "worker", 1), ("expired", "other", 2)}
        assert await worker.lease(hour(1.9)) == []

    async def test_a_fire_that_is_delivered_at_most_once_dies_of_its_lease(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(policy=AT_MOST_ONCE))
        by_hand = triggered(at=hour(0.5))
        assert await fires.open(by_hand)
        (leased,) = fires_of(await worker.lease(hour(0.5)))
        assert (leased.id, leased.attempt) == (by_hand.id, 1)
        assert await other.lease(hour(0.5) + LEASE_MS) == []
        (buried,) = await listed(fires, "dead")
        assert (buried.id, buried.attempt) == (by_hand.id, 1)
        assert buried.reason
        assert [(entry.happened, entry.worker) for entry in await entries(fires)] == [("expired", "worker")]

    async def test_fires_that_die_of_their_leases_do_not_hide_others(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", policy=Policy(attempts=1)) for n in range(6)])
        await worker.claim(hour(1))
        await schedules.put(schedule("good"))
        await worker.claim(hour(1) + 1)
        found = [key for _ in range(4) for key in keys(await other.lease(hour(1.5), 2))]
        assert found == ["good"]
        assert len(await listed(fires, "dead")) == 6

    # Extending and releasing.

    async def test_an_extended_lease_is_kept_and_no_longer_than_that(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule("kept"), schedule("left")])
        claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(1)))}
        assert not any(await fires.extend([claimed["kept"]], EXPIRED + 5_000))
        assert keys(await other.lease(EXPIRED + 4_999)) == ["left"]
        assert keys(await other.lease(EXPIRED + 5_000)) == ["kept"]

    async def test_a_fire_is_settled_as_it_was_claimed_after_its_lease_was_extended(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        await fires.extend([fire], hour(2))
        await fires.extend([fire], hour(3))
        assert await worker.settle(hour(2.5), done(fire, hour(1))) == []
        assert await fires.get(fire.id) is None

    async def test_a_lease_that_ran_out_and_that_nobody_took_is_still_the_workers(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        assert await worker.settle(EXPIRED + 90_000, done(fire, hour(1))) == []
        assert await fires.get(fire.id) is None

    async def test_leases_that_are_lost_come_back_from_an_extension_and_the_others_last(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule(key) for key in ("settled", "taken", "dead", "released", "deleted")])
        claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(1)))}
        await worker.settle(
            hour(1), done(claimed["settled"], hour(1)), dead(claimed["dead"], hour(1)), release(claimed["released"])
        )
        await schedules.delete("u1", "deleted")
        taken = {fire.key: fire for fire in fires_of(await other.lease(EXPIRED))}
        await schedules.put(schedule("mine"))
        (mine,) = fires_of(await worker.claim(EXPIRED))
        lost, skipped = await fires.extend([*claimed.values(), mine], hour(3))
        assert not skipped
        assert sorted(fire.key for fire in lost) == sorted(claimed)
        assert await fires.get(claimed["taken"].id) == taken["taken"], "an extension of one worker moved the lease of another"
        kept = await fires.get(mine.id)
        assert kept is not None
        assert (kept.worker, kept.deliver_after) == ("worker", hour(3))
        assert not any(await fires.extend([], hour(3)))

    async def test_a_worker_does_not_extend_a_lease_of_an_attempt_before(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        first = await put_and_claim(schedules, worker)
        (second,) = fires_of(await worker.lease(EXPIRED))
        assert (await fires.extend([first], hour(3))).lost == [first]
        assert await fires.get(first.id) == second

    async def test_a_released_lease_was_never_taken(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        assert await worker.settle(hour(1) + 1, release(fire)) == []
        given = await fires.get(fire.id)
        assert given is not None
        assert (given.state, given.attempt, given.worker) == ("open", 0, None)
        (first,) = fires_of(await other.lease(hour(1) + 1))
        assert (first.attempt, first.worker) == (1, "other")
        await other.settle(hour(1) + 1, retry(first, hour(1) + 1, hour(1) + 2))
        (second,) = fires_of(await worker.lease(hour(1) + 2))
        assert second.attempt == 2
        await worker.settle(hour(1) + 3, release(second))
        (again,) = fires_of(await other.lease(hour(1) + 3))
        assert again.attempt == 2
        assert [entry.happened for entry in await entries(fires)] == ["failed"]

    async def test_a_lease_released_for_later_is_not_taken_before(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        await worker.settle(hour(1), release(fire, hour(1.5)))
        assert await other.lease(hour(1.5) - 1) == []
        (again,) = fires_of(await other.lease(hour(1.5)))
        assert again.attempt == 1

    async def test_the_fires_of_excepted_owners_are_passed_over_hide_nobody_and_are_leased_later(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", minutely(n), owner="flood") for n in range(1, 8)])
        await schedules.put_many([schedule("calm", minutely(30)), schedule("also", minutely(31), owner="u2")])
        assert len(await worker.claim(hour(0.75))) == 9
        assert keys(await other.lease(hour(1), 1, except_owners=["flood", "u2"])) == ["calm"]
        assert keys(await other.lease(hour(1), 2, except_owners={"flood"})) == ["also"]
        assert await other.lease(hour(1), except_owners=("flood",)) == []
        assert sorted(keys(await other.lease(hour(1)))) == [f"k{n}" for n in range(1, 8)]

    # Late workers.

    @pytest.mark.parametrize("then", ["done", "retry", "dead", "release", "postpone"])
    async def test_who_lost_a_lease_changes_nothing_and_is_told_and_what_they_did_is_kept(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker, then: str
    ) -> None:
        late = await put_and_claim(schedules, worker)
        (held,) = fires_of(await other.lease(EXPIRED))
        settlements: dict[str, Settlement] = {
            "done": done(late, hour(1)),
            "retry": retry(late, hour(1), hour(1.9)),
            "dead": dead(late, hour(1)),
            "release": release(late),
            "postpone": postpone(late, hour(1), hour(1.9)),
        }
        assert await worker.settle(EXPIRED + 1, settlements[then]) == [late]
        assert await fires.get(late.id) == held
        assert await listed(fires, "open") == [held]
        kept = [entry for entry in await entries(fires) if entry.happened != "expired"]
        assert kept == [entry for entry in [settlements[then].entry] if entry is not None]
        assert await other.settle(EXPIRED + 2, done(held, EXPIRED)) == []
        assert await fires.get(held.id) is None

    async def test_a_worker_does_not_settle_an_attempt_before_the_one_it_has(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        first = await put_and_claim(schedules, worker)
        (second,) = fires_of(await worker.lease(EXPIRED))
        assert await worker.settle(EXPIRED, done(first, hour(1))) == [first]
        assert await fires.get(first.id) == second

    async def test_a_release_that_is_repeated_leaves_a_later_lease_of_the_same_worker_and_attempt_alone(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        held = await put_and_claim(schedules, worker)
        earlier = held
        for n in range(3):
            earlier = held
            assert await worker.settle(hour(1) + n, release(earlier)) == []
            (held,) = fires_of(await worker.lease(hour(1) + n + 1))
            assert (held.worker, held.attempt) == (earlier.worker, earlier.attempt)
            assert await worker.settle(hour(1) + n + 1, release(earlier)) == [earlier]
            assert (await fires.extend([earlier], hour(3))).lost == [earlier]
            assert await fires.get(held.id) == held
        assert await worker.settle(hour(1) + 9, release(earlier), done(held, hour(1))) == [earlier]
        assert await fires.get(held.id) is None

    async def test_a_settlement_that_is_repeated_after_a_person_retried_the_fire_leaves_the_new_lease_alone(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        first = await put_and_claim(schedules, worker, policy=Policy(attempts=2))
        await worker.settle(hour(1), retry(first, hour(1), hour(1)))
        (second,) = fires_of(await worker.lease(hour(1)))
        await worker.settle(hour(1), dead(second, hour(1)))
        for n, earlier in ((1, first), (2, second)):
            assert await fires.change(first.id, "open", hour(1) + n, expires_at=EXPIRES_AT) is not None
            (held,) = fires_of(await worker.lease(hour(1) + n))
            assert await worker.settle(hour(1) + n, dead(earlier, hour(1))) == [earlier]
            assert await fires.get(held.id) == held
            assert await worker.settle(hour(1) + n, dead(earlier, hour(1)), dead(held, hour(1))) == [earlier]
            assert [fire.id for fire in await listed(fires, "dead")] == [held.id]

    async def test_who_comes_after_the_schedule_is_gone_is_told_and_what_they_did_is_kept(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        await schedules.delete("u1", "digest")
        assert await worker.settle(hour(1) + 9, done(fire, hour(1), delete_schedule=True)) == [fire]
        assert await fires.get(fire.id) is None
        assert sorted(entry.happened for entry in await entries(fires)) == ["cancelled", "delivered"]
        assert await fires.list(state="open", id=Id("u1", "digest"), owner=None, after=None, limit=10) == []
