"""A pricebook in memory, with the clock of its tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from price_site import PriceSite, open_site
from tickler import ManualClock


@pytest.fixture
async def site(clock: ManualClock) -> AsyncIterator[PriceSite]:
    async with open_site(clock) as opened:
        yield opened
