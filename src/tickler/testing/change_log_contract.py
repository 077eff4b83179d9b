"""Conformance kit of change logs: what is a change, in which order changes come, and what is kept of them."""

from __future__ import annotations

import pytest

from tickler.clock import ManualClock
from tickler.errors import ConditionFailed, InvalidInput
from tickler.table.engines.engine import Engine
from tickler.table.open_table import OpenTable
from tickler.testing.stream_fixtures import Follower, Remark, StreamFixtures, Task, later, task


class ChangeLogContract(StreamFixtures):
    """Requirements on `Engine.changes`. Part of `StreamContract`."""

    async def test_a_change_has_the_item_before_and_after(self, engine: Engine, db: OpenTable) -> None:
        log = Follower(engine.changes)
        await db.put(task(1))
        await db.update(task(1).key, Task.status.set("done"), Task.size.add(3))
        await db.delete(task(1).key)
        done = task(1, status="done", size=3)
        records = await log.follow(3)
        assert log.images(records) == [(None, task(1)), (task(1), done), (done, None)]
        assert {(each.entity, each.pk, each.sk) for each in records} == {("Task", "TASK#t001", "TASK")}
        assert len({each.shard for each in records}) == 1
        assert len({each.position for each in records}) == 3
        assert sorted(each.at_ms for each in records) == [each.at_ms for each in records]

    async def test_empty_maps_and_lists_come_as_they_are(self, engine: Engine, db: OpenTable) -> None:
        log = Follower(engine.changes)
        all_labels: list[dict[str, list[dict[str, str]]]] = [{}, {"a": []}, {"a": [{}]}, {"M": [{"M": ""}]}, {}]
        remarks = [Remark(task="t001", n=1, labels=labels) for labels in all_labels]
        for remark in remarks:
            await db.put(remark)
        await db.put(remarks[-1])
        assert log.images(await log.follow(5)) == list(zip([None, *remarks], remarks, strict=False))
        assert await log.follow() == []

    async def test_a_write_that_leaves_an_item_as_it_is_is_no_change(self, engine: Engine, db: OpenTable) -> None:
        log = Follower(engine.changes)
        await db.put(task(1, size=1))
        await db.put(task(1, size=1))
        await db.replace(task(1, size=1), when=Task.size == 1)
        await db.update(task(1).key, Task.size.set(1))
        await db.put_many([task(1, size=1)])
        await db.delete(task(2).key)
        async with db.transaction() as tx:
            await tx.get(task(3).key)
            tx.check(task(1).key, Task.size == 1)
            tx.put(task(4))
        records = await log.follow(2)
        assert log.images(records) == [(None, task(1, size=1)), (None, task(4))]
        assert await log.follow() == []

    async def test_a_read_of_large_changes_ends_early_and_the_next_goes_on(self, engine: Engine, db: OpenTable) -> None:
        """A read of a hundred items of 400 KB would otherwise take 40 MB of memory."""
        if not self.bounds_reads:
            pytest.skip("this engine need not bound the bytes of a read")
        large = [Remark(task="t001", n=n, text="x" * 390_000) for n in range(24)]
        await db.put_many(large)
        positions: dict[str, str | None] = {shard.id: None for shard in await engine.changes.shards()}
        first = [record for read in await engine.changes.read(positions, limit=100) for record in read.records]
        assert len(first) < len(large)
        log = Follower(engine.changes)
        assert [new for _, new in log.images(await log.follow(len(large)))] == large

    async def test_every_way_to_write_is_logged(self, engine: Engine, db: OpenTable, clock: ManualClock) -> None:
        log = Follower(engine.changes)
        await db.create(task(1))
        await db.upsert(task(2).key, Task.size.add(2))
        await db.put_many([task(3), task(4)])
        await db.load([task(5, expires_at=later(seconds=5)), task(6)])
        await db.delete_many([task(3).key])
        async with db.transaction() as tx:
            tx.put(task(7))
            tx.update(task(4).key, Task.size.set(4))
        records = await log.follow(9)
        images = log.images(records)
        expiring = task(5, expires_at=later(seconds=5))
        wanted = [
            (None, task(1)), (None, task(2, size=2)), (None, task(3)), (None, task(4)), (None, expiring), (None, task(6)),
            (task(3), None), (None, task(7)), (task(4), task(4, size=4)),
        ]  # fmt: skip
        assert sorted(images, key=repr) == sorted(wanted, key=repr)
        clock.advance(6)
        if self.sweeps:
            assert await db.sweep() == 1
            assert log.images(await log.follow(1)) == [(expiring, None)]

    async def test_a_load_that_is_not_streamed_is_not_logged(self, engine: Engine, db: OpenTable) -> None:
        if not self.prunes:
            pytest.skip("this engine logs every write")
        log = Follower(engine.changes)
        assert await db.load([task(1), task(2)], streamed=False) == 2
        with pytest.raises(InvalidInput):
            await db.load([task(3), task(3)], streamed=False)
        await db.put(task(4))
        await db.load([task(5)])
        await db.update(task(1).key, Task.size.set(1))
        wanted = [(None, task(4)), (None, task(5)), (task(1), task(1, size=1))]
        assert sorted(log.images(await log.follow(3)), key=repr) == sorted(wanted, key=repr)
        assert await log.follow() == []

    async def test_what_fails_is_not_logged(self, engine: Engine, db: OpenTable) -> None:
        log = Follower(engine.changes)
        with pytest.raises(ConditionFailed):
            await db.replace(task(1))

        async def failing() -> None:
            async with db.transaction() as tx:
                tx.put(task(2))
                tx.replace(task(3))

        with pytest.raises(ConditionFailed):
            await failing()
        await db.put(task(4))
        assert log.images(await log.follow(1)) == [(None, task(4))]
        assert await log.follow() == []

    async def test_changes_of_an_item_are_in_order(self, engine: Engine, db: OpenTable) -> None:
        log = Follower(engine.changes)
        for size in range(12):
            for n in range(4):
                await db.put(task(n, size=size))
        records = await log.follow(48, limit=10)
        for n in range(4):
            own = log.images([each for each in records if each.pk == f"TASK#t{n:03}"])
            assert [new.size for _, new in own] == list(range(12))
            assert [old for old, _ in own] == [None, *(new for _, new in own[:-1])]

    async def test_a_reader_goes_on_where_it_was(self, engine: Engine, db: OpenTable) -> None:
        first = Follower(engine.changes)
        await db.put_many([task(n) for n in range(10)])
        assert len(await first.follow(10)) == 10
        await db.put_many([task(n) for n in range(10, 15)])
        second = Follower(engine.changes, dict(first.positions))
        assert {new.id for _, new in second.images(await second.follow(5))} == {f"t{n:03}" for n in range(10, 15)}
        assert len(await Follower(engine.changes).follow(15)) == 15

    async def test_a_reader_can_begin_at_the_end(self, engine: Engine, db: OpenTable) -> None:
        await db.put_many([task(n) for n in range(5)])
        await Follower(engine.changes).follow(5)
        end = await engine.changes.end()
        assert {shard.id for shard in await engine.changes.shards()} <= end.keys()
        log = Follower(engine.changes, dict(end))
        await db.put(task(9))
        assert log.images(await log.follow(1)) == [(None, task(9))]

    async def test_some_shards_can_be_read_alone(self, engine: Engine, db: OpenTable) -> None:
        await db.put_many([task(n) for n in range(40)])
        everything = await Follower(engine.changes).follow(40)
        for shard in {each.shard for each in everything}:
            (read,) = await engine.changes.read({shard: None}, limit=100)
            assert [each.position for each in read.records] == [each.position for each in everything if each.shard == shard]
            assert not read.lost

    async def test_items_of_a_partition_share_a_shard(self, engine: Engine, db: OpenTable) -> None:
        await db.put(task(1))
        await db.put_many([Remark(task="t001", n=n) for n in range(5)])
        records = await Follower(engine.changes).follow(6)
        assert len({each.shard for each in records}) == 1
        assert {each.entity for each in records} == {"Task", "Remark"}

    async def test_new_keys_of_indexes_and_metadata_are_no_changes(self, engine: Engine, db: OpenTable) -> None:
        await db.put(task(1))
        log = Follower(engine.changes)
        await log.follow(1)
        await db.reindex()
        assert await log.follow() == []

    async def test_waiting_changes_are_counted(self, engine: Engine, db: OpenTable) -> None:
        log = Follower(engine.changes)
        await db.put_many([task(n) for n in range(20)])
        everywhere = {shard.id: None for shard in await engine.changes.shards()}
        if await engine.changes.waiting(everywhere, limit=100) is None:
            assert not self.prunes
            return
        assert await engine.changes.waiting(everywhere, limit=100) == 20
        await log.follow(20)
        await db.put(task(99))
        assert await engine.changes.waiting(log.positions, limit=100) == 1

    async def test_changes_that_all_have_read_are_deleted(self, engine: Engine, db: OpenTable) -> None:
        if not self.prunes:
            assert await engine.changes.prune([], keep_ms=0, limit=10) == 0
            return
        quick, slow = Follower(engine.changes), Follower(engine.changes)
        await db.put_many([task(n) for n in range(10)])
        await quick.follow(10)
        await slow.follow(10)
        await db.put_many([task(n) for n in range(10, 16)])
        await quick.follow(6)
        both = [quick.positions, slow.positions]
        assert await engine.changes.prune(both, keep_ms=1_000_000, limit=4) == 4
        assert await engine.changes.prune(both, keep_ms=1_000_000, limit=100) == 6
        assert await engine.changes.prune(both, keep_ms=1_000_000, limit=100) == 0
        assert len(await slow.follow(6)) == 6
        assert not slow.lost
        await db.put(task(20))
        assert len(await quick.follow(1)) == len(await slow.follow(1)) == 1

    async def test_a_reader_is_told_that_changes_were_deleted_unread(self, engine: Engine, db: OpenTable) -> None:
        if not self.prunes:
            pytest.skip("the changes of this engine expire by themselves")
        slow = Follower(engine.changes)
        await db.put_many([task(n) for n in range(10)])
        await slow.follow(10)
        await db.put_many([task(n) for n in range(10, 16)])
        await db.put(task(30))
        assert await engine.changes.prune([slow.positions], keep_ms=-1_000, limit=100) == 17
        assert await engine.changes.prune([slow.positions], keep_ms=-1_000, limit=100) == 0
        await db.put(task(31))
        assert slow.images(await slow.follow(1)) == [(None, task(31))]
        assert slow.lost
        again = Follower(engine.changes, dict(slow.positions))
        await db.put(task(32))
        await again.follow(1)
        assert not again.lost
        new = Follower(engine.changes)
        assert len(await new.follow(2)) == 2
        assert not new.lost

    async def test_large_changes_are_read_in_pieces(self, engine: Engine, db: OpenTable) -> None:
        await db.put_many([task(n, status="x" * 390_000) for n in range(30)])
        records = await Follower(engine.changes).follow(30)
        assert sorted(each.pk for each in records) == sorted({f"TASK#t{n:03}" for n in range(30)})

    async def test_a_sweep_deletes_changes_that_nobody_needs(self, engine: Engine, db: OpenTable) -> None:
        if not self.prunes:
            pytest.skip("the changes of this engine expire by themselves")
        consumer = db.consumer("it")
        await db.put_many([task(n) for n in range(10)])
        await db.sweep()
        assert len(await Follower(engine.changes).follow(10)) == 10
        await consumer.consume()
        await db.sweep()
        assert await Follower(engine.changes).follow() == []
