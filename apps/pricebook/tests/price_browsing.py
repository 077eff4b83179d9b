"""A pricebook that browsers reach, and visitors of its pages."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

import msgspec
from browser.visitor import TELEPHONE, Visitor

from price_site import PriceSite

if TYPE_CHECKING:
    from playwright.async_api import ViewportSize


class Served(msgspec.Struct, frozen=True):
    """A pricebook that browsers reach."""

    site: PriceSite
    url: str

    async def sign_in_path(self, person: str) -> str:
        return f"/sign-in/{await self.site.app.web.links.create(person)}"


class Visit(Protocol):
    def __call__(self, person: str = "ada", *, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Awaitable[Visitor]: ...
