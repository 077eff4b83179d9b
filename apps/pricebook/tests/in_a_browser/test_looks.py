"""Every page, on a phone and on a desk, light and dark: readable, reachable by keyboard, nothing cut off.

In the ordinary run phones are light and desks are dark; `make soak` looks at all four. Screenshots go to the folder that
TICKLER_SCREENSHOTS names.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path

from browser.visitor import DESK, TELEPHONE
from browser.visitors import fits_fingers

from price_browsing import Served, Visit
from price_site import EDI
from pricebook.model import BulkOptions

VARIABLE = "TICKLER_SCREENSHOTS"
NARROWEST = 24  # pixels, of links that stand side by side


async def test_every_page_is_readable_everywhere(served: Served, visit: Visit, soak: bool) -> None:
    pages = await _furnished(served)
    ada = await visit()
    ada.refusals.add(404)
    folder = Path(os.environ[VARIABLE]) if VARIABLE in os.environ else None
    for name, path in pages.items():
        await ada.page.set_viewport_size(TELEPHONE)
        await ada.open(path)
        await fits_fingers(ada, NARROWEST)
        for size in (TELEPHONE, DESK):
            await ada.page.set_viewport_size(size)
            for scheme in ("light", "dark") if soak or folder else ("light" if size is TELEPHONE else "dark",):
                await ada.page.emulate_media(color_scheme=scheme)
                await ada.look()
                if folder is not None:
                    await ada.page.screenshot(path=folder / f"{name}-{size['width']}-{scheme}.png", full_page=True)


async def test_the_keyboard_reaches_everything_in_order(served: Served, visit: Visit) -> None:
    pages = await _furnished(served)
    ada = await visit(size=DESK)
    for name in ("home", "store", "submitted", "draft", "upload"):
        await ada.open(pages[name])
        await ada.tab_through()


async def _furnished(served: Served) -> dict[str, str]:
    """Let there be something of everything. Returns the paths of all pages."""
    site = served.site
    for store, zone in (("10", "Europe/Berlin"), ("11", "America/New_York")):
        await site.book.a_store(store, {"TEA": 249, "MILK": 99, "A-PRODUCT-WITH-A-RATHER-LONG-NAME": 1249}, tz=zone)
    await site.book.change({"TEA": 239}, store="10", channel="WEB")
    await site.an_approved_change(
        {"TEA": 299, "MILK": None}, stores=("10", "11"), day=date(2026, 3, 29), until_at=site.book.now() + timedelta(days=4)
    )
    draft = await site.a_change({"TEA": 199}, stores=("10",), title="A draft with a title that goes on for quite a while")
    submitted = await site.a_submitted_change({"TEA": 99, "NEW": 100}, stores=("10", "11"), title="Clearance")
    await site.opened.change_sets.cancel(EDI, (await site.a_change({"TEA": 1}, title="Never mind")).id)

    async def lines() -> AsyncIterator[bytes]:
        yield b"store,product,amount,currency\n10,TEA,2.99,EUR\n10,TEA,3.99,EUR\n99,TEA,1,EUR\n10,MILK,1.05,EUR\n"

    caller = (await site.opened.people.everyone())[0].caller
    upload = await site.opened.bulk.start(caller, BulkOptions(format="csv", title="march"), lines())
    await site.work()
    approved = next(each for each in (await site.opened.coming.next(caller)).changes).change_set
    return {
        "home": "/", "stores": "/stores", "store": "/stores/10", "web": "/stores/10?channel=WEB&range=30d&show=MILK",
        "products": "/products", "product": "/products/TEA", "changes": "/change-sets", "over": "/change-sets?state=cancelled",
        "new": "/new-change-set", "draft": f"/change-sets/{draft.id}?report=1", "submitted": f"/change-sets/{submitted.id}",
        "approved": f"/change-sets/{approved}", "uploads": "/uploads", "upload": f"/uploads/{upload.id}", "audit": "/audit",
        "audit-product": "/audit?product=TEA", "edition": "/audit/10/3", "not-found": "/stores/nothing",
    }  # fmt: skip
