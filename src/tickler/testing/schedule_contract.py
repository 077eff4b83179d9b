"""Conformance kit of a schedule store: schedules and their index rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from tickler.clock import ManualClock
from tickler.errors import InvalidSchedule, NeverFires, ScheduleNotFound, VersionConflict
from tickler.model.index_row import IndexRow
from tickler.model.policy import Policy
from tickler.model.revision import Revision
from tickler.model.schedule import Id, Schedule, State, StoredSchedule
from tickler.model.target import HttpTarget, PythonTarget
from tickler.schedules.contract import Stored
from tickler.schedules.schedules import Schedules
from tickler.schedules.write import ScheduleChange, ScheduleRemoval
from tickler.stores.store import Store
from tickler.testing.hourly import HOURLY
from tickler.testing.store_contract import DAY_MS, HOUR_MS, NOW_MS, StoreContract, stored
from tickler.when import At, Cron, Every, Unreadable, Weekly, When

DAILY = Cron("0 9 * * *", tz="Europe/Paris")


def schedule(key: str = "digest", when: When = HOURLY, *, owner: str = "u1", **fields: object) -> Schedule:
    return Schedule(owner=owner, key=key, when=when, **fields)  # type: ignore[arg-type]  # any field of a schedule


class ScheduleStoreContract(StoreContract):
    """Requirements on a schedule store. `StoreContract` documents the fixtures."""

    # Put and get.

    @pytest.mark.parametrize(
        "declared",
        [
            schedule(when=HOURLY),
            schedule(when=Weekly({"tue": "09:00", "thu": ["09:00", "17:30"]}, tz="America/New_York")),
            schedule(when=At("2031-03-15T00:00:00", tz="America/Chicago"), delete_after=False),
            schedule(when=At("2031-03-15T00:00:00Z")),
            schedule(when=Every(minutes=5, start=NOW_MS - 1)),
            schedule(target="https://example.org/hook?x=1", payload={"a": [1, 2.5, None, True, "ä\u0000"], "big": 2**70}),
            schedule(target=PythonTarget("digest"), payload="text"),
            schedule(target=HttpTarget("http://10.0.0.1:8080/"), payload=[]),
            schedule(policy=Policy(missed="all", overlap="wait", spread=90.5, backoff=[1, 2, timedelta(minutes=3)], timeout=5)),
            schedule(starts_at=NOW_MS + DAY_MS, ends_at=NOW_MS + 9 * DAY_MS),
            schedule(enabled=False),
            schedule(key="a/b %2F 🐌", owner="日本"),
        ],
        ids=lambda declared: f"{declared.when} {declared.key}",
    )
    async def test_a_schedule_comes_back_as_it_was_put(self, schedules: Schedules, declared: Schedule) -> None:
        put = await schedules.put(declared)
        got = await stored(schedules, declared.key, owner=declared.owner)
        assert got == put
        assert got.declared() == declared
        assert (got.version, got.created_at, got.updated_at) == (1, NOW_MS, NOW_MS)

    async def test_what_is_not_there_is_none(self, schedules: Schedules) -> None:
        assert await schedules.get("u1", "nothing") is None

    async def test_a_new_schedule_is_in_the_index_with_its_first_fire(self, store: Store, schedules: Schedules) -> None:
        stored = await schedules.put(schedule())
        assert (stored.state, stored.next_fire_at) == ("active", NOW_MS + HOUR_MS)
        assert await store.index.next_due() == NOW_MS + HOUR_MS
        assert await store.index.count() == 1

    async def test_a_put_that_does_not_change_when_keeps_the_next_fire(
        self, store: Store, schedules: Schedules, clock: ManualClock
    ) -> None:
        await schedules.put(schedule(when=DAILY))
        before = await store.index.next_due()
        clock.advance(timedelta(days=3))  # overdue now, and stays overdue
        stored = await schedules.put(schedule(when=DAILY, payload="new"))
        assert stored.next_fire_at == before == await store.index.next_due()
        assert stored.version == 2
        assert len(await store.index.claim_due(clock.now_ms())) == 1

    async def test_a_put_that_changes_when_moves_the_next_fire(
        self, store: Store, schedules: Schedules, clock: ManualClock
    ) -> None:
        await schedules.put(schedule(when=DAILY))
        clock.advance(timedelta(days=3))
        stored = await schedules.put(schedule(when=HOURLY))
        assert stored.next_fire_at == clock.now_ms() + HOUR_MS == await store.index.next_due()
        (row,) = await store.index.claim_due(clock.now_ms() + HOUR_MS)
        assert row.when == HOURLY

    @pytest.mark.parametrize(
        "changed",
        [
            schedule(when=Cron("0 * * * *", tz="Asia/Kolkata")),
            schedule(starts_at=NOW_MS + 5 * HOUR_MS),
            schedule(policy=Policy(spread=600)),
        ],
        ids=["zone", "start", "spread"],
    )
    async def test_a_put_that_changes_zone_bounds_or_spread_moves_the_next_fire(
        self, store: Store, schedules: Schedules, changed: Schedule
    ) -> None:
        before = await schedules.put(schedule())
        after = await schedules.put(changed)
        assert after.next_fire_at != before.next_fire_at
        assert after.next_fire_at == await store.index.next_due()

    async def test_putting_the_same_again_changes_nothing(self, schedules: Schedules, clock: ManualClock) -> None:
        first = await schedules.put(schedule(payload={"a": 1}))
        clock.advance(60)
        assert await schedules.put(schedule(payload={"a": 1})) == first

    async def test_an_interval_without_a_start_is_stamped_at_its_first_put_and_keeps_it(
        self, schedules: Schedules, clock: ManualClock
    ) -> None:
        first = await schedules.put(schedule(when=Every(minutes=10)))
        assert first.when == Every(minutes=10, start=NOW_MS)
        clock.advance(timedelta(minutes=3))
        again = await schedules.put(schedule(when=Every(minutes=10), payload="new"))
        assert again.when == first.when
        assert again.next_fire_at == first.next_fire_at
        other = await schedules.put(schedule(when=Every(minutes=20)))
        assert other.when == Every(minutes=20, start=clock.now_ms())

    # Schedules that never fire, and bounds.

    @pytest.mark.parametrize(
        ("never", "why"),
        [
            (schedule(when=Weekly({"mon": None})), "every day"),
            (schedule(when=At("2020-01-01T00:00:00Z")), "passed"),
            (schedule(when=Cron("cron(0 9 ? * MON-FRI 2020-2029)")), "its years have passed"),
            (schedule(ends_at=NOW_MS + HOUR_MS - 1), "ends"),
            (schedule(when=At("2011-12-30T10:00:00", tz="Pacific/Apia")), "does not exist"),
        ],
        ids=["all days off", "past", "years past", "ends before", "skipped date"],
    )
    async def test_a_schedule_that_can_never_fire_is_refused_unless_it_is_disabled(
        self, store: Store, schedules: Schedules, never: Schedule, why: str
    ) -> None:
        with pytest.raises(NeverFires, match=why):
            await schedules.put(never)
        assert await schedules.get(*never.id) is None
        stored = await schedules.put(replace(never, enabled=False))
        assert stored.state == "paused"
        assert await store.index.count() == 0

    async def test_a_refused_put_leaves_what_was_there(self, store: Store, schedules: Schedules) -> None:
        before = await schedules.put(schedule())
        with pytest.raises(NeverFires):
            await schedules.put(schedule(when=At("2020-01-01T00:00:00Z")))
        assert await schedules.get("u1", "digest") == before
        assert await store.index.next_due() == before.next_fire_at

    async def test_bounds_are_inclusive(self, store: Store, schedules: Schedules) -> None:
        bounded = schedule(starts_at=NOW_MS + 3 * HOUR_MS, ends_at=NOW_MS + 4 * HOUR_MS)
        found = await schedules.put(bounded)
        assert found.next_fire_at == NOW_MS + 3 * HOUR_MS
        assert len(await store.index.claim_due(NOW_MS + 3 * HOUR_MS)) == 1
        assert len(await store.index.claim_due(NOW_MS + 4 * HOUR_MS)) == 1
        finished = await stored(schedules, bounded.key, owner=bounded.owner)
        assert (finished.state, finished.next_fire_at) == ("finished", None)

    async def test_spread_moves_schedules_apart_and_always_by_the_same(self, store: Store, schedules: Schedules) -> None:
        spread = [schedule(f"k{n}", policy=Policy(spread=1800)) for n in range(20)]
        await schedules.put_many(spread)
        rows = await store.index.claim_due(NOW_MS + 2 * HOUR_MS)
        assert {row.nominal_at for row in rows} == {NOW_MS + HOUR_MS}
        assert len({row.offset_ms for row in rows}) > 10
        assert all(row.offset_ms == schedule(row.key, policy=Policy(spread=1800)).offset_ms() < 1_800_000 for row in rows)
        later = await store.index.claim_due(NOW_MS + 3 * HOUR_MS)
        assert {row.nominal_at for row in later} == {NOW_MS + 2 * HOUR_MS}, "no instant is lost to the spread"

    # Pause, resume, finish, delete.

    async def test_a_paused_schedule_has_no_index_row_and_resumes_from_now(
        self, store: Store, schedules: Schedules, clock: ManualClock
    ) -> None:
        await schedules.put(schedule())
        assert (await schedules.pause("u1", "digest")).state == "paused"
        assert await store.index.count() == 0
        clock.advance(timedelta(days=2))
        assert await store.index.claim_due(clock.now_ms()) == []
        resumed = await schedules.resume("u1", "digest")
        assert (resumed.state, resumed.next_fire_at) == ("active", clock.now_ms() + HOUR_MS)
        assert await store.index.claim_due(clock.now_ms()) == [], "the paused instants were not missed"

    async def test_pausing_and_resuming_twice_changes_nothing(self, schedules: Schedules, clock: ManualClock) -> None:
        await schedules.put(schedule())
        paused = await schedules.pause("u1", "digest")
        assert await schedules.pause("u1", "digest") == paused
        resumed = await schedules.resume("u1", "digest")
        clock.advance(timedelta(hours=5))
        assert await schedules.resume("u1", "digest") == resumed, "an overdue fire is not thrown away by a resume"

    async def test_a_put_keeps_a_schedule_paused_or_resumes_it_as_it_says(self, store: Store, schedules: Schedules) -> None:
        await schedules.put(schedule(enabled=False))
        assert await store.index.count() == 0
        assert (await schedules.put(schedule(enabled=True))).state == "active"
        assert await store.index.count() == 1
        assert (await schedules.put(schedule(enabled=False))).state == "paused"
        assert await store.index.count() == 0

    async def test_resuming_what_can_never_fire_again_is_refused(self, schedules: Schedules, clock: ManualClock) -> None:
        await schedules.put(schedule(when=At("2030-11-20T13:00:00Z")))
        await schedules.pause("u1", "digest")
        clock.advance(timedelta(hours=2))
        with pytest.raises(NeverFires):
            await schedules.resume("u1", "digest")
        assert (await stored(schedules)).state == "paused"

    async def test_a_claimed_one_shot_is_finished_and_its_put_again_too(
        self, store: Store, schedules: Schedules, clock: ManualClock
    ) -> None:
        once = schedule(when=At("2030-11-20T13:00:00Z"))
        await schedules.put(once)
        clock.advance(timedelta(hours=2))
        assert len(await store.index.claim_due(clock.now_ms())) == 1
        found = await stored(schedules, once.key, owner=once.owner)
        assert (found.state, found.next_fire_at) == ("finished", None)
        assert (await schedules.put(once)).state == "finished"
        assert (await schedules.put(replace(once, payload=1))).state == "finished"
        assert await store.index.count() == 0
        assert (await schedules.put(schedule(when=HOURLY))).state == "active"

    @pytest.mark.parametrize("verb", ["pause", "resume"])
    async def test_pause_and_resume_of_nothing_say_so(self, schedules: Schedules, verb: str) -> None:
        with pytest.raises(ScheduleNotFound):
            await getattr(schedules, verb)("u1", "nothing")

    async def test_a_deleted_schedule_is_gone_from_the_index_too(self, store: Store, schedules: Schedules) -> None:
        await schedules.put(schedule())
        assert await schedules.delete("u1", "digest") is True
        assert await schedules.delete("u1", "digest") is False
        assert await schedules.get("u1", "digest") is None
        assert await store.index.count() == 0

    async def test_all_schedules_of_an_owner_are_paused_or_deleted_and_nobody_elses(
        self, store: Store, schedules: Schedules
    ) -> None:
        await schedules.put_many([schedule(f"k{n}", owner=owner) for owner in ("u1", "u2") for n in range(3)])
        await schedules.pause("u1", "k0")
        assert await schedules.pause_all("u1") == 2
        assert await store.index.count() == 3
        assert await schedules.delete_all("u1") == 3
        assert await schedules.delete_all("u1") == 0
        assert [stored.owner for stored in (await schedules.list()).items] == ["u2"] * 3

    # Versions.

    async def test_an_update_needs_the_version_that_is_there(self, schedules: Schedules) -> None:
        created = await schedules.update(schedule(payload=1), version=0)
        assert created.version == 1
        updated = await schedules.update(schedule(payload=2), version=1)
        assert updated.version == 2
        for version in (0, 1, 3):
            with pytest.raises(VersionConflict) as conflict:
                await schedules.update(schedule(payload=3), version=version)
            assert conflict.value.found == 2
        with pytest.raises(VersionConflict):
            await schedules.update(schedule("absent"), version=1)

    async def test_an_update_needs_the_schedule_that_was_read_and_not_one_made_anew(self, schedules: Schedules) -> None:
        created = await schedules.put(schedule(payload=1))
        read = await stored(schedules)
        assert read.revision == created.revision
        another = Revision(created.version, created.created_at - 1)
        for change in (
            schedules.update(schedule(payload=2), version=another),
            schedules.pause("u1", "digest", version=another),
            schedules.delete("u1", "digest", version=another),
        ):
            with pytest.raises(VersionConflict):
                await change
        assert (await schedules.update(schedule(payload=2), version=[another, read.revision])).version == 2
        assert (await schedules.pause("u1", "digest", version=Revision(2, created.created_at))).version == 3
        assert await schedules.delete("u1", "digest", version=Revision())

    async def test_a_patch_changes_what_it_names_and_needs_the_version_that_is_there(self, schedules: Schedules) -> None:
        target = HttpTarget("https://example.org/hook")
        before = await schedules.put(schedule(target=target, payload={"a": 1, "b": 2}, policy=Policy(attempts=3)))
        patched = await schedules.patch("u1", "digest", {"payload": {"a": None}}, version=1)
        assert patched.schedule.declared() == replace(before.declared(), payload={"b": 2})
        assert (patched.schedule.version, patched.schedule.next_fire_at) == (2, before.next_fire_at)
        with pytest.raises(VersionConflict):
            await schedules.patch("u1", "digest", {"payload": 3}, version=1)
        with pytest.raises(InvalidSchedule):
            await schedules.patch("u1", "digest", {"nonsense": 1})
        with pytest.raises(ScheduleNotFound):
            await schedules.patch("u1", "absent", {"payload": 3})
        assert await schedules.get("u1", "digest") == patched.schedule

    @pytest.mark.parametrize("length", [1, 40_000])  # a long one is merged between two reads of the store
    async def test_of_concurrent_patches_none_is_lost(self, schedules: Schedules, length: int) -> None:
        before = {"text": "x" * length}
        await schedules.put(schedule(payload=before))
        await asyncio.gather(*(schedules.patch("u1", "digest", {"payload": {f"k{n}": n}}) for n in range(4)))
        found = await stored(schedules)
        assert (found.payload, found.version) == (before | {f"k{n}": n for n in range(4)}, 5)

    @pytest.mark.parametrize("version", [0, 1])
    async def test_of_concurrent_updates_of_one_version_exactly_one_wins(self, schedules: Schedules, version: int) -> None:
        if version:
            await schedules.put(schedule())

        async def attempt(n: int) -> bool:
            try:
                await schedules.update(schedule(payload=n), version=version)
            except VersionConflict:
                return False
            return True

        assert sum(await asyncio.gather(*(attempt(n) for n in range(8)))) == 1
        assert (await stored(schedules)).version == version + 1

    async def test_concurrent_puts_all_land_and_each_counts(self, store: Store, schedules: Schedules) -> None:
        await asyncio.gather(*(schedules.put(schedule(payload=n)) for n in range(10)))
        assert (await stored(schedules)).version == 10
        assert await store.index.count() == 1

    # Batches.

    async def test_puts_that_come_together_succeed_or_fail_each_by_itself(self, store: Store, schedules: Schedules) -> None:
        await schedules.put(schedule("old"))
        passed = At("2011-01-01T00:00:00Z")
        puts = [
            schedules.put(schedule("a")),
            schedules.put(schedule("b", passed)),
            schedules.update(schedule("old", DAILY), version=7),
            schedules.put(schedule("c")),
        ]
        a, b, old, c = await asyncio.gather(*puts, return_exceptions=True)
        assert isinstance(a, StoredSchedule)
        assert isinstance(c, StoredSchedule)
        assert (type(b), type(old)) == (NeverFires, VersionConflict)
        assert [each.key for each in (await schedules.list()).items] == ["a", "c", "old"]
        assert await store.index.count() == 3

    async def test_put_many_writes_all_and_counts_what_differed(self, store: Store, schedules: Schedules) -> None:
        many = [schedule(f"k{n:04}", payload=n) for n in range(1200)]
        assert await schedules.put_many(many) == 1200
        assert await schedules.put_many(many) == 0
        changed = [schedule("new"), *(replace(each, payload="x") for each in many[:10]), *many[10:]]
        assert await schedules.put_many(changed) == 11
        assert await store.index.count() == 1201
        assert await schedules.put_many([]) == 0

    async def test_many_new_schedules_among_old_ones_of_every_state_are_all_in_step(
        self, store: Store, schedules: Schedules
    ) -> None:
        many = [schedule(f"k{n:04}", enabled=n % 3 > 0) for n in range(450)]
        await schedules.put_many(many[::2])
        await store.index.claim_due(NOW_MS + HOUR_MS, 100)
        await schedules.put_many([replace(each, when=DAILY, tz=DAILY.tz) for each in many])
        assert await store.index.count() == 300
        assert {row.when for row in await store.index.claim_due(NOW_MS + 2 * DAY_MS, 500)} == {DAILY}

    @pytest.mark.parametrize(
        ("bad", "error"),
        [
            (schedule("bad", when=At("2020-01-01T00:00:00Z")), NeverFires),
            (schedule("bad", payload={1, 2}), InvalidSchedule),
            (schedule("bad", payload="x" * 300_000), InvalidSchedule),
            (schedule("bad", payload=float("nan")), InvalidSchedule),
            (schedule("k0"), InvalidSchedule),
            ({"owner": "u1"}, InvalidSchedule),
        ],
        ids=["never fires", "not JSON", "too large", "not a number", "the same twice", "not a schedule"],
    )
    async def test_one_bad_schedule_among_many_means_that_none_is_written(
        self, store: Store, schedules: Schedules, bad: Schedule, error: type[Exception]
    ) -> None:
        many = [*(schedule(f"k{n}") for n in range(5)), bad, schedule("after")]
        with pytest.raises(error, match="schedule 5") as refused:
            await schedules.put_many(many)
        assert getattr(refused.value, "position", None) == 5
        assert (await schedules.list()).items == []
        assert await store.index.count() == 0

    async def test_declare_makes_the_owners_set_exactly_this_one(
        self, store: Store, schedules: Schedules, clock: ManualClock
    ) -> None:
        await schedules.put(schedule("other", owner="u2"))
        first = await schedules.declare("system", [schedule("a", owner="system"), schedule("b", owner="system")])
        assert (first.added, first.changed, first.removed, first.kept) == (["a", "b"], [], [], [])
        clock.advance(timedelta(minutes=90))
        before = await schedules.get("system", "b")
        second = await schedules.declare(
            "system", [schedule("b", owner="system"), schedule("c", owner="system"), schedule("a", owner="system", payload=1)]
        )
        assert (second.added, second.changed, second.removed, second.kept) == (["c"], ["a"], [], ["b"])
        assert await schedules.get("system", "b") == before, "what was not changed was not touched, overdue or not"
        third = await schedules.declare("system", [])
        assert third.removed == ["a", "b", "c"]
        assert await store.index.count() == 1

    async def test_a_declared_one_shot_that_has_passed_is_kept_as_finished(self, store: Store, schedules: Schedules) -> None:
        once = schedule("once", when=At("2020-01-01T00:00:00Z"), owner="system")
        await schedules.declare("system", [once])
        again = await schedules.declare("system", [once])
        assert again.kept == ["once"]
        assert (await stored(schedules, "once", owner="system")).state == "finished"
        assert await store.index.count() == 0
        with pytest.raises(NeverFires):
            await schedules.declare("system", [schedule("off", when=Weekly({}), owner="system")])

    async def test_declaring_for_another_owner_is_refused(self, schedules: Schedules) -> None:
        with pytest.raises(InvalidSchedule, match="schedule 1"):
            await schedules.declare("u1", [schedule("a"), schedule("b", owner="u2")])
        assert (await schedules.list()).items == []

    # Lists.

    async def test_a_list_is_by_owner_and_key_in_pages(self, schedules: Schedules) -> None:
        ids = sorted((owner, key) for owner in ("B", "a", "ä") for key in ("B", "a", "b", "ä", "a/b", "日"))
        await schedules.put_many([schedule(key, owner=owner) for owner, key in reversed(ids)])
        found: list[tuple[str, str]] = []
        cursor = None
        while True:
            page = await schedules.list(limit=4, after=cursor)
            found += [stored.id for stored in page.items]
            if page.next is None:
                break
            assert len(page.items) == 4
            cursor = page.next
        assert found == ids
        assert [stored.key for stored in (await schedules.list(owner="a")).items] == [key for owner, key in ids if owner == "a"]

    async def test_a_list_can_be_of_one_state(self, store: Store, schedules: Schedules) -> None:
        await schedules.put_many(
            [
                schedule("active1"),
                schedule("active2", owner="u2"),
                schedule("paused", enabled=False),
                schedule("done", when=At("2030-11-20T12:00:01Z")),
                schedule("bad"),
            ]
        )
        await self.corrupt(store, "u1", "bad", when_text="never")
        await store.index.claim_due(NOW_MS + HOUR_MS)
        expected: dict[State, list[str]] = {
            "active": ["active1", "active2"],
            "paused": ["paused"],
            "finished": ["done"],
            "unreadable": ["bad"],
            "unindexed": [],
        }
        for state, keys in expected.items():
            page = await schedules.list(state=state)
            assert [(stored.key, stored.state) for stored in page.items] == [(key, state) for key in keys]
        assert [stored.key for stored in (await schedules.list(state="active", owner="u2")).items] == ["active2"]
        page = await schedules.list(state="active", limit=1)
        assert [stored.key for stored in (await schedules.list(state="active", after=page.next)).items] == ["active2"]

    # Unreadable schedules, and failures in the middle.

    async def test_a_schedule_that_does_not_read_is_shown_with_its_reason_and_mended_by_a_put(
        self, store: Store, schedules: Schedules
    ) -> None:
        await schedules.put(schedule("bad"))
        await self.corrupt(store, "u1", "bad", when_text="never")
        assert await store.index.claim_due(NOW_MS + HOUR_MS) == []
        found = await stored(schedules, "bad")
        assert (found.state, str(found.when)) == ("unreadable", "never")
        assert isinstance(found.when, Unreadable)
        assert found.reason
        repaired = await schedules.put(schedule("bad"))
        assert (repaired.state, repaired.next_fire_at) == ("active", NOW_MS + HOUR_MS)
        assert await store.index.set_aside() == []
        assert await store.index.count() == 1

    async def test_a_schedule_that_does_not_read_can_be_paused_and_deleted(self, store: Store, schedules: Schedules) -> None:
        await schedules.put_many([schedule("bad"), schedule("good")])
        await self.corrupt(store, "u1", "bad", when_text="never")
        await store.index.claim_due(NOW_MS + HOUR_MS)
        assert await schedules.pause_all("u1") == 2
        paused = await stored(schedules, "bad")
        assert (paused.state, str(paused.when)) == ("paused", "never")
        assert await store.index.set_aside() == []
        with pytest.raises(NeverFires, match="never"):
            await schedules.resume("u1", "bad")
        assert await schedules.delete("u1", "bad")

    async def test_a_put_of_the_same_mends_a_schedule_that_was_set_aside_and_reads_again(
        self, store: Store, schedules: Schedules
    ) -> None:
        await schedules.put(schedule("bad"))
        await self.corrupt(store, "u1", "bad", when_text="never")
        await store.index.claim_due(NOW_MS + HOUR_MS)
        await self.corrupt(store, "u1", "bad", when_text=str(HOURLY))
        assert (await schedules.put(schedule("bad"))).state == "active"
        assert await store.index.count() == 1
        assert await store.index.set_aside() == []

    @pytest.mark.parametrize("enabled", [True, False])
    async def test_a_put_takes_over_a_row_that_was_written_into_the_index_alone(
        self, store: Store, schedules: Schedules, enabled: bool
    ) -> None:
        await store.index.upsert_many([IndexRow("u1", "digest", DAILY, NOW_MS - 1)])
        await schedules.put(schedule(enabled=enabled))
        assert await store.index.claim_due(NOW_MS) == []
        assert await store.index.count() == int(enabled)

    async def test_new_bounds_keep_an_overdue_fire_that_lies_within_them(
        self, store: Store, schedules: Schedules, clock: ManualClock
    ) -> None:
        await schedules.put(schedule())
        clock.advance(HOUR_MS / 1000 + 1)
        await schedules.put(schedule(ends_at=NOW_MS + 2 * HOUR_MS))
        (row,) = await store.index.claim_due(clock.now_ms())
        assert (row.next_fire_at, row.ends_at) == (NOW_MS + HOUR_MS, NOW_MS + 2 * HOUR_MS)
        assert await store.index.next_due() == NOW_MS + 2 * HOUR_MS

    async def test_putting_back_what_was_read_changes_nothing(self, schedules: Schedules) -> None:
        stored = await schedules.put(schedule(payload={"n": 1}))
        assert await schedules.put(stored) == stored
        changed = await schedules.put(schedule(payload={"n": True}))
        assert changed.version == 2, "to Python 1 is True, to JSON it is not"

    async def test_a_decision_that_fails_leaves_everything_as_it_was(self, store: Store, schedules: Schedules) -> None:
        before = await schedules.put(schedule())

        def decide(stored: Stored) -> Sequence[ScheduleChange | ScheduleRemoval]:
            assert stored == {Id("u1", "digest"): before}
            raise LookupError("no")

        with pytest.raises(LookupError):
            await store.schedules.change([Id("u1", "digest")], decide)
        assert await schedules.get("u1", "digest") == before

    async def test_a_put_beside_claims_neither_loses_nor_repeats_a_fire(self, store: Store, schedules: Schedules) -> None:
        """A put that keeps the next fire must not undo the advance of a concurrent claim."""
        await schedules.put_many([schedule(f"k{n}") for n in range(20)])
        now_ms = NOW_MS + HOUR_MS

        async def put_all() -> None:
            for n in range(20):
                await schedules.put(schedule(f"k{n}", payload="new"))

        async def claim_all() -> list[str]:
            claimed: list[str] = []
            for _ in range(40):
                claimed += [row.key for row in await store.index.claim_due(now_ms, 1)]
            return claimed

        _, *shares = await asyncio.gather(put_all(), claim_all(), claim_all())
        assert sorted(key for share in shares for key in share) == sorted(f"k{n}" for n in range(20))
        every: list[StoredSchedule] = (await schedules.list()).items
        assert {stored.next_fire_at for stored in every} == {now_ms + HOUR_MS}
