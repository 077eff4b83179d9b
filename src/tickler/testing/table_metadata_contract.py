"""Conformance kit of the metadata of a table: small named values with versions."""

from __future__ import annotations

import asyncio
import os

from tickler.table.engines.engine import Engine
from tickler.table.engines.metadata import Entry, EntryWrite
from tickler.table.open_table import OpenTable
from tickler.testing.table_fixtures import TableFixtures


class TableMetadataContract(TableFixtures):
    """Requirements on `Engine.metadata`. Part of `TableContract`."""

    async def test_an_entry_is_written_only_over_the_version_that_was_seen(self, engine: Engine) -> None:
        metadata = engine.metadata
        assert await metadata.write([EntryWrite("a/1", b"one", expected=0)]) == [True]
        assert await metadata.write([EntryWrite("a/1", b"two", expected=0)]) == [False]
        assert await metadata.write([EntryWrite("a/1", b"two", expected=2)]) == [False]
        assert await metadata.read("a/") == [Entry("a/1", 1, b"one")]
        assert await metadata.write([EntryWrite("a/1", b"two", expected=1)]) == [True]
        assert await metadata.write([EntryWrite("a/1", b"three")]) == [True]
        assert await metadata.read("a/") == [Entry("a/1", 3, b"three")]
        assert await metadata.write([EntryWrite("a/1", None, expected=2)]) == [False]
        assert await metadata.write([EntryWrite("a/1", None, expected=3)]) == [True]
        assert await metadata.write([EntryWrite("a/1", b"four", expected=3)]) == [False]
        assert await metadata.read("a/") == []

    async def test_each_write_of_several_happens_by_itself(self, engine: Engine) -> None:
        metadata = engine.metadata
        await metadata.write([EntryWrite(f"b/{n}", b"old") for n in range(3)])
        writes = [
            EntryWrite("b/0", b"new", expected=1),
            EntryWrite("b/1", b"new", expected=7),
            EntryWrite("b/2", None, expected=1),
            EntryWrite("b/3", b"new", expected=0),
            EntryWrite("b/4", None),
            EntryWrite("b/5", b"new"),
        ]
        assert await metadata.write(writes) == [True, False, True, True, True, True]
        assert [(each.key, each.version, each.value) for each in await metadata.read("b/")] == [
            ("b/0", 2, b"new"),
            ("b/1", 1, b"old"),
            ("b/3", 1, b"new"),
            ("b/5", 1, b"new"),
        ]
        assert await metadata.write([]) == []

    async def test_of_two_writers_who_saw_the_same_version_one_succeeds(self, engine: Engine) -> None:
        await engine.metadata.write([EntryWrite("race", b"0")])
        writers = [engine.metadata.write([EntryWrite("race", f"{n}".encode(), expected=1)]) for n in range(5)]
        assert sorted(await asyncio.gather(*writers)) == [[False]] * 4 + [[True]]

    async def test_of_two_writers_of_the_same_value_one_succeeds(self, engine: Engine) -> None:
        await engine.metadata.write([EntryWrite("same", b"0")])
        writers = [engine.metadata.write([EntryWrite("same", b"1", expected=1)]) for _ in range(5)]
        assert sorted(await asyncio.gather(*writers)) == [[False]] * 4 + [[True]]
        assert await engine.metadata.read("same") == [Entry("same", 2, b"1")]
        removers = [engine.metadata.write([EntryWrite("same", None, expected=2)]) for _ in range(5)]
        assert sorted(await asyncio.gather(*removers)) == [[False]] * 4 + [[True]]

    async def test_entries_are_read_by_prefix_in_the_order_of_keys(self, engine: Engine) -> None:
        metadata = engine.metadata
        keys = ["c/10", "c/2", "c/Z", "c/a", "c/a/b", "c/a-b", "cc/1", "d"]
        await metadata.write([EntryWrite(key, key.encode()) for key in reversed(keys)])
        wanted = sorted(key for key in keys if key.startswith("c/"))
        assert [each.key for each in await metadata.read("c/")] == wanted
        assert [each.key for each in await metadata.read("c/", after=wanted[1])] == wanted[2:]
        assert [each.key for each in await metadata.read("c/", after=wanted[1], limit=2)] == wanted[2:4]
        assert [each.key for each in await metadata.read("c/a")] == ["c/a", "c/a-b", "c/a/b"]
        assert await metadata.read("c/", after="c/a/b") == await metadata.read("c/", after="d") == []
        assert [each.key for each in await metadata.read("c/", after="a", limit=1)] == wanted[:1]
        assert await metadata.read("c/1", keys_only=True) == [Entry("c/10", 1, b"")]
        assert {"c/10", "d"} <= {each.key for each in await metadata.read("")}

    async def test_a_large_value_is_one_entry(self, engine: Engine) -> None:
        metadata = engine.metadata
        large, larger, small = os.urandom(600_000), os.urandom(1_000_000), b"small"
        await metadata.write([EntryWrite("e/1", larger), EntryWrite("e/1/after", small)])
        assert await metadata.read("e/") == [Entry("e/1", 1, larger), Entry("e/1/after", 1, small)]
        assert await metadata.read("e/", after="e/1") == [Entry("e/1/after", 1, small)]
        assert await metadata.read("e/", limit=1) == [Entry("e/1", 1, larger)]
        assert await metadata.read("e/", keys_only=True) == [Entry("e/1", 1, b""), Entry("e/1/after", 1, b"")]
        assert await metadata.write([EntryWrite("e/1", large, expected=1)]) == [True]
        assert await metadata.write([EntryWrite("e/1", larger, expected=1)]) == [False]
        assert (await metadata.read("e/1"))[0] == Entry("e/1", 2, large)
        await metadata.write([EntryWrite("e/1", small, expected=2)])
        assert (await metadata.read("e/1"))[0] == Entry("e/1", 3, small)
        await metadata.write([EntryWrite("e/1", large)])
        await metadata.write([EntryWrite("e/1", None)])
        assert await metadata.read("e/") == [Entry("e/1/after", 1, small)]

    async def test_a_value_may_be_empty(self, engine: Engine) -> None:
        assert await engine.metadata.write([EntryWrite("empty", b"", expected=0)]) == [True]
        assert await engine.metadata.read("empty") == [Entry("empty", 1, b"")]

    async def test_a_value_is_never_a_mixture_of_several_writes(self, engine: Engine) -> None:
        metadata = engine.metadata

        async def write(number: int) -> None:
            for size in (700_000, 10, 300_000):
                assert await metadata.write([EntryWrite("mixed", bytes([number]) * size)]) == [True]
            await metadata.write([EntryWrite("mixed", None)])

        async def read() -> None:
            for _ in range(10):
                for entry in await metadata.read("mixed"):
                    assert len(set(entry.value)) == 1
                    assert len(entry.value) in (700_000, 10, 300_000)

        await asyncio.gather(*(write(number) for number in range(3)), read(), read())
        await metadata.write([EntryWrite("mixed", b"last")])
        assert [entry.value for entry in await metadata.read("mixed")] == [b"last"]

    async def test_metadata_is_no_item(self, engine: Engine, db: OpenTable) -> None:
        await engine.metadata.write([EntryWrite(f"f/{n}", b"x") for n in range(30)])
        assert not await engine.has_more_than(0)
        assert await db.reindex() == 0
        assert len(await engine.metadata.read("f/")) == 30
