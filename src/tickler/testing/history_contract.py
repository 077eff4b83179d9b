"""Conformance kit of queries about fires: lists, history, the next instant, and pruning."""

from __future__ import annotations

from tickler.fires.contract import FireStore, next_at
from tickler.model.fire import DueItem, Entry, Fire, Settlement, fire_id
from tickler.model.index_row import IndexRow
from tickler.model.policy import Policy
from tickler.model.schedule import Id
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import LEASE_MS, FireFixtures, Worker, put_and_claim, triggered
from tickler.testing.fire_queries import entries, fires_of, keys, listed
from tickler.testing.hourly import AT_MOST_ONCE, CATCH_UP, HOURLY, ONCE, SPREAD, hour, minutely, schedule
from tickler.testing.settlements import dead, done, release, retry
from tickler.testing.store_contract import NOW_MS


def remembered(key: str, n: int, at: int, *, owner: str = "u1") -> Settlement:
    """Return an entry with the nominal instant hour(n)."""
    said = Entry(owner=owner, key=key, nominal_at=hour(n), at=at, happened="delivered", attempt=1)
    return Settlement(Id(owner, key), None, "done", said)


def place(fire: Fire) -> tuple[int, str]:
    """Return the position of a fire in a list."""
    return fire.nominal_at, fire.id


class HistoryContract(FireFixtures):
    """Requirements on queries about fires, and on pruning. Part of `FireStoreContract`."""

    # Lists.

    async def test_a_list_is_by_nominal_instant_and_id_in_pages_that_show_each_fire_once(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", owner=f"u{n}", policy=CATCH_UP) for n in range(4)])
        claimed = fires_of(await worker.claim(hour(3)))
        found: list[Fire] = []
        while page := await fires.list(state="open", id=None, owner=None, after=place(found[-1]) if found else None, limit=5):
            assert len(page) <= 5
            found += page
            await worker.settle(hour(3), done(page[-1], hour(3)))  # a cursor stays valid when its fire is gone
        assert found == sorted(claimed, key=place)
        assert len(found) == 12

    async def test_a_list_can_be_of_an_owner_or_of_a_schedule(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        ids = [("u1", "a"), ("u1", "b"), ("u1", "a/b"), ("u1/a", "b"), ("u2", "a")]
        await schedules.put_many([schedule(key, owner=owner, policy=CATCH_UP) for owner, key in ids])
        await worker.claim(hour(2))
        for owner, key in ids:
            of_schedule = await fires.list(state="open", id=Id(owner, key), owner=None, after=None, limit=100)
            assert [(fire.owner, fire.key, fire.nominal_at) for fire in of_schedule] == [(owner, key, hour(n)) for n in (1, 2)]
            rest = await fires.list(state="open", id=Id(owner, key), owner=None, after=place(of_schedule[0]), limit=100)
            assert rest == of_schedule[1:]
        of_owner = await listed(fires, "open", owner="u1")
        assert [fire.nominal_at for fire in of_owner] == [hour(1)] * 3 + [hour(2)] * 3
        assert {fire.key for fire in of_owner} == {"a", "b", "a/b"}
        rest = await fires.list(state="open", id=None, owner="u1", after=place(of_owner[1]), limit=3)
        assert rest == of_owner[2:5]
        assert await listed(fires, "open", owner="nobody") == []

    async def test_a_list_is_of_one_state(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        await schedules.put(schedule("waits", policy=Policy(missed="all", overlap="wait")))
        await schedules.put_many([schedule(key) for key in ("leased", "retried", "dead", "done")])
        claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(2)))}
        now_ms = hour(2)
        await worker.settle(
            now_ms, retry(claimed["retried"], now_ms, hour(3)), dead(claimed["dead"], now_ms), done(claimed["done"], now_ms)
        )
        found = {state: {fire.key for fire in await listed(fires, state)} for state in ("open", "waiting", "dead")}
        assert found == {"open": {"leased", "retried", "waits"}, "waiting": {"waits"}, "dead": {"dead"}}
        assert [fire.nominal_at for fire in await listed(fires, "waiting", "waits")] == [hour(2)]
        assert await listed(fires, "dead", "waits") == []
        assert [fire.key for fire in await listed(fires, "dead", owner="u1")] == ["dead"]
        for state in ("open", "waiting", "dead"):
            assert {fire.state for fire in await listed(fires, state)} == {state}

    async def test_a_fire_that_is_not_there_is_none(self, schedules: Schedules, fires: FireStore) -> None:
        await schedules.put(schedule())
        assert await fires.get(fire_id("u1", "digest", hour(1))) is None
        assert await fires.get("nothing") is None

    # The history.

    async def test_the_history_comes_latest_first_in_pages_that_show_each_entry_once(
        self, fires: FireStore, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put(schedule(policy=AT_MOST_ONCE))
        times = [hour(1), hour(3), hour(3), hour(3), hour(2), hour(3), hour(2), hour(1), hour(4)]
        await worker.settle(hour(5), *(remembered("digest", n, at) for n, at in enumerate(times[:6])))
        for n, at in enumerate(times[6:], 6):
            await worker.settle(hour(5), remembered("digest", n, at))
        found: list[tuple[str, Entry]] = []
        before: tuple[int, str] | None = None
        while page := await fires.history(id=Id("u1", "digest"), before=before, limit=2):
            assert len(page) <= 2
            found += page
            name, last = page[-1]
            before = (last.at, name)
        assert [entry.at for _, entry in found] == sorted(times, reverse=True)
        assert sorted(entry.nominal_at for _, entry in found) == [hour(n) for n in range(9)]
        assert [entry for _, entry in found] == await entries(fires)

    async def test_the_history_is_of_one_schedule_and_there_is_none_of_what_never_was(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        ids = [("u1", "a"), ("u1", "a/b"), ("u1/a", "b"), ("u1", "ä"), ("u", "1a")]
        await worker.settle(hour(1), *(remembered(key, n, hour(1), owner=owner) for n, (owner, key) in enumerate(ids)))
        for n, (owner, key) in enumerate(ids):
            assert [entry.nominal_at for entry in await entries(fires, key, owner=owner)] == [hour(n)]
        assert await entries(fires, "never") == []

    async def test_attempts_of_several_fires_at_one_instant_are_all_remembered(
        self, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        await schedules.put(schedule(policy=CATCH_UP))
        claimed = fires_of(await worker.claim(hour(3)))
        await worker.settle(hour(3), *(retry(fire, hour(3), hour(3)) for fire in claimed))
        again = fires_of(await other.lease(hour(3)))
        await other.settle(hour(3), *(done(fire, hour(3)) for fire in again))
        said = sorted((entry.nominal_at, entry.attempt, entry.worker) for entry in await entries(fires))
        assert said == [(hour(n), attempt, by) for n in (1, 2, 3) for attempt, by in ((1, "worker"), (2, "other"))]

    # The next instant.

    async def test_nothing_lies_ahead_of_an_empty_store(self, fires: FireStore) -> None:
        assert await next_at(fires) is None

    async def test_the_next_instant_is_that_of_the_earliest_schedule_with_a_target(
        self, store: Store, schedules: Schedules, fires: FireStore
    ) -> None:
        await store.index.upsert_many([IndexRow("u1", "row", HOURLY, NOW_MS + 1)])
        await schedules.put(schedule("without", target=None))
        assert await next_at(fires) is None
        await schedules.put(schedule("spread", policy=SPREAD))
        assert await next_at(fires) == hour(1) + schedule("spread", policy=SPREAD).offset_ms()
        await schedules.put(schedule("digest"))
        assert await next_at(fires) == hour(1)
        await schedules.pause("u1", "digest")
        await schedules.delete("u1", "spread")
        assert await next_at(fires) is None

    async def test_the_next_instant_is_that_of_the_earliest_fire_too(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        assert await next_at(fires) == hour(1) + LEASE_MS, "when its lease runs out"
        await fires.extend([fire], hour(1.5))
        assert await next_at(fires) == hour(1.5)
        await worker.settle(hour(1), retry(fire, hour(1), hour(1.25)))
        assert await next_at(fires) == hour(1.25)
        (fire,) = fires_of(await worker.lease(hour(1.25)))
        await worker.settle(hour(1.25), release(fire))
        released = await next_at(fires)
        assert released is not None
        assert released <= hour(1.25)
        (fire,) = fires_of(await worker.lease(hour(1.25)))
        await worker.settle(hour(1.25), done(fire, hour(1.25)))
        assert await next_at(fires) == hour(2)

    async def test_a_fire_that_was_opened_by_hand_is_seen_ahead(self, schedules: Schedules, fires: FireStore) -> None:
        await schedules.put(schedule(enabled=False))
        assert await fires.open(triggered(at=hour(0.5)))
        assert await next_at(fires) == hour(0.5)

    async def test_fires_that_wait_or_are_dead_do_not_lie_ahead(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule("waits", ends_at=hour(2), policy=Policy(missed="all", overlap="wait")))
        await worker.claim(hour(2))
        assert await next_at(fires) == hour(2) + LEASE_MS
        await schedules.delete("u1", "waits")
        fire = await put_and_claim(schedules, worker, "dead", ONCE)
        await worker.settle(hour(1), dead(fire, hour(1)))
        assert await next_at(fires) is None

    # Peeking at due fires.

    async def test_what_is_due_is_looked_at_earliest_first_and_not_taken(
        self, store: Store, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        assert await fires.peek(hour(9), 10) == []
        await store.index.upsert_many([IndexRow("u1", "row", HOURLY, NOW_MS + 1)])
        await schedules.put_many([schedule("without", target=None), schedule("later", minutely(30)), schedule("digest")])
        assert await fires.peek(hour(0.5) - 1, 10) == [], "what has no target is due for others"
        both = [DueItem("u1", "later", hour(0.5), None), DueItem("u1", "digest", hour(1), None)]
        assert await fires.peek(hour(1), 10) == both
        assert await fires.peek(hour(1), 1) == both[:1]
        assert await fires.peek(hour(1), 10) == both
        assert keys(await worker.claim(hour(1))) == ["later", "digest"]

    async def test_fires_are_among_what_is_due_from_when_they_may_be_taken(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        assert await fires.peek(hour(1) + LEASE_MS - 1, 10) == []
        assert await fires.peek(hour(1) + LEASE_MS, 10) == [DueItem("u1", "digest", hour(1) + LEASE_MS, fire.id)]
        await worker.settle(hour(1), retry(fire, hour(1), hour(1.25)))
        assert await fires.peek(hour(1.25), 10) == [DueItem("u1", "digest", hour(1.25), fire.id)]
        assert [due.fire_id for due in await fires.peek(hour(2), 10)] == [fire.id, None]
        (fire,) = fires_of(await worker.lease(hour(1.25)))
        await worker.settle(hour(1.25), dead(fire, hour(1.25)))
        assert await fires.peek(hour(2) - 1, 10) == []

    # Pruning.

    async def test_prune_removes_what_has_expired_and_nothing_else_in_steps(self, store: Store, fires: FireStore) -> None:
        for n in range(5):
            await fires.settle([remembered("digest", n, hour(n))], hour(n), expires_at=hour(10) + n)
        for n in (5, 6):
            await fires.settle([remembered("digest", n, hour(n))], hour(n), expires_at=hour(20))
        assert await fires.prune(hour(9)) == 0
        removed = [await fires.prune(hour(11), limit=3) for _ in range(3)]
        left = [entry.nominal_at for entry in await entries(fires)]
        assert left[:2] == [hour(6), hour(5)]
        if not store.capabilities.prunes_itself:
            assert removed == [3, 2, 0]
            assert left[2:] == []
            assert await fires.prune(hour(21)) == 2
            assert await entries(fires) == []

    async def test_everything_in_the_history_expires_whoever_wrote_it(
        self, store: Store, schedules: Schedules, fires: FireStore, worker: Worker, other: Worker
    ) -> None:
        """Entries of a claim that skipped, a lease that found an expired fire, and a manual cancellation."""
        await schedules.put(schedule(policy=CATCH_UP))
        assert len(await worker.claim(hour(1), expires_at=hour(50))) == 1
        await schedules.put(schedule(policy=Policy(missed="skip")))
        assert await worker.claim(hour(2.5), expires_at=hour(50)) == []
        (leased,) = fires_of(await other.lease(hour(2.5), expires_at=hour(50)))
        await fires.settle([release(leased)], hour(2.5), expires_at=hour(50))
        assert await fires.change(leased.id, "cancelled", hour(2.5), expires_at=hour(50))
        assert sorted(entry.happened for entry in await entries(fires)) == ["cancelled", "expired", "skipped"]
        assert await fires.prune(hour(49)) == 0
        assert len(await entries(fires)) == 3
        if not store.capabilities.prunes_itself:
            assert await fires.prune(hour(51)) == 3
            assert await entries(fires) == []

    async def test_open_fires_are_not_pruned(self, schedules: Schedules, fires: FireStore, worker: Worker) -> None:
        await schedules.put(schedule())
        (fire,) = fires_of(await worker.claim(hour(1), expires_at=hour(2)))
        await fires.prune(hour(1000))
        assert await fires.get(fire.id) == fire
