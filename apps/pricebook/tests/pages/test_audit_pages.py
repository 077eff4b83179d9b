"""The audit and the overview, as people read them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from price_site import PriceSite
from pricebook.pages import home

FIFTH = datetime(2026, 3, 5, tzinfo=UTC)


async def test_the_audit_is_read_by_store_change_set_person_product_and_day(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    change = await site.an_approved_change({"TEA": 120}, day=date(2026, 3, 6))
    of_store = await ada.get("/audit?store=1")
    assert "counts from Fri 6 Mar, 01:00" in of_store.row("april", "sealed")
    of_change = await ada.get(f"/audit?change_set={change.id}")
    assert "draft → submitted" in of_change.row("edi", "submitted it")
    assert "approving → approved" in of_change.row("april", "approved in all stores")
    assert "submitted it" in (await ada.get("/audit?actor=edi")).text
    assert "april" not in (await ada.get("/audit?actor=edi")).row("submitted it")
    of_product = await ada.get("/audit?product=TEA")
    assert "€1.00" in of_product.row("Spring sale")
    assert "raised to €1.20 +20%" in of_product.row("Spring sale")
    assert "submitted it" in (await ada.get("/audit?day=2026-03-01")).text
    assert "There are no entries." in (await ada.get("/audit?day=2026-02-01")).text
    assert (await ada.get("/audit?day=yesterday")).status == 422


async def test_the_prices_of_an_edition_are_one_link_away(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    await site.an_approved_change({"TEA": 120}, day=date(2026, 3, 6))
    source = (await ada.get("/audit?store=1")).source
    number = source.partition('href="/audit/1/')[2].partition('"')[0]
    page = await ada.get(f"/audit/1/{number}")
    assert "TEA ALL €1.00" in page.row("TEA")
    assert "€1.20" in page.row("TEA")
    assert "Spring sale" in page.text


async def test_the_overview_says_what_changes_next_what_waits_and_what_happened(site: PriceSite) -> None:
    ada = await site.a_reader()
    for store in ("1", "2", "3"):
        await site.book.a_store(store, {"TEA": 100, "MILK": 100}, tz="America/New_York")
    await site.an_approved_change({"TEA": 120}, title="A sale", stores=("1", "2", "3"), day=date(2026, 3, 6))
    await site.a_submitted_change({"MILK": 120}, title="Dearer milk", day=date(2026, 3, 7))
    page = await ada.get("/")
    assert (
        page.row("A sale", "and 2 more stores")
        == "Fri 6 Mar, 06:00 A sale 1 and 2 more stores Fri 6 Mar, 00:00 in America/New_York"
    )
    assert "Waiting for approval 1" in page.text
    assert "Dearer milk 1 price in 1 store · Sat 7 Mar midnight in each store edi, Today, 01:00" in page.text
    assert "april sealed in 3 stores: A sale" in page.text
    assert "Past and unsettled 0" in page.text


async def test_the_overview_counts_what_is_past_and_unsettled(site: PriceSite, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    await site.an_approved_change({"TEA": 120}, at=FIFTH)
    site.book.pass_(FIFTH + timedelta(hours=1) - site.book.now())  # and no worker works
    assert "Past and unsettled 1 Stores" in (await ada.get("/")).text
    monkeypatch.setattr(home, "MAX_OVERDUE", 1)  # it counts no further
    assert "Past and unsettled 1+ Stores" in (await ada.get("/")).text
    await site.work()
    assert "Past and unsettled 0" in (await ada.get("/")).text
