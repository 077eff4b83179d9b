"""Conformance kit of an engine's writes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tickler.errors import ConditionFailed, InvalidInput, InvalidItem, ItemNotFound, VersionConflict
from tickler.table import MISSING, Attr, Entity, Key, Table, attr
from tickler.table.open_table import OpenTable
from tickler.testing.table_fixtures import Account, Address, Customer, Order, TableFixtures, numbers, order, refund


class TableWriteContract(TableFixtures):
    """Requirements on puts, updates, deletes and transactions. Part of `TableContract`."""

    async def test_an_item_is_read_as_it_was_put(self, db: OpenTable) -> None:
        put = order(1, address=Address(city="Köln", zip="50667"), items=3, tags=frozenset({"a", "b"}), note=None)
        assert await db.put(put) == put
        assert await db.get(put.key) == put
        assert await db.get(order(2).key) is None

    async def test_many_items_are_read_in_the_order_asked_for_and_absent_ones_are_none(self, db: OpenTable) -> None:
        await db.put(order(1))
        await db.put(order(2))
        found = await db.get_many([order(2).key, order(3).key, order(1).key, order(2).key])
        assert found == [order(2), None, order(1), order(2)]
        assert await db.get_many([]) == []

    async def test_a_put_takes_the_place_of_the_item_with_its_key(self, db: OpenTable) -> None:
        await db.put(order(1))
        await db.put(order(1, items=5))
        await db.put(order(1, items=5))
        assert (await db.query(Order.key("c1"), first=10)).items == [order(1, items=5)]

    async def test_missing_none_and_falsy_are_three_things(self, db: OpenTable) -> None:
        notes: list[Any] = [MISSING, None, ""]
        for n, note in enumerate(notes):
            await db.put(order(n, note=note))
        assert [(await db.get(order(n).key)).note for n in range(3)] == notes  # type: ignore[union-attr]  # they are there
        found = await db.query(Order.key("c1"), first=10, where=Order.note.exists())
        assert numbers(found.items) == [1, 2]
        found = await db.query(Order.key("c1"), first=10, where=Order.note.missing())
        assert numbers(found.items) == [0]
        found = await db.query(Order.key("c1"), first=10, where=Order.note == None)  # noqa: E711  # a condition
        assert numbers(found.items) == [1]
        changed = await db.update(order(1).key, Order.note.remove(), when=Order.note.exists())
        assert changed.note is MISSING
        with pytest.raises(ConditionFailed):
            await db.update(order(1).key, Order.note.set("x"), when=Order.note.exists())

    async def test_zero_is_a_fine_key_part(self, db: OpenTable) -> None:
        await db.put(Account(id=0))
        await db.put(order(0, rating=0))
        assert await db.get(Account.key.id(0)) == Account(id=0, version=1)
        assert numbers((await db.query(Order.rated(), first=10)).items) == [0]

    async def test_create_refuses_a_key_that_is_taken(self, db: OpenTable) -> None:
        await db.create(order(1))
        with pytest.raises(ConditionFailed) as refused:
            await db.create(order(1, items=9))
        assert refused.value.found == order(1)
        assert await db.get(order(1).key) == order(1)

    async def test_replace_refuses_a_key_that_is_free(self, db: OpenTable) -> None:
        with pytest.raises(ConditionFailed):
            await db.replace(order(1))
        assert await db.get(order(1).key) is None
        await db.put(order(1))
        assert await db.replace(order(1, items=2)) == order(1, items=2)

    async def test_a_put_with_a_condition_happens_only_if_it_holds(self, db: OpenTable) -> None:
        await db.put(order(1, items=1))
        with pytest.raises(ConditionFailed):
            await db.put(order(1, items=7), when=Order.items > 1)
        assert await db.put(order(1, items=7), when=Order.items == 1) == order(1, items=7)
        with pytest.raises(ConditionFailed):
            await db.put(order(2), when=Order.items >= 0)
        await db.put(order(2), when=Order.id.missing())

    async def test_an_update_changes_what_it_names_and_returns_the_item(self, db: OpenTable) -> None:
        await db.put(order(1, items=1))
        changed = await db.update(
            order(1).key,
            Order.items.add(2),
            Order.address[Address.city].set("Ulm"),
            Order.tags.add("x", "y"),
            Order.note.set(None),
        )
        assert changed == order(1, items=3, address=Address(city="Ulm"), tags=frozenset({"x", "y"}), note=None)
        assert await db.get(order(1).key) == changed
        assert (await db.update(order(1).key, Order.tags.remove("x"))).tags == {"y"}

    async def test_an_update_of_an_item_that_does_not_exist_is_refused(self, db: OpenTable) -> None:
        with pytest.raises(ItemNotFound):
            await db.update(order(1).key, Order.items.add(1))
        assert await db.get(order(1).key) is None

    async def test_an_upsert_creates_from_key_and_defaults_or_changes(self, db: OpenTable) -> None:
        assert await db.upsert(Account.key.id(7), Account.balance.add(5)) == Account(id=7, balance=5, version=1)
        assert await db.upsert(Account.key.id(7), Account.balance.add(5)) == Account(id=7, balance=10, version=2)

    async def test_a_delete_returns_the_item_and_needs_none(self, db: OpenTable) -> None:
        await db.put(order(1))
        assert await db.delete(order(1).key) == order(1)
        assert await db.delete(order(1).key) is None
        assert await db.get(order(1).key) is None
        assert await db.count(Order.pending()) == 0

    async def test_a_delete_with_a_condition_happens_only_if_it_holds(self, db: OpenTable) -> None:
        await db.put(order(1))
        with pytest.raises(ConditionFailed):
            await db.delete(order(1).key, when=Order.items > 0)
        assert await db.get(order(1).key) == order(1)
        assert await db.delete(order(1).key, when=Order.items == 0) == order(1)
        with pytest.raises(ConditionFailed):
            await db.delete(order(1).key, when=Order.items == 0)

    async def test_each_write_raises_the_version_and_a_put_of_another_one_is_refused(self, db: OpenTable) -> None:
        first = await db.put(Account(id=1))
        assert first.version == 1
        second = await db.put(Account(id=1, balance=3, version=1))
        assert second.version == 2
        assert (await db.update(second.key, Account.balance.add(1))).version == 3
        with pytest.raises(VersionConflict) as conflict:
            await db.put(second)
        assert (conflict.value.expected, conflict.value.found) == (2, 3)
        with pytest.raises(VersionConflict):
            await db.put(Account(id=1))
        assert await db.get(first.key) == Account(id=1, balance=4, version=3)
        with pytest.raises(VersionConflict) as conflict:
            await db.put(Account(id=2, version=3))
        assert (conflict.value.expected, conflict.value.found) == (3, 0)
        assert await db.get(Account.key.id(2)) is None

    async def test_an_item_is_in_a_sparse_index_only_while_its_condition_holds(self, db: OpenTable) -> None:
        for n in range(4):
            await db.put(order(n))
        await db.update(order(1).key, Order.status.set("shipped"))
        assert numbers((await db.query(Order.pending(), first=10)).items) == [0, 2, 3]
        await db.update(order(1).key, Order.status.set("pending"))
        await db.put(order(2, status="confirmed"))
        await db.delete(order(3).key)
        page = await db.query(Order.pending(), first=10)
        assert page.items == [order(0), order(1)]
        assert all(each.pending for each in page.items)

    async def test_an_item_enters_and_leaves_an_index_with_an_attribute_of_its_key(self, db: OpenTable) -> None:
        await db.put(order(1))
        assert await db.count(Order.rated()) == 0
        await db.update(order(1).key, Order.rating.add(3))
        assert (await db.query(Order.rated().since(3), first=10)).items == [order(1, rating=3)]
        await db.update(order(1).key, Order.rating.add(-3))
        assert (await db.query(Order.rated().under(0), first=10)).items == [order(1, rating=0)]
        await db.update(order(1).key, Order.rating.remove())
        assert await db.count(Order.rated()) == 0

    async def test_an_item_enters_and_leaves_an_index_with_a_member_of_a_set(self, db: OpenTable) -> None:
        await db.put(order(1, tags=frozenset({"gift"})))
        assert await db.count(Order.urgent()) == 0
        await db.update(order(1).key, Order.tags.add("urgent"))
        assert await db.count(Order.urgent()) == 1
        await db.update(order(1).key, Order.tags.remove("urgent"))
        assert await db.count(Order.urgent()) == 0

    async def test_a_transaction_writes_all_or_nothing(self, db: OpenTable) -> None:
        await db.put(order(1))
        await db.put(order(3))
        async with db.transaction() as tx:
            tx.put(Customer(id="c1", name="Ada"))
            tx.update(order(1).key, Order.items.add(1))
            tx.create(order(2))
            tx.delete(order(3).key)
            tx.upsert(Account.key.id(1), Account.balance.add(1))
        before = [order(1, items=1), order(2)]
        assert (await db.query(Order.key("c1"), first=10)).items == before
        with pytest.raises(ConditionFailed):  # noqa: PT012  # the end of the block writes
            async with db.transaction() as tx:
                tx.put(order(4))
                tx.update(order(1).key, Order.items.add(1))
                tx.delete(order(2).key)
                tx.create(Customer(id="c1", name="Eve"))
        assert (await db.query(Order.key("c1"), first=10)).items == before
        assert await db.get(Account.key.id(1)) == Account(id=1, balance=1, version=1)

    async def test_a_transaction_whose_block_raises_writes_nothing(self, db: OpenTable) -> None:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012  # the end of the block writes
            async with db.transaction() as tx:
                tx.put(order(1))
                raise ZeroDivisionError
        assert await db.get(order(1).key) is None

    async def test_a_check_lets_a_transaction_fail_and_writes_nothing(self, db: OpenTable) -> None:
        await db.put(order(1, items=1))
        async with db.transaction() as tx:
            tx.check(order(1).key, Order.items == 1)
            tx.check(order(9).key, Order.id.missing())
            tx.put(order(2))
        with pytest.raises(ConditionFailed):  # noqa: PT012  # the end of the block writes
            async with db.transaction() as tx:
                tx.check(order(1).key, Order.items == 2)
                tx.put(order(3))
        with pytest.raises(ConditionFailed):  # noqa: PT012  # the end of the block writes
            async with db.transaction() as tx:
                tx.check(order(9).key, Order.id.exists())
                tx.put(order(3))
        assert numbers((await db.query(Order.key("c1"), first=10)).items) == [1, 2]

    async def test_a_transaction_of_checks_alone_fails_too(self, db: OpenTable) -> None:
        await db.put(order(1, items=1))
        async with db.transaction() as tx:
            tx.check(order(1).key, Order.items == 1)
        with pytest.raises(ConditionFailed):  # the end of the block checks
            async with db.transaction() as tx:
                tx.check(order(1).key, Order.items == 2)
        with pytest.raises(ConditionFailed):  # noqa: PT012  # the end of the block checks
            async with db.transaction() as tx:
                tx.check(order(1).key, Order.items == 1)
                tx.check(order(2).key, Order.id.exists())

    async def test_of_several_operations_that_cannot_happen_the_first_is_named(self, db: OpenTable) -> None:
        with pytest.raises(ConditionFailed):  # noqa: PT012  # the end of the block writes
            async with db.transaction() as tx:
                tx.check(order(1).key, Order.id.exists())
                tx.update(order(2).key, Order.items.add(1))
        with pytest.raises(ItemNotFound):  # noqa: PT012  # the end of the block writes
            async with db.transaction() as tx:
                tx.update(order(2).key, Order.items.add(1))
                tx.check(order(1).key, Order.id.exists())

    async def test_a_transaction_has_one_operation_for_each_item(self, db: OpenTable) -> None:
        with pytest.raises(InvalidInput, match="already"):  # noqa: PT012  # the end of the block writes
            async with db.transaction() as tx:
                tx.put(order(1))
                tx.delete(order(1).key)

    async def test_concurrent_additions_add_up(self, db: OpenTable) -> None:
        await db.put(order(1))
        await asyncio.gather(*(db.update(order(1).key, Order.items.add(1)) for _ in range(20)))
        assert await db.get(order(1).key) == order(1, items=20)

    async def test_concurrent_upserts_of_a_new_item_add_up(self, db: OpenTable) -> None:
        await asyncio.gather(*(db.upsert(Account.key.id(1), Account.balance.add(1)) for _ in range(10)))
        assert await db.get(Account.key.id(1)) == Account(id=1, balance=10, version=10)

    async def test_one_of_many_concurrent_creators_succeeds(self, db: OpenTable) -> None:
        outcomes = await asyncio.gather(*(db.create(order(1, items=n)) for n in range(10)), return_exceptions=True)
        created = [each for each in outcomes if isinstance(each, Order)]
        assert len(created) == 1
        assert all(isinstance(each, Order | ConditionFailed) for each in outcomes)
        assert await db.get(order(1).key) == created[0]

    async def test_concurrent_transactions_over_the_same_items_in_any_order_all_happen(self, db: OpenTable) -> None:
        await db.put(order(1))
        await db.put(order(2))

        async def both(first: int, second: int) -> None:
            async with db.transaction() as tx:
                tx.update(order(first).key, Order.items.add(1))
                tx.update(order(second).key, Order.items.add(1))

        await asyncio.gather(*(both(1, 2) if n % 2 else both(2, 1) for n in range(10)))
        assert await db.get_many([order(1).key, order(2).key]) == [order(1, items=10), order(2, items=10)]

    async def test_many_items_are_put_and_deleted(self, db: OpenTable) -> None:
        await db.put_many([*(order(n) for n in range(300)), refund(1, 0), order(0, items=4)])
        assert await db.count(Order.key("c1")) == 300
        assert await db.count(Order.pending()) == 300
        assert await db.get(order(0).key) == order(0, items=4)
        await db.delete_many([order(n).key for n in range(1, 400)])
        assert (await db.query(Order.key("c1"), first=10)).items == [order(0, items=4)]
        await db.put_many([])
        await db.delete_many([])
        with pytest.raises(InvalidInput, match="use put"):
            await db.put_many([Account(id=1)])

    async def test_a_soft_deleted_item_can_be_restored(self, db: OpenTable) -> None:
        await db.put(order(1))
        deleted = await db.soft_delete(order(1).key)
        assert deleted.trash
        assert (await db.query(Order.trash("c1"), first=10)).items == [deleted]
        assert await db.restore(order(1).key) == order(1)
        assert await db.count(Order.trash("c1")) == 0

    async def test_an_item_that_is_too_large_is_refused_and_nothing_changes(self, db: OpenTable) -> None:
        await db.put(order(1))
        with pytest.raises(InvalidItem, match="keep large values elsewhere"):
            await db.put(order(1, note="x" * 410_000))
        with pytest.raises(InvalidItem, match="keep large values elsewhere"):
            await db.update(order(1).key, Order.note.set("x" * 410_000))
        await db.put(order(2, note="x" * 390_000))
        assert await db.get(order(1).key) == order(1)

    async def test_a_key_that_is_too_long_is_refused(self, db: OpenTable) -> None:
        with pytest.raises(InvalidItem, match="shorten"):
            await db.put(order(1, id="x" * 1_100))
        longest = order(1, id="ü" * 490)
        await db.put(longest)
        assert (await db.query(Order.pending(), first=10)).items == [longest]

    async def test_an_attribute_of_another_type_is_refused(self, db: OpenTable) -> None:
        with pytest.raises(InvalidItem):
            await db.put(order(1, items=cast(int, "three")))
        assert await db.get(order(1).key) is None

    async def test_an_entity_of_another_table_is_refused(self, db: OpenTable) -> None:
        with pytest.raises(InvalidInput, match="not an entity of the table"):
            await db.put(Stranger(id="1"))
        with pytest.raises(InvalidInput, match="not an entity of the table"):
            await db.get(Stranger.key.id("1"))


class Stranger(Entity, table=Table("kit_elsewhere")):
    id: Attr[str] = attr()
    key = Key("STRANGER" / id, "STRANGER")
