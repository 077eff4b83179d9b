"""A pricebook that browsers reach, and visitors of its pages."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

import msgspec
from browser.visitor import TELEPHONE, Visitor

from price_site import PriceSite

if TYPE_CHECKING:
    from playwright.async_api import ViewportSize

# Returns what a finger would miss.
_SMALL = """() => [...document.querySelectorAll(
  "button, .button, nav a, summary, select, .choices a, input:not([type=hidden], [type=checkbox])"
)].filter((element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0)
  .map((element) => [element.getBoundingClientRect(), element.outerHTML.slice(0, 100)])
  .filter(([box]) => box.height < 43.5 || box.width < 24).map(([box, what]) => `${box.width} by ${box.height}: ${what}`)"""


class Served(msgspec.Struct, frozen=True):
    """A pricebook that browsers reach."""

    site: PriceSite
    url: str

    async def sign_in_path(self, person: str) -> str:
        return f"/sign-in/{await self.site.app.web.links.create(person)}"


class Visit(Protocol):
    def __call__(self, person: str = "ada", *, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Awaitable[Visitor]: ...


async def fits_fingers(visitor: Visitor) -> None:
    """Check that every control is large enough for a finger."""
    small = await visitor.page.evaluate(_SMALL)
    assert small == [], f"{visitor.path}: {small}"
