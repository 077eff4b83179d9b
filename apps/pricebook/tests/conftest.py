"""A price book on each store, with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from book import MARCH, Book, open_book
from tickler import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    """The first of March, four weeks before clocks change in Europe."""
    return ManualClock(MARCH)


@pytest.fixture
async def book(clock: ManualClock) -> AsyncIterator[Book]:
    """A price book in memory, for what does not depend on the store."""
    async with open_book("memory://", clock) as opened:
        yield opened


@pytest.fixture
async def book_anywhere(any_url: str, clock: ManualClock) -> AsyncIterator[Book]:
    """A price book on each store in turn."""
    async with open_book(any_url, clock) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def stored_url(request: pytest.FixtureRequest, soak: bool) -> str:
    """Each store that several processes can share; in the ordinary run SQLite alone."""
    if request.param != "sqlite" and not soak:
        pytest.skip(f"the same on {request.param}: make soak")
    return str(request.getfixturevalue(f"{request.param}_url"))
