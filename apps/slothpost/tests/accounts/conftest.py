"""A desk on SQLite, and one on each store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

import tickler
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock

from .desk import Desk, open_desk


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key that tokens are encrypted with."""
    key = tickler.new_key()
    monkeypatch.setenv("TICKLER_KEY", key)
    return key


@pytest.fixture
async def desk(sqlite_url: str, key: str, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> AsyncIterator[Desk]:
    async with open_desk(sqlite_url, clock, x, threads) as desk:
        yield desk


@pytest.fixture
async def desk_anywhere(any_url: str, key: str, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> AsyncIterator[Desk]:
    table = any_url.removeprefix("dynamodb://").partition("?")[0] + "_posts" if any_url.startswith("dynamodb") else "slothpost"
    async with open_desk(any_url, clock, x, threads, table) as desk:
        yield desk
        with suppress(AttributeError):  # DynamoDB Local gets slower with each table
            await desk.t.database.call("DeleteTable", {"TableName": table})  # type: ignore[attr-defined]  # DynamoDB has it
