"""Base of all kits: the store under test, and hooks beyond its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import pytest_asyncio

from tickler.clock import ManualClock
from tickler.database.unit_of_work import UnitOfWork
from tickler.model.schedule import StoredSchedule
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.claimers import Claimers

# A Wednesday at noon, far from the present: a store that reads the wall clock fails.
NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


Begin = Callable[[], AbstractAsyncContextManager[object]]


async def stored(schedules: Schedules, key: str = "digest", *, owner: str = "u1") -> StoredSchedule:
    found = await schedules.get(owner, key)
    assert found is not None, f"{owner}/{key} is gone"
    return found


class StoreContract:
    """Base of the kits. Override the fixture `store` with an open and empty store; the rest is optional.

    `url`: URL at which other processes open the same store; without it, tests with several processes are skipped.
    `corrupt`: changes a stored row directly; without it, tests of bad rows are skipped.
    `lose_schedule`: removes a schedule and leaves its index row; without it, tests of orphans are skipped.
    `transaction`: yields a unit of work on the store's database, such as a transaction of a table; without it, tests of what
    joins one are skipped. `own_transaction`: the same with a connection of the caller's.
    `many`: number of rows for which several processes compete; lower it for a slow engine.
    """

    many = 3000

    pytestmark = pytest.mark.asyncio

    @pytest_asyncio.fixture
    async def store(self) -> Store:
        raise pytest.UsageError("override the fixture `store` with one that yields an open and empty store")

    @pytest.fixture
    def url(self) -> str | None:
        return None

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock(NOW_MS)

    @pytest.fixture
    def schedules(self, store: Store, clock: ManualClock) -> Schedules:
        return Schedules(store.schedules, clock)

    async def corrupt(
        self,
        store: Store,
        owner: str,
        key: str,
        *,
        when_text: str | None = None,
        tz: str | None = None,
        format: int | None = None,
        body: str | None = None,
    ) -> None:
        """Change the stored fields of an index row, in the index or set aside, and of its schedule if it has one.

        `body` holds the other stored fields of a schedule, usually as JSON.
        """
        pytest.skip("this kit does not override `corrupt`")

    async def lose_schedule(self, store: Store, owner: str, key: str) -> None:
        """Remove a schedule and leave its index row, in stores that keep both."""
        pytest.skip("this kit does not override `lose_schedule`")

    @asynccontextmanager
    async def transaction(self, store: Store) -> AsyncIterator[UnitOfWork]:
        """Yield a unit of work that is committed at the end of the block, unless the block raises."""
        pytest.skip("this kit does not override `transaction`")
        yield

    @asynccontextmanager
    async def own_transaction(self, store: Store) -> AsyncIterator[object]:
        """Yield a connection with an open transaction, which is committed at the end of the block, unless the block raises."""
        pytest.skip("this kit does not override `own_transaction`")
        yield

    @pytest.fixture
    def unit(self, store: Store) -> Begin:
        """What begins a unit of work."""
        return lambda: self.transaction(store)

    @pytest.fixture
    def own(self, store: Store) -> Begin:
        """What begins a transaction of the caller's own, where writes can join one."""
        if not store.capabilities.joins_transactions:
            pytest.skip("this store joins no transaction of a connection")
        return lambda: self.own_transaction(store)

    @pytest.fixture(params=["unit", "own"])
    def begin(self, request: pytest.FixtureRequest) -> Begin:
        """What begins a transaction, of either kind."""
        began: Begin = request.getfixturevalue(request.param)
        return began

    @pytest_asyncio.fixture
    async def claimers(self, store: Store, url: str | None) -> AsyncIterator[Claimers]:
        """Processes that claim from the store under test."""
        if url is None:
            pytest.skip("this kit does not override `url`")
        async with Claimers(url) as claimers:
            yield claimers

    @pytest.fixture
    def kill(self, claimers: Claimers) -> Claimers:
        """The same processes, for tests that kill them."""
        return claimers
