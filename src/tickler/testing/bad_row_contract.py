"""Conformance kit of claims with unreadable rows, newer rows, and workers that lack something."""

from __future__ import annotations

import pytest

from tickler.errors import WorkerUnfit
from tickler.fires.contract import FireStore
from tickler.index.advance import ROW_FORMAT
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import FireFixtures, Worker
from tickler.testing.fire_queries import entries, keys, listed, nominals
from tickler.testing.hourly import HOURLY, MINUTE_MS, hour, minutely, schedule
from tickler.testing.store_contract import NOW_MS, stored


class BadRowContract(FireFixtures):
    """Requirements on claims with a faulty row or a faulty worker. Part of `FireStoreContract`."""

    async def test_a_row_that_does_not_read_is_set_aside_and_blocks_nothing(
        self, store: Store, schedules: Schedules, worker: Worker, caplog: pytest.LogCaptureFixture
    ) -> None:
        await schedules.put_many([schedule("bad", minutely(1)), schedule("good", minutely(2))])
        await self.corrupt(store, "u1", "bad", when_text="61 * * * *")
        assert keys(await worker.claim(hour(1))) == ["good"]
        assert [(aside.key, aside.managed) for aside in await store.index.set_aside()] == [("bad", True)]
        bad = await stored(schedules, "bad")
        assert bad.state == "unreadable"
        assert bad.reason is not None
        assert "minute" in bad.reason
        assert "u1/bad" in caplog.text

    async def test_more_bad_rows_than_the_limit_block_nothing(self, store: Store, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many([*(schedule(f"bad{n}", minutely(n)) for n in range(1, 8)), schedule("good", minutely(30))])
        for n in range(1, 8):
            await self.corrupt(store, "u1", f"bad{n}", when_text="never")
        assert keys(await worker.claim(hour(1), 2)) == ["good"]
        assert await store.index.count_set_aside() == 7

    async def test_a_row_that_was_set_aside_is_claimed_when_it_reads_again(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put(schedule("bad"))
        await self.corrupt(store, "u1", "bad", when_text="never")
        assert await worker.claim(hour(1)) == []
        await self.corrupt(store, "u1", "bad", when_text=str(HOURLY))
        assert await store.index.restore() == 1
        assert nominals(await worker.claim(hour(1))) == [hour(1)]

    async def test_rows_of_a_newer_format_are_left_alone_and_the_worker_reports_itself(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put_many([*(schedule(f"new{n}", minutely(n)) for n in range(1, 4)), schedule("old", minutely(30))])
        for n in range(1, 4):
            await self.corrupt(store, "u1", f"new{n}", when_text="phase(moon)", format=ROW_FORMAT + 1)
        assert keys(await worker.claim(hour(0.75), 2)) == ["old"]
        assert await store.index.set_aside() == []
        assert await store.index.count() == 4
        assert len(await store.records.list("outdated", now_ms=hour(0.75))) == 1

    async def test_a_worker_that_lacks_a_zone_which_others_have_claims_nothing_and_says_so(
        self, store: Store, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put_many([schedule("good", minutely(1)), schedule("zoned", minutely(2))])
        await self.corrupt(store, "u1", "zoned", tz="Mars/Olympus_Mons")
        await store.records.put("zone", "Mars/Olympus_Mons", b"{}", now_ms=NOW_MS)
        with pytest.raises(WorkerUnfit, match="Mars/Olympus_Mons"):
            await worker.claim(hour(2.5))
        assert await store.index.set_aside() == []
        assert await listed(fires, "open") == []
        assert await entries(fires, "good") == []
        assert await store.index.next_due() == NOW_MS + MINUTE_MS, "the good row is still there for a worker that is fit"

    async def test_a_row_with_a_zone_that_nobody_knows_is_a_bad_row(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put_many([schedule("bad", minutely(1)), schedule("good", minutely(2))])
        await self.corrupt(store, "u1", "bad", tz="Mars/Olympus_Mons")
        assert keys(await worker.claim(hour(0.5))) == ["good"]
        assert [aside.tz for aside in await store.index.set_aside()] == ["Mars/Olympus_Mons"]

    @pytest.mark.parametrize("body", ['{"target":', "[]", '{"policy": {"delivery": "when-it-suits"}}'])
    async def test_a_schedule_that_does_not_read_is_set_aside_and_blocks_nothing(
        self, store: Store, schedules: Schedules, worker: Worker, body: str
    ) -> None:
        await schedules.put_many([schedule("bad", minutely(1)), schedule("good", minutely(2))])
        await self.corrupt(store, "u1", "bad", body=body)
        assert keys(await worker.claim(hour(0.5))) == ["good"]
        assert [(aside.key, aside.managed) for aside in await store.index.set_aside()] == [("bad", True)]
        assert (await stored(schedules, "bad")).state == "unreadable"
        assert await worker.claim(hour(0.5)) == []
        await store.index.restore()  # as every worker does at its start
        assert keys(await worker.claim(hour(1.5))) == ["good"]
        assert await store.index.count_set_aside() == 1

    async def test_a_schedule_that_did_not_read_fires_again_when_it_is_put_again(
        self, store: Store, schedules: Schedules, worker: Worker
    ) -> None:
        await schedules.put(schedule())
        await self.corrupt(store, "u1", "digest", body="{")
        assert await worker.claim(hour(1)) == []
        await schedules.put(schedule())
        assert nominals(await worker.claim(hour(1))) == [hour(1)]
        assert await store.index.count_set_aside() == 0

    async def test_what_is_known_of_a_newer_policy_is_kept_to(
        self, store: Store, schedules: Schedules, fires: FireStore, worker: Worker
    ) -> None:
        await schedules.put(schedule())
        body = (
            '{"target": {"type": "http", "url": "https://example.org/hook"}, "policy": {"delivery": "at-most-once", "mood": 3}}'
        )
        await self.corrupt(store, "u1", "digest", body=body)
        (claim,) = await worker.claim(hour(1))
        assert claim.fire is None
        assert claim.schedule.newer
        assert await listed(fires, "open") == []
