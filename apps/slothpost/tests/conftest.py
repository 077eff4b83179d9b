"""An installation of slothpost on each store, with local networks and a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from installation import Installation, network_settings, open_installation
from slothpost.settings import Settings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock, new_key

KEY = new_key()  # what tokens are encrypted with
MONDAY = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKLER_KEY", KEY)


@pytest.fixture
def clock() -> ManualClock:
    """A Monday morning, four weeks before clocks change in Europe."""
    return ManualClock(MONDAY)


@pytest.fixture
def now(clock: ManualClock) -> Callable[[], datetime]:
    return lambda: datetime.fromtimestamp(clock.now_ms() / 1000, UTC)


@pytest.fixture
async def x(now: Callable[[], datetime]) -> AsyncIterator[XStandIn]:
    async with XStandIn(now=now) as server:
        yield server


@pytest.fixture
async def threads(now: Callable[[], datetime]) -> AsyncIterator[ThreadsStandIn]:
    async with ThreadsStandIn(now=now) as server:
        yield server


@pytest.fixture
async def here(clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> AsyncIterator[Installation]:
    """An installation in memory, for what does not depend on the store."""
    async with open_installation(Settings(store="memory://", **network_settings(x, threads)), clock, x, threads) as installation:
        yield installation


@pytest.fixture
async def anywhere(any_url: str, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> AsyncIterator[Installation]:
    """An installation on each store in turn."""
    table = any_url.removeprefix("dynamodb://").partition("?")[0] + "_posts" if any_url.startswith("dynamodb") else "slothpost"
    settings = Settings(store=any_url, table=table, **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as installation:
        yield installation
        database: Any = installation.app.t.database
        if any_url.startswith("dynamodb"):  # DynamoDB Local gets slower with each table
            await database.call("DeleteTable", {"TableName": table})
