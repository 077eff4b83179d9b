"""A price book on each store, with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from book import MARCH, Book, open_book
from change_desk import ChangeDesk
from pricebook.app import Pricebook, Settings, open_pricebook
from tickler import ManualClock, new_key

KEY = new_key()  # what secrets of receivers are encrypted with


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKLER_KEY", KEY)


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


@pytest.fixture
async def opened(clock: ManualClock) -> AsyncIterator[Pricebook]:
    """A whole pricebook in memory, as the composition root makes it."""
    async with open_pricebook(Settings(store="memory://"), clock=clock) as found:
        yield found


@pytest.fixture
async def opened_anywhere(any_url: str, clock: ManualClock) -> AsyncIterator[Pricebook]:
    """A whole pricebook on each store in turn."""
    on_dynamodb = any_url.startswith("dynamodb")
    table = any_url.removeprefix("dynamodb://").partition("?")[0] + "_prices" if on_dynamodb else "pricebook"
    async with open_pricebook(Settings(store=any_url, table=table), clock=clock) as found:
        yield found
        database: Any = found.t.database
        if on_dynamodb:  # DynamoDB Local gets slower with each table
            await database.call("DeleteTable", {"TableName": table})


@pytest.fixture
def desk(opened: Pricebook, clock: ManualClock) -> ChangeDesk:
    """A desk for change sets, in memory."""
    return ChangeDesk(opened, clock)


@pytest.fixture
def desk_anywhere(opened_anywhere: Pricebook, clock: ManualClock) -> ChangeDesk:
    """A desk for change sets on each store in turn."""
    return ChangeDesk(opened_anywhere, clock)


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def stored_url(request: pytest.FixtureRequest, soak: bool) -> str:
    """Each store that several processes can share; in the ordinary run SQLite alone."""
    if request.param != "sqlite" and not soak:
        pytest.skip(f"the same on {request.param}: make soak")
    return str(request.getfixturevalue(f"{request.param}_url"))
