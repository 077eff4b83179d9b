"""What the kits share: the store under test, and what they need of it beyond its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tickler.stores.store import Store
from tickler.testing.claimers import Claimers

# A Wednesday at noon, far from any clock this runs on: a store that looks at one gives itself away.
NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class StoreContract:
    """The base of the kits. Give `store`, an open and empty one; the rest is optional.

    `url`: where other processes open the same store; without it, tests with several processes are skipped.
    `corrupt`: writes into a stored row behind the store's back; without it, tests of bad rows are skipped.
    `lose_schedule`: removes a schedule and leaves its row; without it, tests of rows without a schedule are skipped.
    `many`: how many rows several processes fight over; fewer, for an engine that is slow.
    """

    many = 3000

    pytestmark = pytest.mark.asyncio

    @pytest_asyncio.fixture
    async def store(self) -> Store:
        raise pytest.UsageError("give your kit a `store` fixture that yields an open and empty store")

    @pytest.fixture
    def url(self) -> str | None:
        return None

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
        """Change what is stored for an index row, whether it is in the index or set aside, and of its schedule if it has one.

        `body` is what is stored of a schedule besides: JSON, as a rule.
        """
        pytest.skip("this kit was given no way to corrupt a row")

    async def lose_schedule(self, store: Store, owner: str, key: str) -> None:
        """Remove a schedule and leave its row, where they are two."""
        pytest.skip("this kit was given no way to remove a schedule from under its row")

    @pytest_asyncio.fixture
    async def claimers(self, store: Store, url: str | None) -> AsyncIterator[Claimers]:
        """Claimers in other processes, on the store under test."""
        if url is None:
            pytest.skip("this kit was given no url for other processes")
        async with Claimers(url) as claimers:
            yield claimers

    @pytest.fixture
    def kill(self, claimers: Claimers) -> Claimers:
        """Claimers that may be killed."""
        return claimers
