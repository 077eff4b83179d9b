"""An application's parts on memory and SQLite, with a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tickler import ManualClock, Tickler, connect
from tickler.web import Web

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest) -> str:
    return "memory://" if request.param == "memory" else str(request.getfixturevalue("sqlite_url"))


@pytest.fixture
async def t(url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect(url, clock=clock) as tickler:
        yield tickler


@pytest.fixture
async def anywhere(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    """On each of the stores."""
    async with connect(any_url, create=True, clock=clock) as tickler:
        yield tickler


@pytest.fixture
def users() -> dict[str, str]:
    """The application's users by id; without one, the callback returns None."""
    return {"u1": "Ada", "u2": "Bob"}


@pytest.fixture
def web(t: Tickler, users: dict[str, str]) -> Web[str]:
    return make_web(t, "notes", users)


def make_web(t: Tickler, name: str, users: dict[str, str]) -> Web[str]:
    async def find(subject: str) -> str | None:
        return users.get(subject)

    return Web(t, name, user=find)
