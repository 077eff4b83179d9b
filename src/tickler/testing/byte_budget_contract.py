"""Conformance kit of the byte limit of claims and leases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest
from msgspec.structs import replace

from tickler.model.fire import Claim
from tickler.model.payload import RawPayload, held_payload, payload_bytes
from tickler.model.policy import Policy
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import LEASE_MS, FireFixtures, Worker, triggered
from tickler.testing.fire_queries import fires_of, keys
from tickler.testing.hourly import AT_MOST_ONCE, CATCH_UP, hour, minutely, schedule

LARGE = "x" * 2_000  # too large for the head item on DynamoDB
TWO_AND_A_HALF = 5_200  # of those payloads, with the other fields of a schedule
NOW = hour(1.5)


def undecoded(claims: Sequence[Claim]) -> bool:
    return all(type(held_payload(claim.schedule)) is RawPayload for claim in claims)


class ByteBudgetContract(FireFixtures):
    """Requirements on claims with large payloads. Part of `FireStoreContract`."""

    @pytest.mark.parametrize("policy", [Policy(), AT_MOST_ONCE], ids=["at-least-once", "at-most-once"])
    async def test_a_claim_ends_where_its_bytes_do_and_the_next_goes_on(
        self, store: Store, schedules: Schedules, worker: Worker, other: Worker, policy: Policy
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", minutely(n), payload=LARGE, policy=policy) for n in range(1, 6)])
        seen: list[list[str]] = []
        while claims := await (other if seen else worker).claim(NOW, max_bytes=TWO_AND_A_HALF):
            assert sum(payload_bytes(claim.schedule) for claim in claims) <= TWO_AND_A_HALF
            assert undecoded(claims)
            assert {claim.schedule.payload for claim in claims} == {LARGE}
            seen.append(keys(claims))
        assert list(map(len, seen)) == [2, 2, 1]
        claimed, in_order = list(chain.from_iterable(seen)), ["k1", "k2", "k3", "k4", "k5"]
        assert claimed == in_order if store.capabilities.order == "total" else sorted(claimed) == in_order

    async def test_what_a_claim_has_no_bytes_for_stays_due_as_it_is(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many([schedule(f"k{n}", minutely(n), payload=LARGE) for n in range(3)])
        before = {each.key: each for each in (await schedules.list()).items}
        (claim,) = await worker.claim(NOW, max_bytes=1)
        after = {each.key: each for each in (await schedules.list()).items}
        del before[claim.schedule.key], after[claim.schedule.key]
        assert after == before
        assert await worker.lease(NOW) == []

    async def test_a_claim_takes_one_that_is_larger_than_its_bytes(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many([schedule("large", minutely(0), payload=LARGE), schedule("small", minutely(1))])
        taken = [keys(await worker.claim(NOW, max_bytes=500)) for _ in range(2)]
        assert sorted(chain.from_iterable(taken)) == ["large", "small"]
        assert await worker.claim(NOW) == []

    async def test_several_fires_of_one_schedule_are_one_body(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put(schedule(payload=LARGE, policy=CATCH_UP))
        assert len(await worker.claim(hour(4), max_bytes=TWO_AND_A_HALF)) == 4
        assert len(await worker.lease(hour(4) + LEASE_MS, max_bytes=TWO_AND_A_HALF)) == 4
        assert len(await worker.lease(hour(4) + 2 * LEASE_MS, max_bytes=1)) == 4

    async def test_behind_rows_that_do_not_read_a_claim_goes_on_with_the_bytes_that_are_left(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        bad = [f"bad{n}" for n in range(5)]
        await schedules.put_many([schedule(key, minutely(1)) for key in bad])
        await schedules.put(schedule("several", minutely(5), payload=LARGE, policy=CATCH_UP))
        await schedules.put_many([schedule(f"k{n}", minutely(50), payload=LARGE) for n in range(2)])
        for key in bad:
            await self.corrupt(store, "u1", key, when_text="never")
        claims = await worker.claim(hour(2.75), 6, max_bytes=TWO_AND_A_HALF)
        bodies = {claim.schedule.key for claim in claims}
        assert len(bodies) == 2, "several fires of one schedule take its bytes once"

    async def test_small_schedules_are_bounded_by_their_number(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many([schedule(f"k{n}", payload=n) for n in range(30)])
        assert [len(await worker.claim(NOW, 20)) for _ in range(2)] == [20, 10]

    async def test_a_lease_ends_where_its_bytes_do_and_the_next_goes_on(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", minutely(n), payload=LARGE) for n in range(5)])
        assert len(fires_of(await worker.claim(NOW))) == 5
        seen: list[list[str]] = []
        while claims := await other.lease(NOW + LEASE_MS, max_bytes=TWO_AND_A_HALF):
            assert undecoded(claims)
            assert {claim.fire.attempt for claim in claims if claim.fire} == {2}
            seen.append(keys(claims))
        assert list(map(len, seen)) == [2, 2, 1]
        assert sorted(chain.from_iterable(seen)) == ["k0", "k1", "k2", "k3", "k4"]

    async def test_a_lease_counts_the_bytes_of_schedules_that_lost_their_targets(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        many = [schedule(f"k{n}", minutely(n), payload=LARGE) for n in range(5)]
        await schedules.put_many(many)
        assert len(fires_of(await worker.claim(NOW))) == 5
        await schedules.put_many([replace(each, target=None) for each in many])
        seen: list[str] = []
        while claims := await other.lease(NOW + LEASE_MS, max_bytes=TWO_AND_A_HALF):
            assert len(claims) <= 2
            seen += keys(claims)
        assert sorted(seen) == ["k0", "k1", "k2", "k3", "k4"]

    async def test_a_lease_takes_one_that_is_larger_than_its_bytes(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many([schedule(f"k{n}", payload=LARGE) for n in range(2)])
        for n in range(2):
            assert await worker.fires.open(triggered(f"k{n}"))
        assert [len(await worker.lease(hour(1), max_bytes=1)) for _ in range(3)] == [1, 1, 0]
