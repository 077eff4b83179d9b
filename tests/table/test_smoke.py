from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from tickler.clock import ManualClock
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, Table, attr

shop = Table("shop")
NOW = datetime(2024, 3, 15, tzinfo=UTC)


class Address(Part):
    city: Attr[str]
    zip: Attr[str | None] = attr(default=None)


class Customer(Entity, table=shop):
    id: Attr[str] = attr()
    name: Attr[str]
    key = Key("CUSTOMER" / id, "PROFILE")


class Order(Entity, table=shop):
    customer: Attr[str] = attr()
    id: Attr[str] = attr()
    status: Attr[Literal["pending", "confirmed", "shipped"]] = attr()
    placed_at: Attr[datetime] = attr()
    address: Attr[Address]
    items: Attr[int] = attr(default=0)
    deleted_at: Attr[datetime | Missing] = attr(default=MISSING, deleted=True)

    key = Key("CUSTOMER" / customer, "ORDER" / placed_at / id)
    pending = Index("gsi1", "PENDING_ORDER", placed_at / id, when=status == "pending")
    trash = Index("gsi2", "DELETED" / customer, deleted_at / id)


def order(n: int, status: Literal["pending", "confirmed", "shipped"] = "pending") -> Order:
    return Order(customer="c1", id=f"o{n}", status=status, placed_at=NOW + timedelta(hours=n), address=Address(city="Bonn"))


async def test_an_item_is_in_a_sparse_index_only_while_its_condition_holds() -> None:
    async with shop.connect("memory://", clock=ManualClock(NOW)) as db:
        for n in range(10):
            await db.put(order(n))
        await db.put(Customer(id="c1", name="Ada"))
        assert await db.count(Order.pending()) == 10
        changed = await db.update(order(3).key, Order.status.set("shipped"), Order.address[Address.city].set("Köln"))
        assert (changed.status, changed.address.city) == ("shipped", "Köln")
        assert await db.count(Order.pending()) == 9
        page = await db.query(Order.pending(), first=4)
        assert [each.id for each in page.items] == ["o0", "o1", "o2", "o4"]
        assert (page.has_next, page.has_previous) == (True, False)
        page = await db.query(Order.pending(), first=4, after=page.end)
        assert [each.id for each in page.items] == ["o5", "o6", "o7", "o8"]
        assert (page.has_next, page.has_previous) == (True, True)
        page = await db.query(Order.pending(), last=4, before=page.start)
        assert [each.id for each in page.items] == ["o0", "o1", "o2", "o4"]
        assert (page.has_next, page.has_previous) == (True, False)
        both = await db.query(Customer.key("c1"), Order.key("c1"), first=100)
        assert [type(each).__name__ for each in both.items] == ["Order"] * 10 + ["Customer"]
        deleted = await db.soft_delete(order(0).key)
        assert deleted.trash
        assert [each.id async for each in db.iterate(Order.trash("c1"))] == ["o0"]
        assert not (await db.restore(order(0).key)).trash
        newest = await db.query(Order.key("c1").newest_first(), first=2, where=Order.status == "pending")
        assert [each.id for each in newest.items] == ["o9", "o8"]
