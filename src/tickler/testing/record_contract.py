"""Conformance kit of a record store."""

from __future__ import annotations

import asyncio

import pytest

from tickler.errors import InvalidInput, TransactionConflict, VersionConflict
from tickler.model.record import Record
from tickler.records.contract import RecordStore
from tickler.stores.store import Store
from tickler.testing.store_contract import NOW_MS, Begin, StoreContract


class RecordStoreContract(StoreContract):
    """Requirements on a record store. `StoreContract` documents the fixtures."""

    @pytest.fixture
    def records(self, store: Store) -> RecordStore:
        return store.records

    async def test_a_record_comes_back_as_it_was_put(self, records: RecordStore) -> None:
        assert await records.get("k", "a", now_ms=NOW_MS) is None
        assert await records.put("k", "a", b'{"n": [1, null, "\xc3\xa4"]}', now_ms=NOW_MS) == 1
        assert await records.get("k", "a", now_ms=NOW_MS) == Record("k", "a", {"n": [1, None, "ä"]}, 1)

    async def test_every_put_counts_the_version_up(self, records: RecordStore) -> None:
        assert [await records.put("k", "a", b"1", now_ms=NOW_MS) for _ in range(3)] == [1, 2, 3]

    async def test_a_put_with_the_expected_version_succeeds_and_with_another_fails(self, records: RecordStore) -> None:
        assert await records.put("k", "a", b"1", now_ms=NOW_MS, expected=0) == 1
        assert await records.put("k", "a", b"2", now_ms=NOW_MS, expected=1) == 2
        with pytest.raises(VersionConflict) as conflict:
            await records.put("k", "a", b"3", now_ms=NOW_MS, expected=1)
        assert (conflict.value.expected, conflict.value.found) == (1, 2)
        with pytest.raises(VersionConflict):
            await records.put("k", "a", b"3", now_ms=NOW_MS, expected=0)
        with pytest.raises(VersionConflict):
            await records.put("k", "absent", b"3", now_ms=NOW_MS, expected=1)
        found = await records.get("k", "a", now_ms=NOW_MS)
        assert found is not None
        assert found.value == 2

    async def test_of_concurrent_puts_with_one_expectation_exactly_one_wins(self, records: RecordStore) -> None:
        async def attempt(n: int) -> bool:
            try:
                await records.put("k", "a", str(n).encode(), now_ms=NOW_MS, expected=0)
            except VersionConflict:
                return False
            return True

        assert sum(await asyncio.gather(*(attempt(n) for n in range(8)))) == 1

    async def test_puts_that_come_together_each_get_a_version_of_their_own(self, records: RecordStore) -> None:
        names = ["b", "a", "b", "c", "a", "b"]
        versions = await asyncio.gather(*(records.put("k", name, b"1", now_ms=NOW_MS) for name in names))
        got = sorted(zip(names, versions, strict=True))
        assert got == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3), ("c", 1)]

    async def test_an_expired_record_is_absent_and_its_name_free(self, records: RecordStore) -> None:
        await records.put("k", "a", b"1", now_ms=NOW_MS, expires_at=NOW_MS + 10)
        assert await records.get("k", "a", now_ms=NOW_MS + 9) is not None
        assert await records.get("k", "a", now_ms=NOW_MS + 10) is None
        assert await records.list("k", now_ms=NOW_MS + 10) == []
        with pytest.raises(VersionConflict):
            await records.put("k", "a", b"2", now_ms=NOW_MS + 10, expected=1)
        assert await records.put("k", "a", b"2", now_ms=NOW_MS + 10, expected=0) == 1

    async def test_prune_removes_what_has_expired_in_small_steps(self, records: RecordStore) -> None:
        for n in range(5):
            await records.put("k", f"e{n}", b"1", now_ms=NOW_MS, expires_at=NOW_MS + n)
        await records.put("k", "kept", b"1", now_ms=NOW_MS)
        assert await records.prune(NOW_MS + 3, limit=3) == 3
        assert await records.prune(NOW_MS + 3, limit=3) == 1
        assert await records.prune(NOW_MS + 3, limit=3) == 0
        assert [record.name for record in await records.list("k", now_ms=NOW_MS)] == ["e4", "kept"]

    async def test_delete_says_whether_there_was_one(self, records: RecordStore) -> None:
        await records.put("k", "a", b"1", now_ms=NOW_MS)
        assert await records.delete("k", "a") is True
        assert await records.delete("k", "a") is False

    async def test_of_concurrent_deletes_exactly_one_says_that_there_was_one(self, records: RecordStore) -> None:
        await records.put("k", "a", b"1", now_ms=NOW_MS)
        assert sum(await asyncio.gather(*(records.delete("k", "a") for _ in range(8)))) == 1

    async def test_a_list_is_of_one_kind_by_name_in_pages(self, records: RecordStore) -> None:
        for name in ("b", "a", "B", "ä", "c"):
            await records.put("k", name, b"1", now_ms=NOW_MS)
        await records.put("other", "z", b"1", now_ms=NOW_MS)
        first = await records.list("k", now_ms=NOW_MS, limit=3)
        assert [record.name for record in first] == ["B", "a", "b"]
        rest = await records.list("k", now_ms=NOW_MS, after="b", limit=3)
        assert [record.name for record in rest] == ["c", "ä"]

    async def test_writes_that_join_a_transaction_happen_when_it_commits(self, records: RecordStore, begin: Begin) -> None:
        await records.put("k", "old", b"1", now_ms=NOW_MS)
        await records.put("k", "gone", b"1", now_ms=NOW_MS)
        async with begin() as transaction:
            assert await records.put("k", "new", b"1", now_ms=NOW_MS, expires_at=NOW_MS + 9, using=transaction) == 1
            assert await records.put("k", "old", b"2", now_ms=NOW_MS, expected=1, using=transaction) == 2
            assert await records.delete("k", "gone", using=transaction) is True
            assert await records.delete("k", "absent", using=transaction) is False
            seen = {record.name: record.value for record in await records.list("k", now_ms=NOW_MS)}
            assert seen == {"old": 1, "gone": 1}, "others see nothing of it before the commit"
        found = await records.list("k", now_ms=NOW_MS)
        assert found == [Record("k", "new", 1, 1, NOW_MS + 9), Record("k", "old", 2, 2)]

    async def test_writes_that_join_a_transaction_are_undone_with_it(self, records: RecordStore, begin: Begin) -> None:
        await records.put("k", "old", b"1", now_ms=NOW_MS)

        async def attempt() -> None:
            async with begin() as transaction:
                await records.put("k", "new", b"1", now_ms=NOW_MS, using=transaction)
                await records.delete("k", "old", using=transaction)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await attempt()
        assert [record.name for record in await records.list("k", now_ms=NOW_MS)] == ["old"]

    async def test_a_put_that_joins_a_transaction_is_refused_at_once_if_another_version_is_stored(
        self, records: RecordStore, begin: Begin
    ) -> None:
        await records.put("k", "a", b"1", now_ms=NOW_MS)
        async with begin() as transaction:
            with pytest.raises(VersionConflict):
                await records.put("k", "a", b"2", now_ms=NOW_MS, expected=0, using=transaction)
            await records.put("k", "b", b"2", now_ms=NOW_MS, expected=0, using=transaction)
        assert [record.value for record in await records.list("k", now_ms=NOW_MS)] == [1, 2]

    @pytest.mark.parametrize("change", ["put over it", "put anew", "delete", "delete what was put"])
    async def test_a_unit_of_work_conflicts_with_a_record_that_others_changed_meanwhile(
        self, records: RecordStore, unit: Begin, change: str
    ) -> None:
        await records.put("k", "a", b"1", now_ms=NOW_MS)

        async def attempt() -> None:
            async with unit() as transaction:
                await records.put("k", "other", b"1", now_ms=NOW_MS, using=transaction)
                if change == "delete":
                    await records.delete("k", "a", using=transaction)
                    await records.delete("k", "a")
                elif change == "delete what was put":
                    await records.delete("k", "a", using=transaction)
                    await records.put("k", "a", b"3", now_ms=NOW_MS)
                elif change == "put over it":
                    await records.put("k", "a", b"2", now_ms=NOW_MS, using=transaction)
                    await records.put("k", "a", b"3", now_ms=NOW_MS)
                else:
                    await records.put("k", "new", b"2", now_ms=NOW_MS, using=transaction)
                    await records.put("k", "new", b"3", now_ms=NOW_MS)

        with pytest.raises(TransactionConflict, match="the record k/"):
            await attempt()
        assert await records.get("k", "other", now_ms=NOW_MS) is None

    async def test_an_expired_record_can_be_put_in_a_transaction(self, records: RecordStore, begin: Begin) -> None:
        await records.put("k", "a", b"1", now_ms=NOW_MS, expires_at=NOW_MS + 1)
        async with begin() as transaction:
            assert await records.put("k", "a", b"2", now_ms=NOW_MS + 1, expected=0, using=transaction) == 1
        assert await records.get("k", "a", now_ms=NOW_MS + 1) == Record("k", "a", 2, 1)

    async def test_a_record_is_in_a_unit_of_work_once(self, records: RecordStore, unit: Begin) -> None:
        async with unit() as transaction:
            await records.put("k", "a", b"1", now_ms=NOW_MS, using=transaction)
            with pytest.raises(InvalidInput, match="the record k/a is in this transaction already"):
                await records.delete("k", "a", using=transaction)
