"""The conformance kits of optional abilities. Subclass those whose protocol your store implements; see `stores/optional.py`."""

from __future__ import annotations

import pytest

from tickler.model.schedule import Id, Schedule
from tickler.schedules.schedules import Schedules
from tickler.stores.optional import CountsExpired, FindsOrphans, ReadsOwnerRows
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import FireFixtures
from tickler.testing.history_contract import remembered
from tickler.testing.hourly import HOURLY, ONCE, hour
from tickler.testing.index_contract import keys, row
from tickler.testing.store_contract import HOUR_MS, NOW_MS, StoreContract


class OrphanContract(StoreContract):
    """What an index must do that implements `FindsOrphans`."""

    @pytest.fixture
    def orphaned(self, store: Store) -> FindsOrphans:
        assert isinstance(store.index, FindsOrphans)
        return store.index

    async def test_a_row_is_no_orphan_while_its_schedule_is_there_or_where_none_belongs_to_it(
        self, store: Store, schedules: Schedules, orphaned: FindsOrphans
    ) -> None:
        await schedules.put(Schedule(owner="u1", key="active", when=HOURLY))
        await schedules.put(Schedule(owner="u1", key="once", when=ONCE))
        await store.index.upsert_many([row("alone")])
        first, *others = keys(await store.index.claim_due(NOW_MS + HOUR_MS))
        assert (first, sorted(others)) == ("alone", ["active", "once"]), "the other two are due at the same instant"
        assert await orphaned.orphans(10) == []
        assert await orphaned.drop_orphans(10) == 0
        assert await store.index.count() == 2
        (finished,) = (await schedules.list(state="finished")).items
        assert finished.key == "once"

    async def test_a_row_whose_schedule_is_gone_is_an_orphan_until_it_is_dropped(
        self, store: Store, schedules: Schedules, orphaned: FindsOrphans
    ) -> None:
        await schedules.put_many([Schedule(owner="u1", key=f"k{n}", when=HOURLY) for n in range(5)])
        await schedules.put(Schedule(owner="u1", key="k5", when=ONCE))
        await store.index.claim_due(NOW_MS + HOUR_MS)
        for key in ("k0", "k1", "k3", "k5"):
            await self.lose_schedule(store, "u1", key)
        gone = [Id("u1", key) for key in ("k0", "k1", "k3", "k5")]
        assert await orphaned.orphans(10) == gone
        assert await orphaned.orphans(2) == gone[:2]
        dropped = [await orphaned.drop_orphans(2)]
        while dropped[-1]:
            assert dropped[-1] <= 4, "two of those in the index, and two that were set aside, at most"
            dropped.append(await orphaned.drop_orphans(2))
        assert sum(dropped) == 4
        assert await orphaned.orphans(10) == []
        assert keys(await store.index.claim_due(NOW_MS + 2 * HOUR_MS)) == ["k2", "k4"]


class OwnerRowsContract(StoreContract):
    """What an index must do that implements `ReadsOwnerRows`."""

    async def test_the_rows_of_an_owner_say_when_they_are_due_and_whether_there_are_more(
        self, store: Store, schedules: Schedules
    ) -> None:
        index = store.index
        assert isinstance(index, ReadsOwnerRows)
        assert await index.next_fires("u1", 10) == ([], False)
        await store.index.upsert_many(
            [row(f"k{n}", n) for n in range(10)] + [row("k", -7, owner=owner) for owner in ("u", "u11", "v")]
        )
        found, more = await index.next_fires("u1", 20)
        assert (sorted(found), more) == ([NOW_MS + n for n in range(10)], False)
        assert await index.next_fires("u", 20) == ([NOW_MS - 7], False)
        some, more = await index.next_fires("u1", 3)
        assert (len(set(some)), set(some) <= set(found), more) == (3, True, True)
        await schedules.put(Schedule(owner="u2", key="active", when=HOURLY))
        await schedules.put(Schedule(owner="u2", key="paused", when=HOURLY, enabled=False))
        assert await index.next_fires("u2", 20) == ([NOW_MS + HOUR_MS], False)


class ExpiredCountContract(FireFixtures):
    """What a fire store must do that implements `CountsExpired`."""

    async def test_what_should_have_been_pruned_is_counted_no_further_than_asked_for(self, store: Store) -> None:
        fires = store.fires
        assert isinstance(fires, CountsExpired)
        for n in range(5):
            await store.fires.settle([remembered("digest", n, hour(n))], hour(n), expires_at=hour(10) + n)
        counted = [await fires.count_expired(hour(10) + at, most) for at, most in ((-1, 10), (2, 10), (9, 10), (9, 4))]
        assert counted == [0, 3, 5, 4]
        await store.fires.prune(hour(11))
        assert await fires.count_expired(hour(11), 10) == 0
