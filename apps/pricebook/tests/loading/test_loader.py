"""Loading a catalogue."""

from __future__ import annotations

from datetime import timedelta

import pytest

from book import MARCH, Book
from pricebook.editions.pages import PageArgs
from pricebook.loading.loader import load_catalogue
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import Store
from tickler import InvalidInput

CATALOGUE = MadeCatalogue(store_count=7, product_count=9, web_every=4)


async def test_a_loaded_catalogue_is_read_by_store_and_by_product(book_anywhere: Book) -> None:
    book = book_anywhere
    assert await load_catalogue(book.db, CATALOGUE, MARCH) == len(CATALOGUE) + 14
    assert len(CATALOGUE) == 7 * (9 + 3)
    expected = {CATALOGUE.product(n): CATALOGUE.amount("10003", "ALL", n) for n in range(9)}
    assert await book.shown("10003") == expected
    expected |= {CATALOGUE.product(n): CATALOGUE.amount("10003", "WEB", n) for n in (0, 4, 8)}
    assert await book.shown("10003", "WEB") == expected
    assert list(await book.across("PROD0004")) == [f"1000{n}" for n in range(7)]
    assert [store.store async for store in book.db.iterate(Store.all())] == [f"1000{n}" for n in range(7)]
    assert (await book.head("10004")).tz == "Europe/Berlin"
    assert await book.prices.version("10003") == "20260301T000000.000"


async def test_prices_of_a_loaded_catalogue_can_be_changed(book: Book) -> None:
    await load_catalogue(book.db, CATALOGUE, MARCH - timedelta(days=30))
    await book.change({"PROD0000": 1, "PROD0001": None, "NEW": 2}, store="10000")
    book.pass_()
    await book.switch.settle("10000")
    shown = await book.shown("10000")
    assert (shown["PROD0000"], shown["NEW"], len(shown)) == (1, 2, 9)
    assert "PROD0001" not in shown


async def test_progress_is_told_up_to_the_last_index(sqlite_url: str, book: Book) -> None:
    told: list[tuple[str, int, int | None]] = []
    await load_catalogue(book.db, CATALOGUE, MARCH, on_progress=lambda *each: told.append(each))
    assert told[-1] == ("loading", 98, 98)


async def test_loaded_stores_have_a_home(book: Book) -> None:
    await load_catalogue(book.db, CATALOGUE, MARCH, home="eu-west-1")
    assert {(await book.head(each.store)).home for each in CATALOGUE.stores()} == {"eu-west-1"}


async def test_a_catalogue_that_is_there_already_is_refused_as_a_whole(book: Book) -> None:
    await load_catalogue(book.db, CATALOGUE, MARCH)
    with pytest.raises(InvalidInput, match="it is there already, or twice in this load; nothing was loaded"):
        await load_catalogue(book.db, MadeCatalogue(store_count=8, product_count=9), MARCH)
    assert (await book.prices.of_product("PROD0000", page=PageArgs(last=1))).nodes[0].store == "10006"
