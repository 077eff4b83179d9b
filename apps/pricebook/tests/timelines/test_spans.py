"""The prices of a product over a time, in spans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from book import MARCH, Book
from pricebook.access.caller import Caller
from pricebook.errors import LacksRole, NotFound
from pricebook.model import PriceKey
from pricebook.timelines.timelines import Timelines

DAY = timedelta(days=1)
READER = Caller("rea", frozenset({"read"}))
TEA = PriceKey("1", "ALL", "Base", "TEA")
ON_THE_WEB = PriceKey("1", "WEB", "Base", "TEA")


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


async def drawn(book: Book, key: PriceKey = TEA, end: datetime = MARCH + 10 * DAY) -> list[tuple[datetime, int | None]]:
    """Return when each price of a product begins, and how much it is."""
    spans = await Timelines(book.db).spans(READER, [key], book.now(), end)
    return [(span.from_at, None if span.amount is None else span.amount.minor) for span in spans[key]]


async def test_a_price_that_stays_is_one_span_without_an_end(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    (span,) = (await Timelines(book.db).spans(READER, [TEA], book.now(), book.now() + DAY))[TEA]
    assert (span.from_at, span.to_at, span.until) == (book.now(), None, None)


async def test_a_coming_price_ends_the_one_before_it(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    await book.change({"TEA": 120}, at=day(5))
    assert await drawn(book) == [(book.now(), 100), (day(5), 120)]


async def test_a_price_with_an_end_gives_way_to_the_former_one(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    await book.change({"TEA": 80}, at=day(5), until=day(7))
    spans = (await Timelines(book.db).spans(READER, [TEA], book.now(), day(10)))[TEA]
    assert [span.amount.minor for span in spans if span.amount] == [100, 80, 100]
    assert [(span.to_at, span.until) for span in spans] == [(day(5), None), (day(7), day(7)), (None, None)]


async def test_a_change_that_is_not_sealed_or_was_cancelled_is_not_drawn(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    await book.stage({"TEA": 110}, at=day(4))
    cancelled = await book.change({"TEA": 120}, at=day(5))
    await book.switch.cancel("1", cancelled)
    assert await drawn(book) == [(book.now(), 100)]


async def test_a_price_that_ends_for_good_leaves_a_span_without_an_amount(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    await book.change({"TEA": None}, at=day(3))
    await book.change({"TEA": 130}, at=day(6))
    assert await drawn(book) == [(book.now(), 100), (day(3), None), (day(6), 130)]


async def test_a_channel_without_a_price_of_its_own_has_that_of_all(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    await book.change({"TEA": 90}, channel="WEB", at=day(4), until=day(6))
    await book.change({"TEA": 105}, at=day(5))
    assert await drawn(book, ON_THE_WEB) == [(book.now(), 100), (day(4), 90), (day(6), 105)]


async def test_a_product_that_gets_its_first_price_later_begins_there(book: Book) -> None:
    await book.a_store()
    await book.change({"TEA": 100}, at=day(4))
    assert await drawn(book) == [(day(4), 100)]
    assert await drawn(book, PriceKey("1", "ALL", "Base", "NOTHING")) == []


async def test_changes_after_the_end_of_the_time_are_left_out(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    await book.change({"TEA": 120}, at=day(5))
    assert await drawn(book, end=day(5)) == [(book.now(), 100)]


async def test_time_lines_of_other_stores_do_not_exist(book: Book) -> None:
    await book.a_store(prices={"TEA": 100})
    timelines, stranger = Timelines(book.db), Caller("rea", frozenset({"read"}), ("2",))
    with pytest.raises(NotFound):
        await timelines.spans(stranger, [TEA], book.now(), day(9))
    with pytest.raises(LacksRole):
        await timelines.spans(Caller("edi", frozenset({"edit"})), [TEA], book.now(), day(9))
