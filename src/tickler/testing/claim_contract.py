"""Conformance kit of claims: which schedules are due, who gets them, and what a claim returns."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from msgspec.structs import replace

from tickler.clock import ManualClock
from tickler.fires.contract import FireStore, next_at
from tickler.model.fire import Fire, fire_id
from tickler.model.index_row import IndexRow
from tickler.model.policy import Missed, Policy
from tickler.model.schedule import Schedule
from tickler.model.target import HttpTarget, PythonTarget
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import LEASE_MS, FireFixtures, Worker, put_and_claim
from tickler.testing.fire_queries import entries, fires_of, keys, listed, nominals, skips
from tickler.testing.hourly import AT_MOST_ONCE, CATCH_UP, HOURLY, MINUTE_MS, ONCE, SPREAD, hour, minutely, schedule
from tickler.testing.store_contract import DAY_MS, NOW_MS, stored
from tickler.when import Cron, Every


class ClaimContract(FireFixtures):
    """Requirements on claims. Part of `FireStoreContract`."""

    async def test_nothing_is_claimed_when_nothing_is_due(self, schedules: Schedules, worker: Worker) -> None:
        assert await worker.claim(hour(1)) == []
        await schedules.put(schedule())
        assert await worker.claim(hour(1) - 1) == []

    async def test_a_due_schedule_is_claimed_once_and_advanced_from_what_was_claimed(
        self, store: Store, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule())
        now_ms = hour(1) + 5 * MINUTE_MS
        (claim,) = await worker.claim(now_ms)
        assert (claim.schedule.id, claim.nominal_at) == (("u1", "digest"), hour(1))
        assert await worker.claim(now_ms) == []
        assert await other.claim(now_ms) == []
        assert (await stored(schedules)).next_fire_at == hour(2) == await store.index.next_due()
        assert nominals(await other.claim(hour(2))) == [hour(2)]

    async def test_a_schedule_is_due_at_its_very_instant(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put(schedule())
        assert nominals(await worker.claim(hour(1))) == [hour(1)]

    @pytest.mark.parametrize("years", [-25, 25])
    async def test_time_is_the_now_that_was_given_not_that_of_a_wall_clock(
        self, schedules: Schedules, fires: FireStore, worker: Worker, clock: ManualClock, years: int
    ) -> None:
        start = NOW_MS + years * 365 * DAY_MS
        clock.set(start)
        await schedules.put(schedule(when=Every(minutes=1)))
        (fire,) = fires_of(await worker.claim(start + MINUTE_MS))
        assert (fire.opened_at, fire.deliver_after) == (start + MINUTE_MS, start + MINUTE_MS + LEASE_MS)
        assert await worker.lease(start + MINUTE_MS) == []
        assert await next_at(fires) == start + MINUTE_MS + LEASE_MS

    # The result of a claim.

    @pytest.mark.parametrize(
        "declared",
        [
            schedule(payload={"a": [1, 2.5, None, True, "ä\u0000"], "big": 2**70}),
            schedule(target=HttpTarget("https://example.org/raw", body="raw"), payload="text"),
            schedule(target=PythonTarget("digest"), payload=[], policy=AT_MOST_ONCE),
            schedule(policy=Policy(missed="all", overlap="wait", attempts=3, timeout=5, backoff=[1, 2, 3])),
            schedule(starts_at=NOW_MS, ends_at=hour(5), delete_after=True),
            schedule(when=ONCE),
            schedule(when=Cron("0 9 * * *", tz="Asia/Tokyo")),
            schedule(key="a/b %2F 🐌", owner="日本"),
        ],
        ids=lambda declared: f"{declared.when} {declared.key}",
    )
    async def test_a_claim_brings_the_schedule_with_all_that_was_declared(
        self, schedules: Schedules, worker: Worker, declared: Schedule
    ) -> None:
        await schedules.put(declared)
        (claim,) = await worker.claim(NOW_MS + DAY_MS if declared.tz == "Asia/Tokyo" else hour(1))
        assert {name: getattr(claim.schedule, name) for name in declared.__struct_fields__} == {
            name: getattr(declared, name) for name in declared.__struct_fields__
        }

    async def test_large_payloads_come_along_however_many_there_are(
        self, schedules: Schedules, worker: Worker, other: Worker
    ) -> None:
        payloads = {f"k{n}": f"{n}" * 250_000 for n in range(6)}
        await schedules.put_many([schedule(key, payload=payload) for key, payload in payloads.items()])
        assert {claim.schedule.key: claim.schedule.payload for claim in await worker.claim(hour(1))} == payloads
        leased = await other.lease(hour(1) + LEASE_MS)
        assert {claim.schedule.key: claim.schedule.payload for claim in leased} == payloads

    async def test_a_spread_moves_when_a_claim_is_due_and_not_its_nominal_instant(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        declared = schedule(policy=SPREAD)
        await schedules.put(declared)
        due_at = hour(1) + declared.offset_ms()
        assert await worker.claim(due_at - 1) == []
        (claim,) = await worker.claim(due_at)
        assert (claim.nominal_at, claim.due_at) == (hour(1), due_at)
        (fire,) = fires_of([claim])
        assert (fire.id, fire.nominal_at) == (fire_id("u1", "digest", hour(1)), hour(1))
        assert (await stored(schedules)).next_fire_at == hour(2) + declared.offset_ms()

    async def test_without_a_spread_a_claim_is_due_at_its_nominal_instant(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put(schedule())
        (claim,) = await worker.claim(hour(1.5))
        assert claim.due_at == claim.nominal_at == hour(1)

    async def test_what_is_delivered_at_least_once_is_a_fire_that_the_worker_has_leased(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule())
        now_ms = hour(1) + 7
        (fire,) = fires_of(await worker.claim(now_ms))
        assert fire == Fire(
            id=fire_id("u1", "digest", hour(1)),
            owner="u1",
            key="digest",
            nominal_at=hour(1),
            opened_at=now_ms,
            attempt=1,
            state="open",
            deliver_after=now_ms + LEASE_MS,
            worker="worker",
        )
        assert await fires.get(fire.id) == fire
        assert await listed(fires, "open") == [fire]

    async def test_what_is_delivered_at_most_once_is_in_the_claimers_hands_alone(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(policy=AT_MOST_ONCE))
        (claim,) = await worker.claim(hour(1))
        assert (claim.nominal_at, claim.fire) == (hour(1), None)
        assert await listed(fires, "open") == []
        assert await fires.get(fire_id("u1", "digest", hour(1))) is None
        assert await other.lease(hour(1.9)) == []

    async def test_an_instant_that_comes_up_again_while_its_fire_is_open_is_not_claimed_again(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        """A resume uses the clock of its caller, which may be slightly behind the claimer's."""
        fire = await put_and_claim(schedules, worker)
        await schedules.pause("u1", "digest")
        assert (await schedules.resume("u1", "digest")).next_fire_at == hour(1)
        await schedules.put(schedule("good"))
        assert keys(await other.claim(hour(1))) == ["good"]
        assert await fires.get(fire.id) == fire
        assert (await stored(schedules)).next_fire_at == hour(2)

    # Order, limits and competing claims.

    async def test_claims_come_earliest_first(self, schedules: Schedules, worker: Worker) -> None:
        minutes = [40, 10, 30, 20]
        await schedules.put_many([schedule(f"k{minute}", minutely(minute), owner=f"u{minute % 3}") for minute in minutes])
        assert keys(await worker.claim(hour(0.75))) == ["k10", "k20", "k30", "k40"]

    async def test_claims_of_one_owner_come_in_nominal_order(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many(
            [
                schedule("latest"),
                schedule("all", minutely(30), policy=CATCH_UP),
                schedule("often", minutely(15), policy=CATCH_UP),
            ]
        )
        claimed = nominals(await worker.claim(hour(3.6)))
        assert len(claimed) == 9
        assert claimed == sorted(claimed)

    async def test_the_limit_takes_the_earliest_and_leaves_the_rest_due(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        in_order = [f"k{n:02}" for n in range(1, 11)]
        await schedules.put_many([schedule(key, minutely(n)) for n, key in enumerate(in_order, 1)])
        calls = [keys(await worker.claim(hour(0.5), 4)) for _ in range(4)]
        assert [len(call) for call in calls] == [4, 4, 2, 0]
        assert all(call == sorted(call) for call in calls)
        claimed = [key for call in calls for key in call]
        assert claimed == in_order if store.capabilities.order == "total" else sorted(claimed) == in_order

    async def test_the_answer_is_longer_than_the_limit_by_what_the_last_schedule_missed_at_most(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(key, policy=CATCH_UP) for key in ("a", "b", "c")])
        calls = [await worker.claim(hour(3), 4) for _ in range(3)]
        assert [sorted(nominals(call)) for call in calls] == [sorted([hour(1), hour(2), hour(3)] * n) for n in (2, 1, 0)]
        assert sorted({key for call in calls for key in keys(call)}) == ["a", "b", "c"]

    async def test_concurrent_claimers_never_share_and_together_get_everything(
        self, schedules: Schedules, fires: FireStore
    ) -> None:
        await schedules.put_many(
            [schedule(f"k{n:03}", policy=AT_MOST_ONCE if n % 2 else Policy(overlap="skip")) for n in range(120)]
        )

        async def claim_all(name: str) -> list[str]:
            mine: list[str] = []
            while claimed := await Worker(fires, name).claim(hour(1), 7):
                assert {claim.fire.worker for claim in claimed if claim.fire} <= {name}
                mine += keys(claimed)
            return mine

        shares = await asyncio.gather(*(claim_all(f"w{n}") for n in range(5)))
        assert Counter(key for share in shares for key in share) == Counter(f"k{n:03}" for n in range(120))
        assert len(await listed(fires, "open")) == 60

    async def test_a_put_beside_claims_neither_loses_nor_repeats_a_fire(self, schedules: Schedules, fires: FireStore) -> None:
        await schedules.put_many([schedule(f"k{n}") for n in range(20)])

        async def put_all() -> None:
            for n in range(20):
                await schedules.put(schedule(f"k{n}", payload="new"))

        async def claim_all(name: str) -> list[str]:
            return [key for _ in range(40) for key in keys(await Worker(fires, name).claim(hour(1), 1))]

        _, *shares = await asyncio.gather(put_all(), claim_all("w1"), claim_all("w2"))
        assert sorted(key for share in shares for key in share) == sorted(f"k{n}" for n in range(20))
        assert {each.next_fire_at for each in (await schedules.list()).items} == {hour(2)}

    async def test_excepted_owners_are_passed_over_hide_nobody_and_are_claimed_later(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", minutely(n), owner="flood") for n in range(1, 8)])
        await schedules.put_many([schedule("calm", minutely(30)), schedule("also", minutely(31), owner="u2")])
        assert keys(await worker.claim(hour(0.75), 1, except_owners=["flood", "u2"])) == ["calm"]
        assert keys(await worker.claim(hour(0.75), 2, except_owners={"flood"})) == ["also"]
        assert await worker.claim(hour(0.75), except_owners=("flood",)) == []
        assert keys(await worker.claim(hour(0.75))) == [f"k{n}" for n in range(1, 8)]

    # Claims ahead of time.

    async def test_what_comes_due_soon_is_claimed_ahead_and_moved_on_by_one_instant(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule("soon", Every(minutes=1)), schedule("later", minutely(30))])
        ahead_ms = 3 * MINUTE_MS
        claimed = [await worker.claim(NOW_MS + 1000, ahead_ms=ahead_ms) for _ in range(4)]
        instants = [NOW_MS + n * MINUTE_MS for n in (1, 2, 3)]
        assert [nominals(claims) for claims in claimed] == [[instant] for instant in instants] + [[]]
        assert [claim.due_at for claims in claimed for claim in claims] == instants
        assert {claim.schedule.key for claims in claimed for claim in claims} == {"soon"}
        assert await skips(fires, "soon") == []
        assert nominals(await worker.claim(NOW_MS + 4 * MINUTE_MS)) == [NOW_MS + 4 * MINUTE_MS]

    @pytest.mark.parametrize("missed", ["latest", "skip", "all"])
    async def test_nothing_is_missed_by_being_claimed_ahead(
        self, schedules: Schedules, fires: FireStore, worker: Worker, missed: Missed
    ) -> None:
        await schedules.put(schedule(when=Every(minutes=1), policy=Policy(missed=missed, grace=1, spread=20)))
        found = [claim for _ in range(9) for claim in await worker.claim(NOW_MS, ahead_ms=5 * MINUTE_MS)]
        assert nominals(found) == [NOW_MS + n * MINUTE_MS for n in range(1, len(found) + 1)]
        assert len(found) in (4, 5)  # the spread may delay the last one
        assert {claim.due_at - claim.nominal_at for claim in found} == {found[0].schedule.offset_ms()}
        assert await skips(fires) == []

    # Schedules that are claimed from the index only.

    async def test_rows_of_the_index_alone_are_left_to_it(self, store: Store, schedules: Schedules, worker: Worker) -> None:
        rows = [IndexRow("u1", f"row{n}", HOURLY, NOW_MS + n) for n in range(5)]
        await store.index.upsert_many(rows)
        await schedules.put(schedule())
        assert keys(await worker.claim(hour(1), 2)) == ["digest"]
        assert await store.index.claim_due(hour(1)) == rows

    async def test_schedules_without_a_target_are_left_to_the_index_and_hide_nobody(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        without = [schedule(f"k{n}", minutely(n), target=None) for n in range(1, 6)]
        await schedules.put_many([*without, schedule("digest")])
        assert keys(await worker.claim(hour(1), 2)) == ["digest"]
        assert [row.key for row in await store.index.claim_due(hour(1))] == [each.key for each in without]

    async def test_a_put_that_gives_a_target_makes_a_schedule_claimable(self, schedules: Schedules, worker: Worker) -> None:
        await schedules.put(schedule(target=None))
        assert await worker.claim(hour(1)) == []
        await schedules.put(schedule())
        assert nominals(await worker.claim(hour(1))) == [hour(1)]

    async def test_a_put_that_takes_the_target_away_leaves_a_schedule_to_the_index(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put(schedule())
        await schedules.put(schedule(target=None))
        assert await worker.claim(hour(1)) == []
        assert [row.next_fire_at for row in await store.index.claim_due(hour(1))] == [hour(1)]

    async def test_a_put_takes_over_a_row_that_was_written_into_the_index_alone(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        await store.index.upsert_many([IndexRow("u1", "digest", HOURLY, NOW_MS - 1)])
        await schedules.put(schedule())
        assert nominals(await worker.claim(hour(1))) == [hour(1)]

    async def test_what_is_claimed_from_the_index_opens_no_fire_and_is_gone_for_workers(
        self, store: Store, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule())
        assert len(await store.index.claim_due(hour(1))) == 1
        assert await worker.claim(hour(1)) == []
        assert await listed(fires, "open") == []

    # Pauses, bounds and one-shots.

    async def test_a_paused_schedule_is_never_claimed_and_its_paused_instants_were_not_missed(
        self, schedules: Schedules, fires: FireStore, worker: Worker, clock: ManualClock
    ) -> None:
        await schedules.put(schedule(policy=CATCH_UP))
        await schedules.pause("u1", "digest")
        assert await worker.claim(hour(3)) == []
        clock.set(hour(3.5))
        await schedules.resume("u1", "digest")
        assert await worker.claim(hour(3.5)) == []
        assert nominals(await worker.claim(hour(4))) == [hour(4)]
        assert await entries(fires) == []

    async def test_bounds_are_inclusive_and_the_last_claim_finishes_the_schedule(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put(schedule(starts_at=hour(2), ends_at=hour(3)))
        claimed = [nominals(await worker.claim(hour(n))) for n in range(1, 6)]
        assert claimed == [[], [hour(2)], [hour(3)], [], []]
        finished = await stored(schedules)
        assert (finished.state, finished.next_fire_at) == ("finished", None)

    @pytest.mark.parametrize("policy", [Policy(), AT_MOST_ONCE], ids=lambda policy: policy.delivery)
    async def test_a_one_shot_is_finished_once_it_is_claimed_and_still_there(
        self, store: Store, schedules: Schedules, worker: Worker, policy: Policy
    ) -> None:
        await schedules.put(schedule(when=ONCE, policy=policy))
        assert nominals(await worker.claim(hour(30))) == [hour(1)]
        assert await worker.claim(hour(30)) == []
        finished = await stored(schedules)
        assert (finished.state, finished.next_fire_at) == ("finished", None)
        assert await store.index.count() == 0
        assert (await schedules.put(replace(finished.declared(), payload=1))).state == "finished"
        assert await worker.claim(hour(31)) == []

    async def test_names_are_kept_as_they_are(self, store: Store, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        names = ["a/b", "a b", "%2F", "ä", "日本", "'; --", "🐌", "A", "a", "#", "x" * store.capabilities.longest_name_bytes]
        await schedules.put_many([schedule(name, owner=name) for name in names])
        claims = await worker.claim(hour(1))
        assert {claim.schedule.id for claim in claims} == {(name, name) for name in names}
        assert {fire.id for fire in fires_of(claims)} == {fire_id(name, name, hour(1)) for name in names}
        assert {(fire.owner, fire.key) for fire in await listed(fires, "open")} == {(name, name) for name in names}
