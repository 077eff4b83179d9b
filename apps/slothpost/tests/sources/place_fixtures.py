"""The fixtures of a place: the sources on each store, with local stand-ins and a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from sources.place import Place, open_place

from tickler import ManualClock, new_key

KEY = new_key()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What secrets are encrypted with."""
    monkeypatch.setenv("TICKLER_KEY", KEY)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2027, 3, 1, 8, 0, tzinfo=UTC))


@pytest.fixture
async def place(clock: ManualClock) -> AsyncIterator[Place]:
    """In memory, for what does not depend on the store."""
    async with open_place("memory://", clock) as place:
        yield place


@pytest.fixture
async def anywhere(any_url: str, clock: ManualClock) -> AsyncIterator[Place]:
    """On each store in turn."""
    async with open_place(any_url, clock) as place:
        yield place
