"""Every page, on a phone and on a desk, light and dark: readable, reachable by keyboard, nothing cut off.

Screenshots go to the folder that TICKLER_SCREENSHOTS names.
"""

from __future__ import annotations

import os
from pathlib import Path

from browser.visitor import DESK, TELEPHONE
from browser.visitors import fits_fingers
from browsing.conftest import Served, Visit

from slothpost.model import Slot

VARIABLE = "TICKLER_SCREENSHOTS"


async def test_every_page_is_readable_everywhere(served: Served, visit: Visit, tmp_path: Path) -> None:
    here, app = served.installation, served.installation.app
    product = await here.a_channel({"tue": "09:00", "thu": ["09:00", "17:30"]}, description="Tea, on time.")
    draft = await here.a_draft(product, "Tea timers survive. See README.md")
    approved = await here.a_draft(product, "Kettles whistle in tune.")
    await app.review.approve("ada", approved.id, by="Ada")
    await here.an_activity(product, x_post=draft.id)
    await here.an_activity(product, "Bump whistle", kind="chore", worth=0)
    await app.db.create(Slot(product=product.id, channel="threads", at=here.now(), nothing="only chores since the last post"))
    await app.connections.setup("ada", product.id, "github")
    pages = {
        "review": "/",
        "post": f"/posts/{draft.id}",
        "week": "/week",
        "activity": "/activity",
        "products": "/products",
        "product": f"/products/{product.id}",
        "product-form": f"/products/{product.id}/edit",
        "connect": f"/products/{product.id}/connect/github",
        "settings": "/settings",
        "write": "/write",
        "not-found": "/posts/nothing",
    }
    ada = await visit()
    ada.refusals.add(404)
    folder = Path(os.environ[VARIABLE]) if VARIABLE in os.environ else None
    for name, path in pages.items():
        await ada.page.set_viewport_size(TELEPHONE)
        await ada.open(path)
        await fits_fingers(ada)
        for size in (TELEPHONE, DESK):
            await ada.page.set_viewport_size(size)
            for scheme in ("light", "dark"):
                await ada.page.emulate_media(color_scheme=scheme)
                await ada.look()
                if folder is not None:
                    await ada.page.screenshot(path=folder / f"{name}-{size['width']}-{scheme}.png", full_page=True)
