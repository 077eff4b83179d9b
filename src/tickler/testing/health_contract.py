"""Conformance kit of health: the last result of schedules, and which of them are failing."""

from __future__ import annotations

from tickler.fires.contract import FireStore
from tickler.model.fire import Health
from tickler.model.schedule import Id
from tickler.schedules.schedules import Schedules
from tickler.testing.fire_fixtures import EXPIRES_AT, FireFixtures, Worker
from tickler.testing.fire_queries import entries, fires_of
from tickler.testing.hourly import hour, schedule
from tickler.testing.settlements import dead, done, retry


async def failing(schedules: Schedules, **only: object) -> list[str]:
    """Return the keys of failing schedules, listed in pages of two."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = await schedules.list(failing=True, limit=2, after=after, **only)  # type: ignore[arg-type]  # owner, state, key_prefix
        found += [str(each.id) for each in page.items]
        if (after := page.next) is None:
            return found


class HealthContract(FireFixtures):
    """Requirements on the health of schedules. Part of `FireStoreContract`."""

    async def test_a_schedule_is_failing_for_as_long_as_a_fire_of_its_is_dead(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        ids = [Id("u1", key) for key in ("dead", "done", "retried", "quiet")]
        await schedules.put_many([schedule(key) for key in ("dead", "done", "retried")])
        for n in (1, 2):
            claimed = {fire.key: fire for fire in fires_of(await worker.claim(hour(n)))}
            at = hour(n)
            retried = [retry(claimed["retried"], at, hour(9))] if n == 1 else []
            await worker.settle(at, dead(claimed["dead"], at), done(claimed["done"], at), *retried)
        assert {id.key for id, health in (await fires.health(ids)).items() if health.failing} == {"dead"}
        assert await failing(schedules) == ["u1/dead"]

        first, second = await fires.list(state="dead", id=ids[0], owner=None, after=None, limit=9)
        assert await fires.change(first.id, "open", hour(3), expires_at=EXPIRES_AT)
        assert await failing(schedules) == ["u1/dead"], "another one is dead"
        assert await fires.change(second.id, "cancelled", hour(3), expires_at=EXPIRES_AT)
        assert not (await fires.health(ids))[ids[0]].failing
        assert await failing(schedules) == []

    async def test_the_last_result_of_a_schedule_is_its_newest_entry(
        self, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        ids = [Id("u1", "a"), Id("u1", "a/b"), Id("u1/a", "b"), Id("nobody", "never"), Id("u1", "later")]
        await schedules.put_many([schedule(key, owner=owner) for owner, key in ids if key != "never"])
        for n in (1, 2):
            claimed = fires_of(await worker.claim(hour(n)))
            for late, fire in enumerate(
                sorted((fire for fire in claimed if fire.key != "later"), key=lambda fire: fire.schedule_id)
            ):
                await worker.settle(hour(n), (retry(fire, hour(n) + late, hour(9)) if n == 1 else done(fire, hour(n) + late)))
        found = await fires.health(ids)
        assert list(found) == ids
        for id in ids:
            assert found[id].last == next(iter(await entries(fires, id.key, owner=id.owner)), None)
        last = [health.last and (health.last.happened, health.last.at) for health in found.values()]
        assert last == [("delivered", hour(2)), ("delivered", hour(2) + 1), ("delivered", hour(2) + 2), None, None]
        assert await fires.health([]) == {}
        assert await fires.health([ids[3]]) == {ids[3]: Health()}

    async def test_failing_schedules_are_listed_by_owner_and_key_and_as_they_are_asked_for(
        self, schedules: Schedules, worker: Worker
    ) -> None:
        ids = [("u1", "a"), ("u1", "b"), ("u1", "b-1"), ("u1", "sound"), ("u1/a", "b"), ("u2", "a"), ("u2", "ä")]
        await schedules.put_many([schedule(key, owner=owner) for owner, key in ids])
        claimed = fires_of(await worker.claim(hour(1)))
        settled = [(done if fire.key == "sound" else dead)(fire, hour(1)) for fire in claimed]
        await worker.settle(hour(1), *settled)
        assert await failing(schedules) == ["u1/a", "u1/b", "u1/b-1", "u1/a/b", "u2/a", "u2/ä"]
        assert await failing(schedules, owner="u1") == ["u1/a", "u1/b", "u1/b-1"]
        assert await failing(schedules, owner="nobody") == []
        await schedules.pause("u1", "b")
        assert await failing(schedules, owner="u1", state="active") == ["u1/a", "u1/b-1"]
        assert await failing(schedules, state="paused") == ["u1/b"]
        assert await failing(schedules, owner="u1", key_prefix="b") == ["u1/b", "u1/b-1"]
        await schedules.delete("u2", "a")
        assert await failing(schedules, owner="u2") == ["u2/ä"]
