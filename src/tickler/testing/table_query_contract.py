"""Conformance kit of an engine's queries: pages, cursors, ranges, filters and counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tickler.errors import InvalidCursor, InvalidInput
from tickler.table.open_table import OpenTable
from tickler.table.selection import Selection
from tickler.testing.table_fixtures import NOW, Customer, Order, Refund, Score, TableFixtures, numbers, order, refund


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


class TableQueryContract(TableFixtures):
    """Requirements on queries. Part of `TableContract`."""

    async def test_pages_go_forward_and_turn_around(self, db: OpenTable) -> None:
        await db.put_many([order(n) for n in range(10)])
        for selection in (Order.pending(), Order.key("c1")):
            page = await db.query(selection, first=4)
            assert (numbers(page.items), page.has_next, page.has_previous) == ([0, 1, 2, 3], True, False)
            page = await db.query(selection, first=4, after=page.end)
            assert (numbers(page.items), page.has_next, page.has_previous) == ([4, 5, 6, 7], True, True)
            page = await db.query(selection, first=4, after=page.end)
            assert (numbers(page.items), page.has_next, page.has_previous) == ([8, 9], False, True)
            page = await db.query(selection, last=4, before=page.start)
            assert (numbers(page.items), page.has_next, page.has_previous) == ([4, 5, 6, 7], True, True)
            page = await db.query(selection, last=4, before=page.start)
            assert (numbers(page.items), page.has_next, page.has_previous) == ([0, 1, 2, 3], True, False)

    async def test_the_last_items_are_a_page_in_the_same_order(self, db: OpenTable) -> None:
        await db.put_many([order(n) for n in range(5)])
        page = await db.query(Order.pending(), last=2)
        assert (numbers(page.items), page.has_next, page.has_previous) == ([3, 4], False, True)
        page = await db.query(Order.pending(), last=3, before=page.start)
        assert (numbers(page.items), page.has_next, page.has_previous) == ([0, 1, 2], True, False)

    async def test_a_page_that_ends_with_the_last_item_has_no_next(self, db: OpenTable) -> None:
        await db.put_many([order(n) for n in range(4)])
        page = await db.query(Order.pending(), first=4)
        assert (page.has_next, page.has_previous) == (False, False)
        page = await db.query(Order.pending(), first=4, after=page.end)
        assert (page.items, page.has_next, page.has_previous) == ([], False, True)

    async def test_an_empty_page_behind_the_last_item_knows_of_those_before_it(self, db: OpenTable) -> None:
        await db.put_many([order(n, rating=min(n, 4)) for n in (1, 3, 4, 5, 9)])
        rated = Order.rated().under(4)
        ends = {each: (await db.query(each, first=3)).end for each in (rated, rated.newest_first(), Order.key("c1").since(at(4)))}
        for selection, end in ends.items():
            page = await db.query(selection, first=3, after=end)
            assert (list(page.items), page.has_next, page.has_previous) == ([], False, True)
        await db.delete_many([order(n).key for n in (4, 5, 9)])
        for selection, end in ends.items():
            page = await db.query(selection, first=3, after=end)
            assert (list(page.items), page.has_next, page.has_previous) == ([], False, False)

    async def test_an_empty_selection_is_an_empty_page(self, db: OpenTable) -> None:
        page = await db.query(Order.pending(), first=4)
        assert (list(page.items), page.start, page.end) == ([], None, None)
        assert (page.has_next, page.has_previous) == (False, False)

    async def test_items_with_equal_sort_keys_are_each_on_one_page(self, db: OpenTable) -> None:
        await db.put_many([order(n, rating=3 if n < 7 else 4) for n in range(10)])
        everything = (await db.query(Order.rated(), first=100)).items
        assert sorted(numbers(everything)) == list(range(10))
        walked: list[Order] = []
        page = await db.query(Order.rated(), first=3)
        walked += page.items
        while page.has_next:
            page = await db.query(Order.rated(), first=3, after=page.end)
            assert page.has_previous
            walked += page.items
        assert walked == everything
        back = list(page.items)
        while page.has_previous:
            page = await db.query(Order.rated(), last=3, before=page.start)
            back = [*page.items, *back]
        assert back == everything

    async def test_a_cursor_is_valid_after_its_item_is_gone(self, db: OpenTable) -> None:
        await db.put_many([order(n, rating=1) for n in range(6)])
        for selection in (Order.key("c1"), Order.pending(), Order.rated()):
            await db.put_many([order(n, rating=1) for n in range(6)])
            page = await db.query(selection, first=2)
            kept = page.items[0].key
            await db.delete(page.items[1].key)
            following = await db.query(selection, first=2, after=page.end)
            assert following.has_previous
            before = await db.query(selection, last=2, before=following.start)
            assert [each.key for each in before.items] == [kept]

    async def test_cursors_of_other_queries_and_forged_ones_are_refused(self, db: OpenTable) -> None:
        await db.put_many([order(n) for n in range(4)])
        end = (await db.query(Order.pending(), first=2)).end
        assert end is not None
        for selection in (Order.key("c1"), Order.pending().since(at(1)), Order.trash("c1")):
            with pytest.raises(InvalidCursor):
                await db.query(selection, first=2, after=end)
        with pytest.raises(InvalidCursor):
            await db.query(Order.pending(), first=2, after=end, where=Order.items == 0)
        for forged in ("", "x", "ü", end[:-2], end[:-1] + ("A" if end[-1] != "A" else "E"), "A" * 60):
            with pytest.raises(InvalidCursor):
                await db.query(Order.pending(), first=2, after=forged)

    async def test_a_page_has_a_size(self, db: OpenTable) -> None:
        for size in (0, -1, 1_001):
            with pytest.raises(InvalidInput):
                await db.query(Order.pending(), first=size)
        with pytest.raises(InvalidInput):
            await db.query(Order.pending())
        with pytest.raises(InvalidInput):
            await db.query(Order.pending(), first=1, last=1)

    async def test_several_entities_of_a_partition_are_one_query(self, db: OpenTable) -> None:
        await db.put_many([*(order(n) for n in range(5)), Customer(id="c1", name="Ada"), refund(1, 0), order(9, customer="c2")])
        page = await db.query(Customer.key("c1"), Order.key("c1"), first=4)
        assert [type(each) for each in page.items] == [Order] * 4
        page = await db.query(Customer.key("c1"), Order.key("c1"), first=4, after=page.end)
        assert [type(each) for each in page.items] == [Order, Customer]
        assert (page.has_next, page.has_previous) == (False, True)
        page = await db.query(Customer.key("c1"), Order.key("c1"), last=2, before=page.start)
        assert (numbers(page.items), page.has_previous) == ([2, 3], True)
        assert await db.count(Customer.key("c1"), Order.key("c1")) == 6

    async def test_entities_that_share_a_partition_of_an_index_come_in_one_order(self, db: OpenTable) -> None:
        await db.put_many([order(0), order(1), order(2), refund(1, 0.5), refund(2, 1.5)])
        both = await db.query(Order.pending(), Refund.pending(), first=10)
        assert [each.id for each in both.items] == ["o000", "r1", "o001", "r2", "o002"]
        assert [each.id for each in (await db.query(Refund.pending(), first=10)).items] == ["r1", "r2"]
        assert await db.count(Refund.pending()) == 2
        filtered = await db.query(Refund.pending(), first=10, where=Refund.amount > 1)
        assert list(filtered.items) == []

    async def test_each_of_several_selections_keeps_its_own_range(self, db: OpenTable) -> None:
        await db.put_many([order(0), order(1), order(2), refund(1, 0.5), refund(2, 1.5)])
        late_orders, early_refunds = Order.pending().since(at(1)), Refund.pending().until(at(1))
        both = await db.query(late_orders, Refund.pending(), first=10)
        assert [each.id for each in both.items] == ["r1", "o001", "r2", "o002"]
        assert await db.count(late_orders, Refund.pending()) == 4
        page = await db.query(Order.pending(), early_refunds, first=3)
        assert ([each.id for each in page.items], page.has_next) == (["o000", "r1", "o001"], True)
        page = await db.query(Order.pending(), early_refunds, first=3, after=page.end)
        assert ([each.id for each in page.items], page.has_next, page.has_previous) == (["o002"], False, True)

    async def test_selections_that_overlap_show_each_item_once(self, db: OpenTable) -> None:
        await db.put_many([order(n, rating=n) for n in range(6)])
        three: Selection[Order, Any] = Order.rated().under(3)
        overlapping: list[tuple[list[Selection[Order, Any]], list[int]]] = [
            ([three, three], [3]),
            ([Order.rated().between(1, 3), three, Order.rated().since(5)], [1, 2, 3, 5]),
            ([Order.rated().until(2), Order.rated().since(1)], [0, 1, 2, 3, 4, 5]),
        ]
        for selections, expected in overlapping:
            page = await db.query(*selections, first=10)
            assert numbers(page.items) == expected
            assert await db.count(*selections) == len(expected)

    async def test_ranges_bound_the_next_attribute_of_the_sort_key(self, db: OpenTable) -> None:
        await db.put_many([order(n) for n in range(6)])
        for orders in (Order.key("c1"), Order.pending()):
            ranges: dict[Selection[Order, Any], list[int]] = {
                orders.since(at(2)): [2, 3, 4, 5],
                orders.after(at(2)): [3, 4, 5],
                orders.until(at(2)): [0, 1, 2],
                orders.before(at(2)): [0, 1],
                orders.between(at(1), at(3)): [1, 2, 3],
                orders.under(at(4)): [4],
                orders.under(at(4)).since("o004"): [4],
                orders.under(at(4)).after("o004"): [],
                orders.under(at(4)).starting_with("o0"): [4],
                orders.under(at(4)).starting_with("x"): [],
                orders.under(at(4)).under("o004"): [4],
                orders.newest_first().until(at(2)): [2, 1, 0],
                orders.between(at(3), at(1)): [],
            }
            for selection, expected in ranges.items():
                assert numbers((await db.query(selection, first=10)).items) == expected
                assert await db.count(selection) == len(expected)
                assert numbers([each async for each in db.iterate(selection)]) == expected

    async def test_ranges_of_a_descending_attribute_are_of_its_values(self, db: OpenTable) -> None:
        await db.put_many([Score(game="g", points=points, player="p") for points in (-10, -1, 0, 5, 9, 10, 100)])
        ranges: dict[Selection[Score, Any], list[int]] = {
            Score.key("g"): [100, 10, 9, 5, 0, -1, -10],
            Score.key("g").since(9): [100, 10, 9],
            Score.key("g").after(9): [100, 10],
            Score.key("g").until(0): [0, -1, -10],
            Score.key("g").before(0): [-1, -10],
            Score.key("g").between(-1, 9): [9, 5, 0, -1],
            Score.key("g").under(0): [0],
            Score.key("g").newest_first().until(5): [-10, -1, 0, 5],
        }
        for selection, expected in ranges.items():
            assert [each.points for each in (await db.query(selection, first=10)).items] == expected

    async def test_the_newest_come_first_and_pages_go_on_in_that_order(self, db: OpenTable) -> None:
        await db.put_many([order(n) for n in range(5)])
        newest = Order.pending().newest_first()
        page = await db.query(newest, first=2)
        assert (numbers(page.items), page.has_next, page.has_previous) == ([4, 3], True, False)
        page = await db.query(newest, first=2, after=page.end)
        assert (numbers(page.items), page.has_next, page.has_previous) == ([2, 1], True, True)
        page = await db.query(newest, last=2, before=page.start)
        assert (numbers(page.items), page.has_next, page.has_previous) == ([4, 3], True, False)

    async def test_a_page_with_a_filter_is_full_and_knows_what_follows(self, db: OpenTable) -> None:
        await db.put_many([order(n, items=n % 10) for n in range(100)])
        page = await db.query(Order.pending(), first=4, where=Order.items == 9)
        assert (numbers(page.items), page.has_next, page.has_previous) == ([9, 19, 29, 39], True, False)
        page = await db.query(Order.pending(), first=6, where=Order.items == 9, after=page.end)
        assert (numbers(page.items), page.has_next, page.has_previous) == ([49, 59, 69, 79, 89, 99], False, True)
        assert list((await db.query(Order.pending(), first=4, where=Order.items > 9)).items) == []

    async def test_counts_are_of_what_a_query_would_return(self, db: OpenTable) -> None:
        await db.put_many([*(order(n) for n in range(5)), order(9, customer="c2"), refund(1, 0)])
        assert await db.count(Order.key("c1")) == 5
        assert await db.count(Order.key("c2")) == 1
        assert await db.count(Order.key("c3")) == 0
        assert await db.count(Order.pending()) == 6

    async def test_consistent_reads_of_the_table_see_each_write_and_those_of_indexes_may_be_refused(self, db: OpenTable) -> None:
        orders, pending = Order.key("c1"), Order.pending()
        for n in range(3):
            await db.put(order(n))
            assert await db.count(orders, consistent=True) == await db.count(orders.since(at(0)), consistent=True) == n + 1
            assert numbers((await db.query(orders, last=1, consistent=True)).items) == [n]
        if self.has_consistent_indexes:
            assert await db.count(pending, consistent=True) == 3
            assert numbers((await db.query(pending, last=1, consistent=True)).items) == [2]
            return
        with pytest.raises(InvalidInput) as refused:
            await db.query(pending, last=1, consistent=True)
        for selection in (pending, pending.between(at(2), at(1))):
            with pytest.raises(InvalidInput, match="leave it out") as also_refused:
                await db.count(selection, consistent=True)
            assert str(also_refused.value) == str(refused.value)

    async def test_values_with_separators_stay_in_their_partition(self, db: OpenTable) -> None:
        for customer in ("a", "a#b", "a%", "a$", "ä", "\U0001f600"):
            await db.put(order(1, customer=customer))
        for customer in ("a", "a#b", "a%", "a$", "ä", "\U0001f600"):
            assert (await db.query(Order.key(customer), first=10)).items == [order(1, customer=customer)]
