"""Conformance kit of the `missed` policy."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from tickler.fires.contract import FireStore
from tickler.model.fire import Entry, fire_id
from tickler.model.policy import Missed, Overlap, Policy
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import FireFixtures, Worker
from tickler.testing.fire_queries import Skip, entries, fires_of, listed, nominals, skips
from tickler.testing.hourly import AT_MOST_ONCE, CATCH_UP, MINUTE_MS, ONCE, hour, schedule
from tickler.testing.settlements import done
from tickler.testing.store_contract import DAY_MS, HOUR_MS, NOW_MS, stored
from tickler.when import Cron


class MissedContract(FireFixtures):
    """Requirements on `missed`. Part of `FireStoreContract`."""

    async def test_the_latest_of_several_missed_instants_is_claimed_and_the_others_are_one_entry(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule())
        now_ms = hour(4) + MINUTE_MS
        assert nominals(await worker.claim(now_ms)) == [hour(4)]
        assert await worker.claim(now_ms) == []
        (skipped,) = await entries(fires)
        assert skipped == Entry(
            owner="u1",
            key="digest",
            nominal_at=hour(1),
            at=now_ms,
            happened="skipped",
            rule="missed",
            until_at=hour(3),
            count=3,
            worker=skipped.worker,
        )
        assert (await stored(schedules)).next_fire_at == hour(5)

    @pytest.mark.parametrize("missed", ["latest", "skip", "all"])
    async def test_an_instant_that_is_claimed_a_little_late_leaves_no_entry(
        self, schedules: Schedules, fires: FireStore, worker: Worker, missed: Missed
    ) -> None:
        await schedules.put(schedule(policy=Policy(missed=missed)))
        assert nominals(await worker.claim(hour(1) + 59_000)) == [hour(1)]
        assert await entries(fires) == []

    async def test_an_instant_within_its_grace_is_not_missed_and_one_beyond_it_is(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(key, policy=Policy(missed="skip", grace=60)) for key in ("within", "beyond")])
        assert nominals(await worker.claim(hour(1) + MINUTE_MS, 1)) == [hour(1)]
        assert await worker.claim(hour(1) + MINUTE_MS + 1) == []
        assert await skips(fires, "within") + await skips(fires, "beyond") == [Skip("missed", hour(1), hour(1), 1)]
        for key in ("within", "beyond"):
            assert (await stored(schedules, key)).next_fire_at == hour(2)

    async def test_of_several_missed_instants_the_last_is_claimed_if_it_is_within_its_grace(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(missed="skip", grace=60)))
        assert nominals(await worker.claim(hour(4) + 10_000)) == [hour(4)]
        assert await skips(fires) == [Skip("missed", hour(1), hour(3), 3)]

    async def test_several_instants_that_are_all_too_late_are_one_entry(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(missed="skip", grace=60)))
        assert await worker.claim(hour(4.5)) == []
        assert await skips(fires) == [Skip("missed", hour(1), hour(4), 4)]
        assert await worker.claim(hour(4.5)) == []
        assert len(await entries(fires)) == 1
        assert nominals(await worker.claim(hour(5))) == [hour(5)]

    async def test_grace_begins_when_an_instant_is_due_by_its_spread(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        declared = schedule(policy=Policy(missed="skip", grace=60, spread=1800))
        assert declared.offset_ms() > MINUTE_MS
        await schedules.put(declared)
        assert nominals(await worker.claim(hour(1) + declared.offset_ms() + MINUTE_MS)) == [hour(1)]
        assert await entries(fires) == []

    async def test_a_one_shot_that_is_too_late_is_finished_kept_and_in_the_history(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(when=ONCE, policy=Policy(missed="skip")))
        assert await worker.claim(hour(2)) == []
        assert await skips(fires) == [Skip("missed", hour(1), hour(1), 1)]
        assert (await stored(schedules)).state == "finished"

    @pytest.mark.parametrize("policy", [CATCH_UP, Policy(missed="all", delivery="at-most-once")], ids=lambda each: each.delivery)
    async def test_all_missed_instants_are_claimed_oldest_first(
        self, schedules: Schedules, fires: FireStore, worker: Worker, policy: Policy
    ) -> None:
        await schedules.put(schedule(policy=policy))
        claims = await worker.claim(hour(3.5))
        assert nominals(claims) == [claim.due_at for claim in claims] == [hour(1), hour(2), hour(3)]
        assert [claim.fire and claim.fire.id for claim in claims] == [
            fire_id("u1", "digest", hour(n)) if policy is CATCH_UP else None for n in (1, 2, 3)
        ]
        assert await worker.claim(hour(3.5)) == []
        assert await entries(fires) == []
        assert nominals(await worker.claim(hour(4))) == [hour(4)]

    async def test_no_more_is_caught_up_with_than_the_policy_allows_and_the_rest_is_one_entry(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(missed="all", max_catchup=3)))
        assert nominals(await worker.claim(hour(6.5))) == [hour(1), hour(2), hour(3)]
        assert await worker.claim(hour(6.5)) == []
        assert await skips(fires) == [Skip("max_catchup", hour(4), hour(6), 3)]
        assert nominals(await worker.claim(hour(7))) == [hour(7)]

    async def test_a_long_catch_up_is_claimed_and_settled_whole(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=Policy(missed="all", max_catchup=150)))
        claims = await worker.claim(hour(200))
        assert nominals(claims) == [hour(n) for n in range(1, 151)]
        assert await skips(fires) == [Skip("max_catchup", hour(151), hour(200), 50)]
        assert len(await listed(fires, "open")) == 150
        assert await worker.settle(hour(200), *(done(fire, hour(200)) for fire in fires_of(claims))) == []
        assert await listed(fires, "open") == []
        assert len(await entries(fires)) == 151

    async def test_instants_that_their_spread_puts_after_now_are_not_due_yet(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        rules: list[Missed] = ["latest", "all"]
        declared = [schedule(missed, policy=Policy(missed=missed, spread=1800)) for missed in rules]
        await schedules.put_many(declared)
        offsets = {each.key: each.offset_ms() for each in declared}
        now_ms = hour(3) + min(offsets.values()) - 1
        claims = await worker.claim(now_ms)
        found = {key: [claim.nominal_at for claim in claims if claim.schedule.key == key] for key in offsets}
        assert found == {"latest": [hour(2)], "all": [hour(1), hour(2)]}
        assert all(claim.due_at == claim.nominal_at + offsets[claim.schedule.key] for claim in claims)
        assert await worker.claim(now_ms) == []
        assert await skips(fires, "latest") == [Skip("missed", hour(1), hour(1), 1)]
        assert await skips(fires, "all") == []
        assert nominals(await worker.claim(hour(3) + max(offsets.values()))) == [hour(3), hour(3)]

    async def test_nothing_is_caught_up_with_outside_the_bounds(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        policies = {"all": CATCH_UP, "latest": Policy()}
        await schedules.put_many(
            [schedule(key, policy=policy, starts_at=hour(2), ends_at=hour(4)) for key, policy in policies.items()]
        )
        claims = await worker.claim(hour(9))
        found = {key: [claim.nominal_at for claim in claims if claim.schedule.key == key] for key in policies}
        assert found == {"all": [hour(2), hour(3), hour(4)], "latest": [hour(4)]}
        assert await skips(fires, "all") == []
        assert await skips(fires, "latest") == [Skip("missed", hour(2), hour(3), 2)]
        assert (await stored(schedules, "all")).state == (await stored(schedules, "latest")).state == "finished"

    async def test_what_is_skipped_is_counted_up_to_a_thousand(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        often = Cron("* * * * *")
        week = NOW_MS + 7 * DAY_MS
        policies = {"latest": Policy(), "skip": Policy(missed="skip", grace=0), "all": Policy(missed="all", max_catchup=2)}
        await schedules.put_many([schedule(key, often, policy=policy) for key, policy in policies.items()])
        claims = await worker.claim(week + 1)
        minute = [NOW_MS + n * MINUTE_MS for n in range(4)]
        assert sorted((claim.schedule.key, claim.nominal_at) for claim in claims) == [
            ("all", minute[1]),
            ("all", minute[2]),
            ("latest", week),
        ]
        assert await skips(fires, "latest") == [Skip("missed", minute[1], week - MINUTE_MS, 1000)]
        assert await skips(fires, "skip") == [Skip("missed", minute[1], week, 1000)]
        assert await skips(fires, "all") == [Skip("max_catchup", minute[3], week, 1000)]

    # No fire is invented, and none is lost.

    async def test_every_instant_is_claimed_waits_or_is_in_the_history_exactly_once(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        kinds = [
            Policy(missed="latest"),
            Policy(missed="skip"),
            Policy(missed="skip", grace=9_000),
            Policy(missed="all"),
            Policy(missed="all", max_catchup=2),
        ]
        overlaps: list[Overlap] = ["allow", "skip", "wait"]
        policies = {
            f"{n} {overlap} {spread}": replace(kind, overlap=overlap, spread=timedelta(seconds=spread))
            for n, kind in enumerate(kinds)
            for overlap in overlaps
            for spread in (0, 1800)
        }
        policies["at most once"] = AT_MOST_ONCE
        await schedules.put_many([schedule(key, policy=policy) for key, policy in policies.items()])
        accounted: dict[str, list[int]] = {key: [] for key in policies}
        for now_ms in (hour(1) + 10_000, hour(1.7), hour(4), hour(4.6), hour(9.9)):
            for claim in await worker.claim(now_ms):
                accounted[claim.schedule.key].append(claim.nominal_at)
            assert await worker.claim(now_ms) == []
        for fire in await listed(fires, "waiting"):
            accounted[fire.key].append(fire.nominal_at)
        for key in policies:
            for skipped in await skips(fires, key):
                assert skipped.rule in ("missed", "max_catchup", "overlap")
                assert skipped.last is not None
                instants = range(skipped.first, skipped.last + 1, HOUR_MS)
                assert len(instants) == skipped.count
                accounted[key] += instants
        assert {key: sorted(found) for key, found in accounted.items()} == {
            key: [hour(n) for n in range(1, 10)] for key in policies
        }

    async def test_an_instant_is_not_accounted_for_twice_by_a_clock_that_goes_back(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=CATCH_UP))
        assert len(await worker.claim(hour(3))) == 3
        assert await worker.claim(hour(2)) == []
        assert nominals(await worker.claim(hour(4))) == [hour(4)]
