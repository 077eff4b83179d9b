"""Screenshots of pages: desktop and phone, light and dark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from .visitor import DESK, TELEPHONE, Visitor

VARIABLE = "TICKLER_SCREENSHOTS"  # a folder; the default is the folder of the test
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


async def picture(visitor: Visitor, name: str, folder: Path) -> None:
    """Save the open page as NAME-WIDTH-SCHEME.png, and audit each of the four."""
    folder = Path(os.environ.get(VARIABLE) or folder)
    folder.mkdir(parents=True, exist_ok=True)
    await visitor.page.evaluate("document.activeElement.blur()")
    for size in (TELEPHONE, DESK):
        await visitor.page.set_viewport_size(size)
        for scheme in SCHEMES:
            await visitor.page.emulate_media(color_scheme=scheme)
            await visitor.look()
            await visitor.page.screenshot(path=folder / f"{name}-{size['width']}-{scheme}.png", full_page=True)
    await visitor.page.emulate_media(color_scheme="light")
