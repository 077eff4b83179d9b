"""The price of a product at an instant: past, present and coming."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from book import MARCH, Book, euros
from pricebook.editions.point_in_time import PAST_AT_A_TIME
from pricebook.errors import InvalidField, NotFound
from pricebook.model import PastPrice, PriceKey

DAY = timedelta(days=1)


async def test_every_price_of_the_past_is_found_on_each_store(book_anywhere: Book) -> None:
    book = book_anywhere
    await book.a_store(prices={"P1": 0})
    begun = book.now()
    for n in range(1, 15):
        await book.change({"P1": n, "P2": None}, at=begun + n * 3 * DAY, until=begun + (n * 3 + 1) * DAY if n % 3 == 0 else None)
        book.clock.set(begun + n * 3 * DAY)
        await book.switch.settle("1")
    assert await book.db.count(PastPrice.key("1").under("ALL").under("Base").under("P1")) > PAST_AT_A_TIME
    for n in range(1, 15):
        at = begun + n * 3 * DAY
        expected = n - 1 if n % 3 == 0 else n
        assert [await amount(book, at), await amount(book, at + 2 * DAY)] == [n, expected]
    assert await amount(book, begun - timedelta(milliseconds=1)) is None
    assert await book.prices.as_of("1", "P2", book.now()) is None


async def test_a_store_that_does_not_exist_is_told_from_a_product_without_a_price(book: Book) -> None:
    await book.a_store(prices={"P1": 100})
    assert await book.prices.as_of("1", "P9", book.now()) is None
    with pytest.raises(NotFound, match="store"):
        await book.prices.as_of("9", "P1", book.now())


async def test_the_price_of_a_coming_instant_is_that_of_what_is_sealed_now(book: Book) -> None:
    await book.a_store(prices={"P1": 100})
    await book.change({"P1": 101}, at=book.now() + DAY)
    await book.stage({"P1": 999}, at=book.now() + 2 * DAY)
    assert [await amount(book, book.now() + n * DAY) for n in range(4)] == [100, 101, 101, 101]


async def test_prices_of_many_products_are_read_in_a_constant_number_of_calls(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await book.a_store(prices={f"P{n}": n for n in range(50)})
    await book.change({"P7": 70}, channel="WEB")
    book.pass_()
    calls: list[int] = []
    get = book.db.engine.get

    async def recorded(ids: list[object], **options: object) -> object:
        calls.append(len(ids))
        return await get(ids, **options)  # type: ignore[arg-type]  # the same as it got

    monkeypatch.setattr(book.db.engine, "get", recorded)
    keys = [PriceKey("1", "WEB", "Base", f"P{n}") for n in range(51)]
    found = await book.prices.as_of_many(keys, book.now())
    assert [None if node is None else (node.channel, node.amount) for node in found] == [
        *(("WEB", euros(70)) if n == 7 else ("ALL", euros(n)) for n in range(50)),
        None,
    ]
    assert calls == [1, 102]  # the head, and the rows of both channels


async def test_a_swap_has_the_price_of_its_combination(book: Book) -> None:
    await book.a_store()
    await book.change({"C1/A": 10, "C1/B": 20}, type="Swap")
    book.pass_()
    found = await book.prices.as_of("1", "C1", book.now(), type="Swap", combination="B")
    assert found is not None
    assert (found.amount, found.combination) == (euros(20), "B")
    with pytest.raises(InvalidField, match="combination: is missing"):
        await book.prices.as_of("1", "C1", book.now(), type="Swap")
    with pytest.raises(InvalidField, match="at: has no time zone"):
        await book.prices.as_of("1", "C1", datetime(2026, 3, 1))


async def amount(book: Book, at: datetime) -> int | None:
    node = await book.prices.as_of("1", "P1", at)
    return None if node is None else node.amount.minor


async def test_the_version_of_a_store_changes_when_its_prices_do_and_at_no_other_time(book: Book) -> None:
    await book.a_store("0")
    assert await book.prices.version("0") == "0"
    await book.a_store(prices={"P1": 100})
    versions = [await book.prices.version("1")]

    async def note() -> None:
        versions.append(await book.prices.version("1"))

    await book.change({"P1": 90}, at=MARCH + DAY, until=MARCH + 3 * DAY)
    cancelled = await book.change({"P1": 80}, at=MARCH + 2 * DAY)
    await book.switch.cancel("1", cancelled)
    await note()  # decided, but nothing counts yet
    for day in range(1, 5):
        book.clock.set(MARCH + day * DAY)
        await note()
        await book.switch.settle("1")
        await note()
    first, decided, *days = versions
    assert decided == first
    assert days[0] == days[1] != first  # it counts, and is settled
    assert set(days[:4]) == {days[0]}  # a cancelled edition changes nothing
    assert set(days[4:]) == {"20260304T000000.000"}  # the end of the price, from then on
