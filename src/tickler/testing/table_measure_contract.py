"""Conformance kit of how an engine measures a table."""

from __future__ import annotations

from datetime import timedelta

from tickler.clock import ManualClock
from tickler.table.cursor import read_secret
from tickler.table.engines.engine import Engine
from tickler.table.measurement import Fill, Partition
from tickler.table.open_table import OpenTable
from tickler.testing.table_engine_contract import Coupon, TableEngineContract
from tickler.testing.table_fixtures import NOW, Customer, order, refund


class TableMeasureContract(TableEngineContract):
    """Requirements on `measure`. Part of `TableContract`."""

    async def test_an_empty_table_has_nothing_to_measure(self, engine: Engine, db: OpenTable) -> None:
        await read_secret(engine.metadata)  # some engines keep metadata as items
        found = await db.measure()
        assert found.table == Fill({})
        assert found.indexes == dict.fromkeys(("gsi1", "gsi2", "gsi3", "gsi4"), Fill({}))
        assert found.bytes == {}
        assert found.exact

    async def test_items_are_counted_by_entity_in_the_table_and_in_each_index(self, db: OpenTable) -> None:
        customers = [Customer(id=f"c{n}", name="Ada") for n in range(1, 4)]
        waiting = [order(n, rating=n) for n in range(3)]
        shipped = [order(n, status="shipped", customer="c2", deleted_at=NOW) for n in range(5)]
        await db.put_many([*customers, *waiting, *shipped, refund(1, 0)])
        found = await db.measure()
        assert found.exact
        assert found.table.items == {"Customer": 3, "Order": 8, "Refund": 1}
        assert {gsi: fill.items for gsi, fill in found.indexes.items()} == {
            "gsi1": {"Order": 3, "Refund": 1},
            "gsi2": {"Order": 5},
            "gsi3": {"Order": 3},
            "gsi4": {},
        }
        assert (found.table.total, found.indexes["gsi1"].total, found.indexes["gsi4"].total) == (12, 4, 0)

    async def test_the_largest_partition_is_found_in_the_table_and_in_each_index(self, db: OpenTable) -> None:
        deleted = [order(n, customer=f"c{n % 2}", deleted_at=NOW) for n in range(9)]
        await db.put_many([*deleted, Customer(id="c9", name="Ada")])
        found = await db.measure()
        assert found.table.largest == Partition("CUSTOMER#c0", 5)
        assert found.indexes["gsi1"].largest == Partition("PENDING", 9)
        assert found.indexes["gsi2"].largest == Partition("DELETED#c0", 5)
        assert found.indexes["gsi3"].largest is None

    async def test_expired_items_are_not_measured(self, db: OpenTable, clock: ManualClock) -> None:
        await db.put_many([order(1, expires_at=NOW + timedelta(seconds=10)), order(2)])
        assert (await db.measure()).table.items == {"Order": 2}
        clock.advance(timedelta(seconds=10))
        found = await db.measure()
        assert (found.table.items, found.indexes["gsi1"].items) == ({"Order": 1}, {"Order": 1})
        assert found.table.largest == Partition("CUSTOMER#c1", 1)

    async def test_the_mean_size_of_items_is_measured_by_entity(self, db: OpenTable) -> None:
        await db.put_many([Customer(id="c1", name="A" * 2_000), Customer(id="c2", name="A" * 4_000), refund(1, 0)])
        found = await db.measure()
        assert 3_000 < found.bytes["Customer"] < 3_200
        assert 50 < found.bytes["Refund"] < 300

    async def test_items_of_other_programs_are_measured_under_their_names(self, engine: Engine, db: OpenTable) -> None:
        await db.put(order(1))
        await self.as_another_program(engine).put(Coupon(id="c1"))
        found = await db.measure()
        assert found.table.items == {"Coupon": 1, "Order": 1}
        assert found.indexes["gsi1"].items == {"Coupon": 1, "Order": 1}
