"""The service on a store in memory, with a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from server.served import Api, serving
from tickler import ManualClock, Tickler, connect

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect("memory://", clock=clock) as tickler:
        yield tickler


@pytest.fixture
async def api(t: Tickler) -> AsyncIterator[Api]:
    async with serving(t) as served:
        yield served
