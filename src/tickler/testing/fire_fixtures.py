"""Fixtures of the fire kits: two workers, and fires that they claimed."""

from __future__ import annotations

from typing import Any

import pytest

from tickler.fires.contract import ClaimRequest, FireStore, LeaseRequest
from tickler.model.fire import Claim, Fire, Settlement, fire_id
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.fire_queries import fires_of
from tickler.testing.hourly import HOURLY, WAIT, hour, schedule
from tickler.testing.settlements import dead
from tickler.testing.store_contract import DAY_MS, NOW_MS, StoreContract
from tickler.when import When

LEASE_MS = 30_000
EXPIRES_AT = NOW_MS + 30 * DAY_MS


def triggered(key: str = "digest", at: int = hour(1)) -> Fire:
    """Return a manually triggered fire."""
    id = fire_id("u1", key, at, triggered=True)
    return Fire(id=id, owner="u1", key=key, nominal_at=at, opened_at=at, deliver_after=at)


class Worker:
    """A worker on the store under test."""

    def __init__(self, fires: FireStore, name: str) -> None:
        self.fires = fires
        self.name = name
        self._lease: dict[str, Any] = {"worker": name, "lease_ms": LEASE_MS, "expires_at": EXPIRES_AT}

    async def claim(self, now_ms: int, limit: int = 100, **how: Any) -> list[Claim]:
        """Claim, with other fields of a `ClaimRequest` where they matter."""
        return await self.fires.claim(ClaimRequest(now_ms=now_ms, limit=limit, **self._lease | how))

    async def lease(self, now_ms: int, limit: int = 100, **how: Any) -> list[Claim]:
        """Lease, with other fields of a `LeaseRequest` where they matter."""
        return await self.fires.lease(LeaseRequest(now_ms=now_ms, limit=limit, **self._lease | how))

    async def settle(self, now_ms: int, *settlements: Settlement) -> list[Fire]:
        return await self.fires.settle(settlements, now_ms, expires_at=EXPIRES_AT)


async def put_and_claim(schedules: Schedules, worker: Worker, key: str = "digest", when: When = HOURLY, **fields: object) -> Fire:
    """Put an hourly schedule, or another with these fields, and claim its fire at hour(1)."""
    await schedules.put(schedule(key, when, **fields))  # type: ignore[arg-type]  # any of its fields
    (fire,) = fires_of(await worker.claim(hour(1)))
    return fire


async def one_in_every_state(schedules: Schedules, worker: Worker) -> dict[str, Fire]:
    """Create a dead, a leased and a waiting fire by hour(3)."""
    first = await put_and_claim(schedules, worker, policy=WAIT)
    await worker.settle(hour(1), dead(first, hour(1)))
    (second,) = fires_of(await worker.claim(hour(2)))
    assert await worker.claim(hour(3)) == []
    return {"dead": first, "leased": second}


class FireFixtures(StoreContract):
    """Base of the fire kits: a fire store, and two workers."""

    @pytest.fixture
    def fires(self, store: Store) -> FireStore:
        return store.fires

    @pytest.fixture
    def worker(self, fires: FireStore) -> Worker:
        return Worker(fires, "worker")

    @pytest.fixture
    def other(self, fires: FireStore) -> Worker:
        return Worker(fires, "other")
