"""Names that are written to become a part of the page stay text."""

from __future__ import annotations

from datetime import date
from html.parser import HTMLParser
from typing import Any

from price_site import PriceSite

HOSTILE = "<script>alert(1)</script>\" onmouseover='alert(1)' <img src=x onerror=alert(1)>"
PRODUCT = "<b onclick=alert(1)>TEA\"'&"
STORE = "1<i>&\"'"


class _Reader(HTMLParser):
    """Notes what a stranger's text must never become."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        if tag in ("img", "b onclick", "i", "iframe", "style") or (tag == "script" and "src" not in dict(attrs)):
            self.found.append(tag)
        self.found += [f"{name}={value}" for name, value in attrs if name.startswith("on") or name == "style"]
        self.found += [
            str(value) for name, value in attrs if name in ("href", "action") and not str(value).startswith(("/", "#"))
        ]


async def test_hostile_names_stay_text_everywhere(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store(STORE, {PRODUCT: 100})
    draft = await ada.post("/new-change-set", {"title": HOSTILE, "reason": HOSTILE, "begins": "now", "ends": "never"})
    approved = await site.an_approved_change({PRODUCT: 20}, title=HOSTILE, stores=(STORE,), day=date(2026, 3, 6))
    submitted = await site.a_submitted_change({PRODUCT: 30}, title=HOSTILE, stores=(STORE,), day=date(2026, 3, 6))
    text = f"store,product,amount,currency\n{HOSTILE},x,1,EUR\n"
    upload = await ada.post("/uploads/pasted", {"title": HOSTILE, "text": text, "format": "csv", "begins": "now"})
    await site.work()
    store = (await ada.get("/stores")).source.partition('href="/stores/')[2].partition('"')[0]
    product = (await ada.get("/products")).source.partition('href="/products/')[2].partition('"')[0]
    paths = [
        "/", "/stores", f"/stores/{store}", f"/stores/{store}?show={product}&product={product}&channel={product}", "/products",
        f"/products/{product}?channel={product}", "/change-sets", draft.location, f"/change-sets/{approved.id}",
        f"/change-sets/{submitted.id}", "/uploads", upload.location, "/audit", f"/audit?store={store}",
        f"/audit?product={product}", f"/audit?actor={product}", f"/audit/{store}/2",
        f"/stores?q={product}", f"/products?q={product}", f"/nothing/{product}",
    ]  # fmt: skip
    for path in paths:
        page = await ada.get(path)
        assert page.status in (200, 404), path
        reader = _Reader()
        reader.feed(page.source)
        assert reader.found == [], path
    assert HOSTILE.replace("  ", " ") in (await ada.get(f"/change-sets/{approved.id}")).text
