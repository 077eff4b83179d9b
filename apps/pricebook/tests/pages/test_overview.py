"""The overview: what changes next in all stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from price_site import PriceSite
from pricebook.timelines import coming

FIFTH = datetime(2026, 3, 5, tzinfo=UTC)


async def test_ends_of_prices_for_a_time_are_what_changes_next(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    await site.an_approved_change({"TEA": 80}, title="Spring sale", at=FIFTH, until_at=FIFTH + timedelta(days=2))
    page = await ada.get("/")
    assert "Spring sale Store 1" in page.row("Thu 5 Mar")
    assert "Prices for a time end: Spring sale Store 1" in page.row("Sat 7 Mar")
    await site.until(FIFTH + timedelta(hours=1))
    page = await ada.get("/")
    assert "Next change none decided" not in page.text
    assert "Prices for a time end: Spring sale Store 1" in page.row("Sat 7 Mar")
    await site.until(FIFTH + timedelta(days=3))
    assert "Next change none decided" in (await ada.get("/")).text


async def test_a_list_that_is_cut_off_before_the_stores_of_a_person_does_not_say_that_nothing_changes(
    site: PriceSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coming, "MAX_ENTRIES", 1)
    rea = await site.a_reader("rea", "read", stores=("2",))
    for store in ("1", "2"):
        await site.book.a_store(store, {"TEA": 100})
        await site.book.change({"TEA": 120}, store=store, at=FIFTH)
    page = await rea.get("/")
    assert page.status == 200
    assert "Next change later" in page.text
    assert "Nothing is going to change" not in page.text
