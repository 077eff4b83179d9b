"""The pages of stores and products: what people read there, and what it costs to show it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from price_site import PriceSite
from pricebook.pages import store_view, stores

FIFTH = datetime(2026, 3, 5, tzinfo=UTC)


async def test_stores_are_listed_with_the_time_there_and_when_prices_change_next(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100}, tz="Asia/Tokyo")
    await site.book.a_store("2", {"TEA": 100})
    await site.book.change({"TEA": 120}, store="1", at=FIFTH)
    page = await ada.get("/stores")
    assert "2 stores" in page.text
    assert page.row("Asia/Tokyo").startswith("1 Asia/Tokyo 09:00 ALL Thu 5 Mar, 01:00 · Thu 5 Mar, 09:00 there 1")
    assert page.row("UTC") == "2 UTC 00:00 ALL"


async def test_stores_are_found_by_the_beginning_of_their_ids(site: PriceSite) -> None:
    ada, rea = await site.a_reader(), await site.a_reader("rea", "read", stores=("20", "3"))
    for store in ("10", "20", "21", "30"):
        await site.book.a_store(store)
    assert "2 stores with 2 at the beginning" in (await ada.get("/stores?q=2")).text
    assert "1 store with 2 at the beginning" in (await rea.get("/stores?q=2")).text
    assert "No store that you may see begins with 1" in (await rea.get("/stores?q=1")).text


async def test_a_store_shows_its_prices_and_what_becomes_of_them(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 249, "MILK": 99}, tz="America/New_York")
    await site.book.change({"TEA": 299}, at=FIFTH)
    page = await ada.get("/stores/1")
    assert page.row("TEA", "all channels").startswith("TEA €2.49 ")
    assert "raised to €2.99 +20% Wed 4 Mar, 19:00" in page.row("TEA", "all channels")  # on the clock of the store
    assert "raised to" not in page.row("MILK", "all channels")
    assert "Upcoming changes" in page.text
    assert page.source.count('<svg class="chart') == 2  # one for desks, one for phones


async def test_times_are_on_the_clock_of_the_store_or_of_the_reader(site: PriceSite) -> None:
    ada = await site.a_reader(zone="Europe/Berlin")
    await site.book.a_store("1", {"TEA": 100}, tz="America/New_York")
    await site.book.change({"TEA": 120}, at=date(2026, 3, 6))
    assert "Fri 6 Mar, 00:00" in (await ada.get("/stores/1")).text
    mine = await ada.get("/stores/1?clock=mine")
    assert "Fri 6 Mar, 06:00" in mine.text
    assert "midnight in Europe/Berlin" in mine.text


async def test_a_day_on_which_clocks_change_is_noted(site: PriceSite) -> None:
    ada = await site.a_reader()
    site.clock.set(int(datetime(2026, 3, 27, tzinfo=UTC).timestamp() * 1000))
    await site.book.a_store("1", {"TEA": 100}, tz="Europe/Berlin")
    await site.book.change({"TEA": 120}, at=date(2026, 3, 30))
    page = await ada.get("/stores/1?range=7d")
    assert "Clocks change on Sun 29 Mar in Europe/Berlin: that day has 23 hours." in page.text
    assert "that day has" not in (await ada.get("/stores/1?range=1d")).text


async def test_a_channel_shows_its_own_prices_first(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100, "MILK": 90})
    await site.book.change({"TEA": 95}, channel="WEB")
    site.book.pass_()
    page = await ada.get("/stores/1?channel=WEB")
    assert page.row("TEA").startswith("TEA €0.95")
    assert "WEB" in page.row("TEA")
    assert page.row("MILK").startswith("MILK €0.90")
    assert "all channels" in page.row("MILK")


async def test_prices_are_found_by_the_beginning_of_a_product_and_in_pages(
    site: PriceSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_view, "PRICES", 2)
    ada = await site.a_reader()
    await site.book.a_store("1", {f"TEA{n}": 100 + n for n in range(5)} | {"MILK": 90})
    first = await ada.get("/stores/1?product=TEA")
    assert "TEA0" in first.text
    assert "TEA2" not in first.text
    assert "MILK" not in first.text
    second = await ada.get(_link(first.source, "next"))
    assert "TEA2" in second.text
    assert "TEA3" in second.text
    back = await ada.get(_link(second.source, "prev"))
    assert "TEA0" in back.text
    assert "TEA2" not in back.text


async def test_chosen_products_are_drawn_and_names_that_are_not_there_are_no_error(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100, "MILK": 90})
    page = await ada.get("/stores/1?show=MILK&show=NOTHING&range=1d")
    assert 'class="lane-name"' in page.source
    assert ">MILK</text>" in page.source
    assert ">TEA</text>" not in page.source
    assert "no price now" in page.text


async def test_a_price_of_a_combination_is_shown_with_it(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1")
    await site.book.change({"COMBO1/DEFAULT": 150}, type="Swap")
    site.book.pass_()
    page = await ada.get("/stores/1?type=Swap&show=COMBO1+%2F+DEFAULT")
    assert page.row("COMBO1 / DEFAULT").startswith("COMBO1 / DEFAULT €1.50")
    assert ">COMBO1 / DEFAULT</text>" in page.source


async def test_prices_that_end_by_themselves_are_an_upcoming_change(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    await site.book.change({"TEA": 80}, at=FIFTH, until=FIFTH + timedelta(days=2))
    page = await ada.get("/stores/1")
    assert "Prices for a time end" in page.text
    assert "raised to €1.00 +25%" in page.text


async def test_prices_for_a_time_that_are_settled_are_drawn_and_end_as_an_upcoming_change(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100, "MILK": 90})
    await site.book.change({"TEA": 80}, at=FIFTH, until=FIFTH + timedelta(days=2))
    for settle in (False, True):
        site.book.pass_(FIFTH - site.book.now())
        if settle:
            await site.book.switch.settle("1")
        page = await ada.get("/stores/1")
        assert "Prices for a time end 1 price" in page.text
        assert "raised to €1.00 +25%" in page.text
        assert ">TEA</text>" in page.source
        assert ">MILK</text>" not in page.source
    site.book.pass_(timedelta(days=2))
    assert "Nothing is going to change in this store" in (await ada.get("/stores/1")).text


async def test_a_channel_draws_what_ends_in_all_channels(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    await site.book.change({"MILK": 70}, channel="WEB")
    await site.book.change({"TEA": 80}, until=FIFTH)
    site.book.pass_()
    await site.book.switch.settle("1")
    page = await ada.get("/stores/1?channel=WEB")
    assert page.source.count('<svg class="chart') == 2
    assert ">TEA</text>" in page.source


async def test_of_many_prices_that_end_the_first_are_shown_with_as_many_reads_as_one(
    site: PriceSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_view, "MAX_UPCOMING", 2)
    ada = await site.a_reader()
    products = {f"TEA{n:02}": 100 + n for n in range(20)}
    for store, number in (("1", 1), ("2", 20)):
        await site.book.a_store(store, products)
        for n in reversed(range(number)):
            await site.book.change({f"TEA{n:02}": 80}, store=store, until=FIFTH + timedelta(days=n))
        site.book.pass_()
        await site.book.switch.settle(store)
    await ada.get("/stores/1")  # reads the secret of cursors, once
    reads = _counted(site, monkeypatch)
    assert await reads(lambda: ada.get("/stores/1")) == await reads(lambda: ada.get("/stores/2"))
    page = await ada.get("/stores/2")
    assert "These are the first 2 prices that change." in page.text
    assert [page.source.count(f">TEA{n:02}</text>") for n in range(3)] == [2, 2, 0]


async def test_a_product_is_shown_across_stores_with_how_many_have_which_price(site: PriceSite) -> None:
    ada = await site.a_reader()
    for store, minor in (("1", 100), ("2", 100), ("3", 110)):
        await site.book.a_store(store, {"TEA": minor})
    await site.book.change({"TEA": 120}, store="3", at=FIFTH)
    page = await ada.get("/products/TEA")
    assert "€1.00 2 stores" in page.text
    assert "€1.10 1 store" in page.text
    assert "raised to €1.20 +9.1%" in page.row("3", "all channels")
    assert "No store that you may see has a price" in (await ada.get("/products/NOTHING")).text
    assert "TEA €1.00" in (await ada.get("/products?q=T")).text


async def test_what_a_reader_may_not_see_does_not_exist(site: PriceSite) -> None:
    await site.book.a_store("10", {"TEA": 100})
    await site.book.a_store("20", {"TEA": 110})
    rea = await site.a_reader("rea", "read", stores=("1",))
    assert (await rea.get("/stores/20")).status == (await rea.get("/stores/99")).status == 404
    assert "20" not in [word for word in (await rea.get("/products/TEA")).text.split() if word == "20"]
    assert "1 store" in (await rea.get("/stores")).text


async def test_pages_of_a_store_take_as_many_reads_however_much_changes_there(
    site: PriceSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await site.a_reader()
    products = {f"TEA{n:03}": 100 + n for n in range(60)}
    await site.book.a_store("1", products)
    await site.book.a_store("2", products)
    await site.book.change({"TEA000": 120}, store="1", at=FIFTH)
    for day in range(5, 15):
        prices = {product: minor + day for product, minor in products.items()}
        await site.book.change(prices, store="2", at=datetime(2026, 3, day, tzinfo=UTC))
    await ada.get("/stores/1")  # reads the secret of cursors, once
    reads = _counted(site, monkeypatch)
    few = await reads(lambda: ada.get("/stores/1"))
    many = await reads(lambda: ada.get("/stores/2"))
    assert few == many
    assert few <= 16


async def test_lists_of_stores_come_in_pages(site: PriceSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "LISTED", 2)
    ada = await site.a_reader()
    for store in "123":
        await site.book.a_store(store)
    first = await ada.get("/stores")
    assert "/stores/3" not in first.source
    assert "/stores/3" in (await ada.get(_link(first.source, "next"))).source


def _counted(site: PriceSite, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Return a function that counts the reads of the table while a page is made."""
    counts = {"reads": 0}
    for name in ("get", "get_many", "query", "count"):
        whole = getattr(type(site.opened.db), name)

        def counting(self: object, *args: Any, _whole: Any = whole, **options: Any) -> Any:
            counts["reads"] += 1
            return _whole(self, *args, **options)

        monkeypatch.setattr(type(site.opened.db), name, counting)

    async def reads(make: Callable[[], Any]) -> int:
        counts["reads"] = 0
        assert (await make()).status == 200
        return counts["reads"]

    return reads


def _link(source: str, rel: str) -> str:
    found = re.search(rf'rel="{rel}" href="([^"]+)"', source)
    assert found is not None, rel
    return html.unescape(found[1])
