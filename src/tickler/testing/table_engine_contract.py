"""Conformance kit of what an engine does beyond reads and writes: expiry, snapshots, loads, and rows of others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tickler.clock import ManualClock
from tickler.errors import ConditionFailed, InvalidInput, InvalidItem, ItemNotFound, SchemaMismatch
from tickler.table import Attr, Entity, Index, ItemId, Key, Table, attr
from tickler.table.cursor import read_secret
from tickler.table.engines.engine import Engine
from tickler.table.index_texts import read_index_texts, save_index_texts
from tickler.table.open_table import OpenTable
from tickler.table.transaction import Transaction
from tickler.testing.table_fixtures import NOW, TABLE, Account, Customer, Order, TableFixtures, numbers, order, refund


class TableEngineContract(TableFixtures):
    """Requirements on expiry, snapshots and loads. Part of `TableContract`."""

    async def test_an_expired_item_is_absent_from_every_read(self, db: OpenTable, clock: ManualClock) -> None:
        await db.put(order(1, expires_at=NOW + timedelta(seconds=10)))
        await db.put(order(2))
        clock.advance(timedelta(seconds=9.999))
        assert await db.count(Order.pending()) == 2
        clock.advance(timedelta(milliseconds=1))
        assert await db.get(order(1).key) is None
        assert await db.get_many([order(1).key, order(2).key]) == [None, order(2)]
        assert await db.count(Order.pending()) == 1
        assert await db.count(Order.key("c1")) == 1
        assert numbers((await db.query(Order.pending(), first=1)).items) == [2]
        assert numbers((await db.query(Order.key("c1"), last=5)).items) == [2]

    async def test_an_expired_item_is_absent_for_writes(self, db: OpenTable, clock: ManualClock) -> None:
        for n in (1, 2, 3):
            await db.put(order(n, items=7, expires_at=NOW + timedelta(seconds=10)))
        clock.advance(timedelta(seconds=10))
        with pytest.raises(ItemNotFound):
            await db.update(order(1).key, Order.items.add(1))
        with pytest.raises(ConditionFailed):
            await db.replace(order(1))
        assert await db.delete(order(3).key) is None
        assert await db.create(order(1)) == order(1)
        await db.put(order(2))
        assert (await db.query(Order.pending(), first=5)).items == [order(1), order(2)]

    async def test_a_sweep_deletes_expired_items_up_to_its_limit(self, db: OpenTable, clock: ManualClock) -> None:
        await db.put_many([*(order(n, expires_at=NOW + timedelta(seconds=n)) for n in range(1, 6)), order(9)])
        assert await db.sweep() == 0
        clock.advance(timedelta(seconds=4))
        swept = [await db.sweep(limit=3), await db.sweep(limit=3), await db.sweep(limit=3)]
        assert swept == ([3, 1, 0] if self.sweeps else [0, 0, 0])
        assert numbers((await db.query(Order.key("c1"), first=5)).items) == [5, 9]

    async def test_a_soft_deleted_item_expires_after_its_time(self, db: OpenTable, clock: ManualClock) -> None:
        await db.put(order(1))
        await db.put(order(2))
        await db.soft_delete(order(1).key, keep=timedelta(days=30))
        await db.soft_delete(order(2).key, keep=timedelta(days=30))
        clock.advance(timedelta(days=29))
        await db.restore(order(2).key)
        clock.advance(timedelta(days=1))
        assert await db.get_many([order(1).key, order(2).key]) == [None, order(2)]
        assert await db.count(Order.trash("c1")) == 0

    async def test_a_snapshot_sees_one_state(self, db: OpenTable) -> None:
        if not self.has_snapshots:
            with pytest.raises(InvalidInput, match="snapshots"):
                async with db.snapshot():
                    pass
            return
        await db.put_many([order(n) for n in range(4)])
        async with db.snapshot() as then:
            await db.delete(order(0).key)
            await db.update(order(1).key, Order.status.set("shipped"))
            await db.put(order(9))
            assert await then.get(order(0).key) == order(0)
            page = await then.query(Order.pending(), first=2)
            assert (page.items, page.has_next) == ([order(0), order(1)], True)
            assert (await then.query(Order.pending(), first=9, after=page.end)).items == [order(2), order(3)]
            assert await then.count(Order.pending()) == 4
        assert numbers((await db.query(Order.pending(), first=9)).items) == [2, 3, 9]

    async def test_each_snapshot_sees_the_state_when_it_begins(self, db: OpenTable) -> None:
        if not self.has_snapshots:
            pytest.skip("this engine has no snapshots")
        for size in range(1, 4):
            await db.put(order(size))
            async with db.snapshot() as then, db.snapshot() as beside:
                await db.put(order(10 + size))
                for reads in (then, beside):
                    found = await reads.get_many([order(n).key for n in (size, 10 + size)])
                    assert found == [order(size), None]

    async def test_an_error_inside_a_snapshot_is_the_callers_own(self, db: OpenTable) -> None:
        if not self.has_snapshots:
            pytest.skip("this engine has no snapshots")

        async def reader() -> None:
            async with db.snapshot() as then:
                await then.count(Order.pending())
                raise TimeoutError("mine")

        with pytest.raises(TimeoutError, match="mine"):
            await reader()
        await db.put(order(1))

    async def test_a_load_puts_all_items_into_all_indexes(self, db: OpenTable) -> None:
        told: list[tuple[str, int, int | None]] = []
        entities: list[Any] = [*(order(n, rating=n % 3) for n in range(4_500)), Customer(id="c1", name="Ada"), refund(1, 0)]
        assert await db.load(iter(entities), on_progress=lambda *each: told.append(each)) == 4_502
        assert await db.count(Order.pending()) == await db.count(Order.rated()) == 4_500
        assert await db.get_many([each.key for each in entities[-3:]]) == entities[-3:]
        assert [done for activity, done, _ in told if activity == "loading"][-1] == 4_502
        assert numbers((await db.query(Order.pending().since(order(4_498).placed_at), first=5)).items) == [4_498, 4_499]
        assert await db.load([order(5_000), order(5_001, status="shipped")]) == 2
        assert await db.load([]) == 0
        assert await db.count(Order.pending()) == 4_501
        await db.put(order(5_000, status="shipped"))
        assert await db.count(Order.pending()) == 4_500

    async def test_a_load_of_a_list_tells_how_many_there_will_be(self, db: OpenTable) -> None:
        told: list[tuple[str, int, int | None]] = []
        await db.load([order(n) for n in range(30)], on_progress=lambda *each: told.append(each))
        assert [each for each in told if each[0] == "loading"][-1] == ("loading", 30, 30)

    async def test_a_load_with_a_key_that_is_taken_loads_nothing(self, db: OpenTable) -> None:
        if not self.checks_loads:
            pytest.skip("this engine replaces items")
        with pytest.raises(InvalidInput, match=r"o002.*nothing was loaded"):
            await db.load([order(1), order(2), order(3), order(2)])
        assert await db.count(Order.key("c1")) == 0
        await db.put(order(2))
        with pytest.raises(InvalidInput, match=r"o002.*nothing was loaded"):
            await db.load([order(1), order(2)])
        assert (await db.query(Order.pending(), first=9)).items == [order(2)]

    async def test_a_load_that_breaks_off_loads_nothing(self, db: OpenTable) -> None:
        def entities() -> Iterator[Order]:
            yield from (order(n) for n in range(3_000))
            yield order(1, id="x" * 2_000)

        with pytest.raises(InvalidItem, match="shorten"):
            await db.load(entities())
        if self.checks_loads:
            assert await db.count(Order.pending()) == 0
            await db.put(order(1))
            assert (await db.query(Order.pending(), first=1)).items == [order(1)]

    async def test_an_item_of_an_unknown_entity_is_named_and_left_out_of_queries(self, engine: Engine, db: OpenTable) -> None:
        await db.put(order(1))
        await self.as_another_program(engine).put(Coupon(id="c1"))
        with pytest.raises(SchemaMismatch, match="Coupon"):
            await db.get(Customer.key.id("c1"))
        assert (await db.query(Customer.key("c1"), Order.key("c1"), first=9)).items == [order(1)]
        assert (await db.query(Order.pending(), first=9)).items == [order(1)]
        assert await db.count(Customer.key("c1")) == 0

    async def test_an_item_of_another_entity_is_named_and_no_operation_changes_it(self, engine: Engine, db: OpenTable) -> None:
        others = self.as_another_program(engine)
        await others.put(Coupon(id="c1"))
        await others.put(Voucher(id=1))
        customer, account = Customer(id="c1", name="Ada"), Account(id=1)

        async def transact(collect: Callable[[Transaction], None]) -> None:
            async with db.transaction() as tx:
                tx.put(order(1))
                collect(tx)

        def both(entity: Customer | Account) -> list[ItemId[Any]]:
            return [entity.key, order(1).key]

        refused: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("Customer", lambda: db.get(account.key)),
            ("Customer", lambda: db.get_many(both(account))),
            ("Customer", lambda: db.put(account)),
            ("Customer", lambda: db.update(account.key, Account.balance.add(1))),
            ("Customer", lambda: db.upsert(account.key, Account.balance.add(1))),
            ("Customer", lambda: db.delete(account.key)),
            ("Customer", lambda: transact(lambda tx: tx.delete(account.key))),
            ("Coupon", lambda: db.get_many(both(customer))),
            ("Coupon", lambda: db.create(customer)),
            ("Coupon", lambda: db.replace(customer)),
            ("Coupon", lambda: db.put(customer, when=Customer.name.missing())),
            ("Coupon", lambda: db.update(customer.key, Customer.name.set("Eve"))),
            ("Coupon", lambda: db.upsert(customer.key, Customer.name.set("Eve"))),
            ("Coupon", lambda: db.delete(customer.key)),
            ("Coupon", lambda: db.delete(customer.key, when=Customer.name.missing())),
            ("Coupon", lambda: transact(lambda tx: tx.create(customer))),
            ("Coupon", lambda: transact(lambda tx: tx.update(customer.key, Customer.name.set("Eve")))),
            ("Coupon", lambda: transact(lambda tx: tx.delete(customer.key))),
            ("Coupon", lambda: transact(lambda tx: tx.check(customer.key, Customer.name.missing()))),
        ]
        for entity, operation in refused:
            with pytest.raises(SchemaMismatch, match=entity) as raised:
                await operation()
            assert raised.value.attribute == entity
        assert await others.get(Coupon.key.id("c1")) == Coupon(id="c1")
        assert await others.get(Voucher.key.id(1)) == Voucher(id=1)
        assert await db.get(order(1).key) is None

    async def test_writes_that_do_not_look_take_the_place_of_an_item_of_another_entity(
        self, engine: Engine, db: OpenTable
    ) -> None:
        others = self.as_another_program(engine)
        for n in range(4):
            await others.put(Coupon(id=f"c{n}"))
        await db.put(Customer(id="c0", name="Ada"))
        await db.put_many([Customer(id="c1", name="Bea")])
        async with db.transaction() as tx:
            tx.put(Customer(id="c2", name="Cleo"))
            tx.create(order(1))
        await db.delete_many([Customer.key.id("c3")])
        found = await db.get_many([Customer.key.id(f"c{n}") for n in range(4)])
        assert [None if each is None else each.name for each in found] == ["Ada", "Bea", "Cleo", None]
        assert await others.count(Coupon.one()) == 0

    async def test_a_reindex_leaves_right_keys_and_items_of_other_programs_alone(self, engine: Engine, db: OpenTable) -> None:
        await db.put_many([order(1, rating=1), order(2, status="shipped")])
        others = self.as_another_program(engine)
        await others.put(Coupon(id="c9", note="two"))
        assert await db.reindex() == 0
        assert await others.count(Coupon.two("two")) == await others.count(Coupon.one()) == 1
        assert numbers((await db.query(Order.pending(), first=5)).items) == [1]

    async def test_the_definitions_of_indexes_are_kept_with_the_table(self, engine: Engine) -> None:
        ghost, spirit = {"gsi1": "'GHOST', id, when Ghost.name == 'ü'", "gsi2": ""}, {"gsi1": "'SPIRIT', id"}
        metadata = engine.metadata
        await asyncio.gather(save_index_texts(metadata, {"Ghost": ghost}), save_index_texts(metadata, {"Spirit": spirit}))
        await engine.open(create=True)
        texts = await read_index_texts(metadata)
        assert (texts["Ghost"], texts["Spirit"]) == (ghost, spirit)
        await save_index_texts(metadata, {"Ghost": spirit})
        texts = await read_index_texts(metadata)
        assert (texts["Ghost"], texts["Spirit"]) == (spirit, spirit)

    async def test_an_engine_knows_whether_it_has_more_than_so_many_items(self, engine: Engine, db: OpenTable) -> None:
        await read_secret(engine.metadata)  # which some engines keep as an item of their own
        assert not await engine.has_more_than(0)
        await db.put_many([order(n) for n in range(3)])
        assert [await engine.has_more_than(n) for n in range(5)] == [True, True, True, False, False]

    async def test_the_secret_of_cursors_stays_the_same(self, engine: Engine) -> None:
        secret = await read_secret(engine.metadata)
        assert len(secret) == 32
        await engine.open(create=True)
        assert await read_secret(engine.metadata) == secret

    async def test_what_is_written_is_seen_by_the_next_read(self, db: OpenTable) -> None:
        for n in range(1, 30):
            await db.upsert(Account.key.id(1), Account.balance.add(1))
            found = await db.get(Account.key.id(1))
            assert found is not None
            assert found.balance == n

    def as_another_program(self, engine: Engine) -> OpenTable:
        """Return the same table with the entities of `OTHER`, whose `Coupon` the kit's table does not know."""
        pytest.skip("this kit does not override `as_another_program`")


OTHER = Table(TABLE.name)


class Coupon(Entity, table=OTHER):
    """Has the key of a customer, and the indexes of the kit's table."""

    id: Attr[str] = attr()
    note: Attr[str] = attr(default="")
    key = Key("CUSTOMER" / id, "PROFILE")
    one = Index("gsi1", "PENDING", id)
    two = Index("gsi2", "NOTE" / note, id, when=note == "two")
    three = Index("gsi3", "NOTE" / note, id, when=note == "three")
    four = Index("gsi4", "NOTE" / note, id, when=note == "four")


class Voucher(Entity, table=OTHER, stored_as="Customer"):
    """Has the key of an account, and the name of another entity of the kit's table."""

    id: Attr[int] = attr()
    name: Attr[str] = attr(default="")
    key = Key("ACCOUNT" / id, "ACCOUNT")
