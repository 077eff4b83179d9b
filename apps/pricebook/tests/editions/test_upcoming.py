"""What will change: in a store, and on a day across stores."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from book import MARCH, Book, euros
from pricebook.editions.pages import ChangeNode, PageArgs, UpcomingPage
from pricebook.errors import InvalidCursor

DAY = timedelta(days=1)
SECOND_OF_MARCH = date(2026, 3, 2)


def shown(page: UpcomingPage) -> list[str]:
    return [f"{node.store} {node.channel} {node.product} {node.amount}" for node in page.nodes]


@pytest.fixture
async def coming(book_anywhere: Book) -> Book:
    """Two stores with changes on two days."""
    for store in ("1", "2"):
        await book_anywhere.a_store(store, {"P1": 100, "P2": 200})
        await book_anywhere.change({"P2": 202, "P1": 102}, store=store, at=date(2026, 3, 3))
        await book_anywhere.change({"P1": 101, "P3": None}, store=store, at=SECOND_OF_MARCH)
        await book_anywhere.change({"P1": 91}, store=store, at=SECOND_OF_MARCH, channel="WEB")
        await book_anywhere.stage({"P2": 999}, store=store, at=SECOND_OF_MARCH)  # never sealed
        cancelled = await book_anywhere.change({"P2": 998}, store=store, at=date(2026, 3, 4))
        await book_anywhere.switch.cancel(store, cancelled)
    return book_anywhere


async def test_changes_of_a_store_come_by_instant_and_product_in_both_directions(coming: Book) -> None:
    expected = ["1 ALL P1 1.01 EUR", "1 ALL P3 None", "1 WEB P1 0.91 EUR", "1 ALL P1 1.02 EUR", "1 ALL P2 2.02 EUR"]
    prices = coming.prices
    assert shown(await prices.upcoming("1", page=PageArgs())) == expected
    for size in (1, 2, 3, 5):
        found: list[str] = []
        page = await prices.upcoming("1", page=PageArgs(first=size))
        found += shown(page)
        while page.has_next:
            page = await prices.upcoming("1", page=PageArgs(first=size, after=page.end_cursor))
            assert page.has_previous
            found += shown(page)
        assert found == expected
        found = []
        page = await prices.upcoming("1", page=PageArgs(last=size))
        found = shown(page)
        while page.has_previous:
            page = await prices.upcoming("1", page=PageArgs(last=size, before=page.start_cursor))
            assert page.has_next
            found = shown(page) + found
        assert found == expected


async def test_what_counts_is_no_longer_upcoming_whether_it_is_settled_or_not(coming: Book) -> None:
    coming.clock.set(MARCH + DAY)
    assert shown(await coming.prices.upcoming("1", page=PageArgs())) == ["1 ALL P1 1.02 EUR", "1 ALL P2 2.02 EUR"]
    coming.clock.set(MARCH + 2 * DAY)
    await coming.switch.settle("1")
    page = await coming.prices.upcoming("1", page=PageArgs())
    assert (page.edges, page.has_next, page.has_previous) == ([], False, False)


async def test_changes_of_a_day_come_by_store_and_product_in_both_directions(coming: Book) -> None:
    expected = [f"{store} {each}" for store in ("1", "2") for each in ("ALL P1 1.01 EUR", "ALL P3 None", "WEB P1 0.91 EUR")]
    prices = coming.prices
    assert shown(await prices.changes_on(SECOND_OF_MARCH, page=PageArgs())) == expected
    page = await prices.changes_on(SECOND_OF_MARCH, page=PageArgs(first=2))
    assert (page.has_previous, page.has_next) == (False, True)
    page = await prices.changes_on(SECOND_OF_MARCH, page=PageArgs(first=3, after=page.end_cursor))
    assert (shown(page), page.has_previous, page.has_next) == (expected[2:5], True, True)
    page = await prices.changes_on(SECOND_OF_MARCH, page=PageArgs(last=9, before=page.start_cursor))
    assert (shown(page), page.has_previous, page.has_next) == (expected[:2], False, True)
    page = await prices.changes_on(SECOND_OF_MARCH, page=PageArgs(last=4))
    assert (shown(page), page.has_previous, page.has_next) == (expected[2:], True, False)
    assert (await prices.changes_on(date(2026, 3, 4), page=PageArgs())).edges == []


async def test_a_day_of_a_store_is_that_of_its_zone_and_a_moved_edition_is_found_on_its_new_day(book: Book) -> None:
    await book.a_store("1", {"P1": 100}, tz="America/Los_Angeles")
    await book.a_store("2", {"P1": 100}, tz="Asia/Tokyo")
    numbers = [await book.change({"P1": 101}, store=store, at=SECOND_OF_MARCH) for store in ("1", "2")]
    assert shown(await book.prices.changes_on(SECOND_OF_MARCH, page=PageArgs())) == ["1 ALL P1 1.01 EUR", "2 ALL P1 1.01 EUR"]
    await book.switch.move("1", numbers[0], MARCH + 2 * DAY)  # four in the afternoon of the same day there
    assert shown(await book.prices.changes_on(SECOND_OF_MARCH, page=PageArgs(first=1))) == ["1 ALL P1 1.01 EUR"]
    await book.switch.move("1", numbers[0], MARCH + 3 * DAY)
    assert shown(await book.prices.changes_on(SECOND_OF_MARCH, page=PageArgs())) == ["2 ALL P1 1.01 EUR"]
    assert shown(await book.prices.changes_on(date(2026, 3, 3), page=PageArgs())) == ["1 ALL P1 1.01 EUR"]


async def test_flags_stay_true_when_what_a_cursor_points_at_is_cancelled(book: Book) -> None:
    await book.a_store(prices={"P1": 100})
    numbers = [await book.change({f"P{n}": n}, at=MARCH + n * DAY) for n in range(1, 4)]
    first = await book.prices.upcoming("1", page=PageArgs(first=1))
    last = await book.prices.upcoming("1", page=PageArgs(last=1))
    await book.switch.cancel("1", numbers[0])
    page = await book.prices.upcoming("1", page=PageArgs(first=1, after=first.end_cursor))
    assert (page.nodes[0].product, page.has_previous, page.has_next) == ("P2", False, True)
    await book.switch.cancel("1", numbers[2])
    page = await book.prices.upcoming("1", page=PageArgs(last=1, before=last.start_cursor))
    assert (page.nodes[0].product, page.has_previous, page.has_next) == ("P2", False, False)
    page = await book.prices.upcoming("1", page=PageArgs(first=0, after=first.end_cursor))
    assert (page.edges, page.has_previous, page.has_next) == ([], False, True)
    with pytest.raises(InvalidCursor):
        await book.prices.changes_on(SECOND_OF_MARCH, page=PageArgs(after=first.end_cursor))


async def test_a_change_says_when_and_until_when_it_counts_and_of_which_edition_it_is(book: Book) -> None:
    await book.a_store(prices={"P1": 100})
    number = await book.change({"P1": 90}, at=MARCH + DAY, until=MARCH + 2 * DAY)
    (node,) = (await book.prices.upcoming("1", page=PageArgs())).nodes
    assert node == ChangeNode("1", "ALL", "Base", "P1", euros(90), MARCH + DAY, number, MARCH + 2 * DAY)
