"""Conformance kit of a schedule index."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tickler.errors import InvalidInput, ManagedRow, WorkerUnfit
from tickler.index.advance import ROW_FORMAT
from tickler.index.contract import ScheduleIndex
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Schedule
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.claimers import Claimers
from tickler.testing.hourly import HOURLY
from tickler.testing.store_contract import DAY_MS, HOUR_MS, NOW_MS, StoreContract
from tickler.when import At, Cron, Every, When


def row(
    key: str, due_in_ms: int = -1, when: When = HOURLY, *, owner: str = "u1", ends_at: int | None = None, offset_ms: int = 0
) -> IndexRow:
    return IndexRow(owner, key, when, NOW_MS + due_in_ms, ends_at, offset_ms)


def keys(rows: list[IndexRow]) -> list[str]:
    return [row.key for row in rows]


async def walked(index: ScheduleIndex, limit: int) -> list[list[IndexRow]]:
    pages: list[list[IndexRow]] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        page, cursor = await index.walk(cursor, limit)
        pages.append(page)
    return pages


class ScheduleIndexContract(StoreContract):
    """Requirements on a schedule index. `StoreContract` documents the fixtures."""

    @pytest.fixture
    def index(self, store: Store) -> ScheduleIndex:
        return store.index

    async def test_an_empty_index_has_nothing_due(self, index: ScheduleIndex) -> None:
        assert await index.claim_due(NOW_MS) == []
        assert await index.next_due() is None
        assert await index.count() == 0

    async def test_upsert_is_idempotent(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("a")])
        await index.upsert_many([row("a")])
        assert await index.count() == 1
        assert await index.claim_due(NOW_MS) == [row("a")]

    async def test_upsert_replaces_the_row_of_the_same_owner_and_key(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("a"), row("a", owner="u2")])
        replacement = row("a", -5, Every(minutes=7), ends_at=NOW_MS + DAY_MS, offset_ms=3)
        await index.upsert_many([replacement])
        assert await index.claim_due(NOW_MS) == [replacement, row("a", owner="u2")]

    async def test_rows_come_back_as_they_were_before_the_advance(self, index: ScheduleIndex) -> None:
        due = row("a", -HOUR_MS, Cron("0 9 * * tue", tz="Europe/Paris"), ends_at=NOW_MS + 90 * DAY_MS, offset_ms=250)
        await index.upsert_many([due])
        (claimed,) = await index.claim_due(NOW_MS)
        assert claimed == due
        assert claimed.timezone == "Europe/Paris"
        assert claimed.nominal_at == claimed.next_fire_at - 250

    async def test_a_claimed_row_is_advanced_to_its_next_instant(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("a", -1)])
        await index.claim_due(NOW_MS)
        assert await index.next_due() == NOW_MS + HOUR_MS

    async def test_a_second_claim_at_the_same_now_gets_nothing(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row(f"k{n}") for n in range(10)])
        assert len(await index.claim_due(NOW_MS)) == 10
        assert await index.claim_due(NOW_MS) == []

    @pytest.mark.parametrize("years", [-25, -5, 25])
    async def test_the_advance_is_from_the_now_that_was_given_not_from_a_wall_clock(
        self, index: ScheduleIndex, years: int
    ) -> None:
        now_ms = NOW_MS + years * 365 * DAY_MS
        await index.upsert_many([IndexRow("u1", "a", HOURLY, now_ms - 1)])
        assert keys(await index.claim_due(now_ms)) == ["a"]
        assert await index.next_due() == now_ms + HOUR_MS

    async def test_a_row_asleep_for_years_is_claimed_once_and_moves_past_now(self, index: ScheduleIndex) -> None:
        every = Every(minutes=5, start=NOW_MS - 4000 * DAY_MS)
        await index.upsert_many([row("a", -3000 * DAY_MS, every)])
        assert len(await index.claim_due(NOW_MS)) == 1
        assert await index.claim_due(NOW_MS) == []
        assert await index.next_due() == NOW_MS + 5 * 60_000

    async def test_a_row_is_due_at_its_very_instant_and_not_before(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("a", 0)])
        assert await index.claim_due(NOW_MS - 1) == []
        assert keys(await index.claim_due(NOW_MS)) == ["a"]

    @pytest.mark.parametrize("now_ms", [-HOUR_MS, 0, 60_000, 250_000_020_000_000])
    async def test_no_instant_is_too_early_or_too_late(self, index: ScheduleIndex, now_ms: int) -> None:
        """Instants near the epoch work, as other test suites use them."""
        minutely = Cron("* * * * *")
        await index.upsert_many([IndexRow("u1", f"k{n}", minutely, now_ms + n) for n in (-1, 0, 1)])
        assert await index.next_due() == now_ms - 1
        assert await index.count(due_by=now_ms) == 2
        assert [each.next_fire_at for each in await index.claim_due(now_ms)] == [now_ms - 1, now_ms]
        assert await index.claim_due(now_ms) == []
        assert sorted(each.next_fire_at - now_ms for page in await walked(index, 2) for each in page) == [1, 60_000, 60_000]

    async def test_rows_that_are_not_due_are_not_touched(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("due", -1), row("later", 1)])
        assert keys(await index.claim_due(NOW_MS)) == ["due"]
        assert await index.next_due() == NOW_MS + 1

    async def test_rows_come_earliest_first(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("third", -10), row("first", -30), row("second", -20), row("fourth", -1)])
        assert keys(await index.claim_due(NOW_MS)) == ["first", "second", "third", "fourth"]

    async def test_the_limit_takes_the_earliest_and_leaves_the_rest_due(self, store: Store, index: ScheduleIndex) -> None:
        await index.upsert_many([row(f"k{n}", -100 + n) for n in range(10)])
        calls = [keys(await index.claim_due(NOW_MS, 4)) for _ in range(4)]
        assert [len(call) for call in calls] == [4, 4, 2, 0]
        assert all(call == sorted(call) for call in calls)
        in_order = [f"k{n}" for n in range(10)]
        claimed = [key for call in calls for key in call]
        assert claimed == in_order if store.capabilities.order == "total" else sorted(claimed) == in_order

    async def test_remove_of_nothing_is_a_no_op(self, index: ScheduleIndex) -> None:
        await index.remove("u1", "nothing")
        assert await index.count() == 0

    async def test_a_removed_row_is_not_claimed(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("a"), row("b"), row("a", owner="u2")])
        await index.remove("u1", "a")
        assert {(r.owner, r.key) for r in await index.claim_due(NOW_MS)} == {("u1", "b"), ("u2", "a")}

    async def test_names_are_kept_as_they_are(self, store: Store, index: ScheduleIndex) -> None:
        names = ["a/b", "a b", "%2F", "ä", "日本", "'; --", "🐌", "A", "a", "#", "x" * store.capabilities.longest_name_bytes]
        await index.upsert_many([row(name, owner=name) for name in names])
        assert {(r.owner, r.key) for r in await index.claim_due(NOW_MS)} == {(name, name) for name in names}

    async def test_a_one_shot_leaves_the_index_when_it_is_claimed(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("once", 0, At("2030-11-20T12:00:00Z"))])
        assert keys(await index.claim_due(NOW_MS)) == ["once"]
        assert await index.count() == 0
        assert await index.set_aside() == []

    async def test_a_cron_with_years_advances_and_leaves_the_index_after_the_last_of_them(self, index: ScheduleIndex) -> None:
        yearly = row("yearly", 0, Cron("cron(0 9 ? 12 6L 2030,2032)", tz="Asia/Tokyo"))
        await index.upsert_many([yearly])
        assert await index.claim_due(NOW_MS) == [yearly]
        for friday_ms in (1_924_560_000_000, 1_988_064_000_000):  # 27 December 2030 and 31 December 2032, at 9 in Tokyo
            assert await index.next_due() == friday_ms
            assert keys(await index.claim_due(friday_ms)) == ["yearly"]
        assert await index.count() == 0

    async def test_a_row_leaves_the_index_after_the_last_instant_within_its_bounds(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("inclusive", -1, ends_at=NOW_MS + HOUR_MS), row("over", -1, ends_at=NOW_MS + HOUR_MS - 1)])
        assert len(await index.claim_due(NOW_MS)) == 2
        assert await index.count() == 1
        assert keys(await index.claim_due(NOW_MS + HOUR_MS)) == ["inclusive"]
        assert await index.count() == 0

    async def test_an_offset_moves_every_fire_and_keeps_the_nominal_instant(self, index: ScheduleIndex) -> None:
        offset_ms = 20 * 60_000
        await index.upsert_many([row("late", -HOUR_MS + offset_ms, offset_ms=offset_ms)])
        (claimed,) = await index.claim_due(NOW_MS)
        assert claimed.nominal_at == NOW_MS - HOUR_MS
        assert await index.next_due() == NOW_MS + offset_ms, "the instant at now itself is still ahead, moved by the offset"

    async def test_next_due_is_the_earliest_and_count_counts(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("b", 20), row("a", 10), row("c", 30)])
        assert await index.next_due() == NOW_MS + 10
        assert await index.count() == 3

    async def test_the_same_expression_in_two_zones_advances_in_each(self, index: ScheduleIndex) -> None:
        nine = {zone: Cron("0 9 * * *", tz=zone) for zone in ("Asia/Tokyo", "America/New_York")}
        await index.upsert_many([row(zone, -1, when) for zone, when in nine.items()])
        await index.claim_due(NOW_MS)
        upcoming = {zone: when.next_after(NOW_MS) for zone, when in nine.items()}
        claimed = await index.claim_due(NOW_MS + DAY_MS)
        assert {r.key: r.next_fire_at for r in claimed} == upcoming

    async def test_a_row_of_a_schedule_can_only_be_changed_through_the_schedule(
        self, store: Store, schedules: Schedules, index: ScheduleIndex
    ) -> None:
        await schedules.put(Schedule(owner="u1", key="mine", when=HOURLY))
        with pytest.raises(ManagedRow):
            await index.upsert_many([row("other"), row("mine")])
        with pytest.raises(ManagedRow):
            await index.remove("u1", "mine")
        (claimed,) = await index.claim_due(NOW_MS + HOUR_MS)
        assert (claimed.key, claimed.managed) == ("mine", True)

    # Bad rows, newer rows, and workers that lack something.

    async def test_a_bad_row_neither_blocks_nor_is_lost_nor_stays_silent(
        self, store: Store, index: ScheduleIndex, caplog: pytest.LogCaptureFixture
    ) -> None:
        await index.upsert_many([row("bad", -10), row("good", -5)])
        await self.corrupt(store, "u1", "bad", when_text="61 * * * *")
        assert keys(await index.claim_due(NOW_MS)) == ["good"]
        (aside,) = await index.set_aside()
        assert (aside.owner, aside.key, aside.when_text, aside.next_fire_at) == ("u1", "bad", "61 * * * *", NOW_MS - 10)
        assert "minute" in aside.reason
        assert await index.count() == 1
        assert await index.count_set_aside() == 1
        assert "set aside 1 due rows" in caplog.text
        assert "u1/bad" in caplog.text

    async def test_more_bad_rows_than_the_limit_block_nothing(self, store: Store, index: ScheduleIndex) -> None:
        await index.upsert_many([row(f"bad{n}", -100 + n) for n in range(7)] + [row("good", -1)])
        for n in range(7):
            await self.corrupt(store, "u1", f"bad{n}", when_text="never")
        assert keys(await index.claim_due(NOW_MS, 2)) == ["good"]
        assert len(await index.set_aside()) == await index.count_set_aside() == 7

    async def test_a_bad_row_comes_back_as_it_was_when_it_can_be_read(self, store: Store, index: ScheduleIndex) -> None:
        await index.upsert_many([row("bad", -10)])
        await self.corrupt(store, "u1", "bad", when_text="never")
        assert await index.claim_due(NOW_MS) == []
        assert await index.restore() == 0
        await self.corrupt(store, "u1", "bad", when_text=str(HOURLY))
        assert await index.restore() == 1
        assert await index.set_aside() == []
        assert await index.claim_due(NOW_MS) == [row("bad", -10)]

    async def test_an_upsert_replaces_a_bad_row_that_was_set_aside(self, store: Store, index: ScheduleIndex) -> None:
        await index.upsert_many([row("bad", -10)])
        await self.corrupt(store, "u1", "bad", when_text="never")
        await index.claim_due(NOW_MS)
        await index.upsert_many([row("bad", -3)])
        assert await index.set_aside() == []
        assert await index.claim_due(NOW_MS) == [row("bad", -3)]

    async def test_removing_a_row_that_was_set_aside_forgets_it(self, store: Store, index: ScheduleIndex) -> None:
        await index.upsert_many([row("bad", -10)])
        await self.corrupt(store, "u1", "bad", when_text="never")
        await index.claim_due(NOW_MS)
        await index.remove("u1", "bad")
        assert await index.set_aside() == []

    async def test_a_row_with_a_zone_that_nobody_knows_is_a_bad_row(self, store: Store, index: ScheduleIndex) -> None:
        await index.upsert_many([row("bad", -10), row("good", -5)])
        await self.corrupt(store, "u1", "bad", tz="Mars/Olympus_Mons")
        assert keys(await index.claim_due(NOW_MS)) == ["good"]
        assert [aside.tz for aside in await index.set_aside()] == ["Mars/Olympus_Mons"]

    async def test_a_worker_that_lacks_a_zone_which_others_have_claims_nothing_and_says_so(
        self, store: Store, index: ScheduleIndex
    ) -> None:
        await index.upsert_many([row("good", -10), row("zoned", -5)])
        await self.corrupt(store, "u1", "zoned", tz="Mars/Olympus_Mons")
        await store.records.put("zone", "Mars/Olympus_Mons", b"{}", now_ms=NOW_MS)
        with pytest.raises(WorkerUnfit, match="Mars/Olympus_Mons"):
            await index.claim_due(NOW_MS)
        assert await index.set_aside() == []
        assert await index.count() == 2
        assert await index.next_due() == NOW_MS - 10, "the good row is still there for a worker that is fit"

    async def test_rows_of_a_newer_format_are_left_alone_and_the_worker_reports_itself(
        self, store: Store, index: ScheduleIndex
    ) -> None:
        await index.upsert_many([row(f"new{n}", -10) for n in range(3)] + [row("old", -5)])
        for n in range(3):
            await self.corrupt(store, "u1", f"new{n}", when_text="phase(moon)", format=ROW_FORMAT + 1)
        assert keys(await index.claim_due(NOW_MS, 2)) == ["old"]
        assert await index.set_aside() == []
        assert await index.count() == 4
        (report,) = await store.records.list("outdated", now_ms=NOW_MS)
        assert isinstance(report.value, dict)
        assert report.value["row_format"] == ROW_FORMAT

    async def test_what_is_due_is_counted_and_no_further_than_asked_for(self, index: ScheduleIndex) -> None:
        assert await index.count(due_by=NOW_MS, most=10) == 0
        await index.upsert_many([row(f"k{n}", n - 4) for n in range(10)])
        assert await index.count() == 10
        assert await index.count(most=100) == 10
        assert await index.count(most=3) == 3
        assert await index.count(due_by=NOW_MS) == 5, "what is due right now is among them"
        assert await index.count(due_by=NOW_MS, most=5) == 5
        assert await index.count(due_by=NOW_MS, most=4) == 4
        assert await index.count(due_by=NOW_MS - 5) == 0
        await index.claim_due(NOW_MS)
        assert await index.count(due_by=NOW_MS) == 0

    # Walks.

    async def test_a_walk_meets_every_row_once_page_by_page(self, index: ScheduleIndex) -> None:
        assert await index.walk(None, 10) == ([], None)
        rows = [
            row(f"k{n}", (n - 7) * HOUR_MS, HOURLY if n % 2 else Every(minutes=7), owner=f"u{n % 3}", offset_ms=n)
            for n in range(25)
        ]
        rows.append(row("ends", 5, ends_at=NOW_MS + DAY_MS))
        await index.upsert_many(rows)
        for limit in (1, 4, 13, 26, 1000):
            pages = await walked(index, limit)
            assert all(len(page) <= limit for page in pages)
            assert sorted(each for page in pages for each in map(str, page)) == sorted(map(str, rows)), f"{limit} at a time"

    async def test_a_walk_changes_nothing(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row("due", -1), row("later", 1)])
        await walked(index, 1)
        assert keys(await index.claim_due(NOW_MS)) == ["due"]

    async def test_a_walk_meets_rows_of_schedules_and_no_others_of_them(
        self, store: Store, schedules: Schedules, index: ScheduleIndex
    ) -> None:
        await schedules.put_many([Schedule(owner="u1", key=key, when=HOURLY) for key in ("active", "paused")])
        await schedules.pause("u1", "paused")
        await store.records.put("worker", "w1", b"{}", now_ms=NOW_MS, expires_at=NOW_MS + HOUR_MS)
        ((found,),) = await walked(index, 10)
        assert (found.key, found.when, found.next_fire_at, found.managed) == ("active", HOURLY, NOW_MS + HOUR_MS, True)

    async def test_a_row_that_stays_is_met_whatever_comes_and_goes_during_the_walk(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row(f"stays{n}", DAY_MS + n) for n in range(20)])
        await index.upsert_many([row(f"goes{n}", DAY_MS + n) for n in range(10)] + [row(f"due{n}", n - 10) for n in range(10)])
        met: Counter[str] = Counter()
        cursor: str | None = None
        for step in range(100):
            page, cursor = await index.walk(cursor, 3)
            met.update(keys(page))
            if cursor is None:
                break
            await index.remove("u1", f"goes{step}")
            await index.upsert_many([row(f"comes{step}", DAY_MS + step)])
            await index.claim_due(NOW_MS, 2)  # advances two rows
        assert cursor is None
        assert all(met[f"stays{n}"] == 1 for n in range(20)), met
        assert all(met[f"due{n}"] >= 1 for n in range(10)), "one that was advanced may be met where it was or where it is"

    async def test_a_walk_leaves_out_what_does_not_read_and_goes_on(self, store: Store, index: ScheduleIndex) -> None:
        await index.upsert_many([row(f"k{n}", n) for n in range(6)])
        await self.corrupt(store, "u1", "k1", when_text="61 * * * *")
        await self.corrupt(store, "u1", "k2", tz="Mars/Olympus_Mons")
        await self.corrupt(store, "u1", "k3", when_text="phase(moon)", format=ROW_FORMAT + 1)
        pages = await walked(index, 1)
        assert sorted(key for page in pages for key in keys(page)) == ["k0", "k4", "k5"]
        assert await index.set_aside() == []
        assert await index.count() == 6

    @pytest.mark.parametrize(
        "cursor", ["", "x", "{}", "[-1,null]", "-1", "99999999999999999999", '["a","\\u0000"]', '["\ud800","a"]']
    )
    async def test_a_walk_takes_no_cursor_but_its_own(self, index: ScheduleIndex, cursor: str) -> None:
        await index.upsert_many([row(f"k{n}", n) for n in range(3)])
        with pytest.raises(InvalidInput, match="start with None"):
            await index.walk(cursor, 1)

    # Several claimers.

    async def test_concurrent_claimers_get_disjoint_rows_and_together_everything(self, index: ScheduleIndex) -> None:
        await index.upsert_many([row(f"k{n:03}", -1000 + n) for n in range(300)])

        async def claim_all() -> list[str]:
            mine: list[str] = []
            while claimed := await index.claim_due(NOW_MS, 7):
                mine += keys(claimed)
            return mine

        shares = await asyncio.gather(*(claim_all() for _ in range(5)))
        assert Counter(key for share in shares for key in share) == Counter(f"k{n:03}" for n in range(300))

    async def test_four_processes_get_disjoint_rows_and_together_everything(
        self, index: ScheduleIndex, claimers: Claimers
    ) -> None:
        rows = [row(f"k{n:04}", -5000 + n) for n in range(self.many)]
        await index.upsert_many(rows)
        await claimers.start(4, NOW_MS, limit=50)
        claimers.go()
        returned = await claimers.finish()
        assert returned == Counter((r.owner, r.key, r.next_fire_at) for r in rows)
        assert await index.claim_due(NOW_MS) == []

    async def test_a_killed_claimer_loses_at_most_what_it_had_in_hand(self, index: ScheduleIndex, kill: Claimers) -> None:
        limit = 10
        rows = [row(f"k{n:04}", -5000 + n) for n in range(self.many)]
        everything = {(r.owner, r.key, r.next_fire_at) for r in rows}
        await index.upsert_many(rows)
        await kill.start(4, NOW_MS, limit)
        kill.go()
        await kill.kill_one_at_work()
        await kill.kill_one_at_work()
        returned = await kill.finish()
        still_due = await index.claim_due(NOW_MS, len(rows))
        accounted = returned + Counter((r.owner, r.key, r.next_fire_at) for r in still_due)
        assert kill.killed > 0, "no process was killed in flight, so nothing was proven"
        assert max(accounted.values()) == 1, "an occurrence came back twice"
        assert set(accounted) <= everything
        assert len(everything - set(accounted)) <= limit * kill.killed
        assert await index.count() == len(rows), "every row is still in the index, advanced"
