"""A Tickler in this process that counts every claim and lease: shows that a worker has looked, and what it took."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

from tickler import Clock, Tickler
from tickler.client import Settings
from tickler.connect import store_for_url
from tickler.fires import Claim, Fire
from tickler.fires.contract import ClaimRequest, FireStore, LeaseRequest
from tickler.model.fire import Extension
from tickler.stores.store import Store
from under_fire.processes import LOOPBACK


class WatchedFires:
    """Fires as the store keeps them."""

    def __init__(self, fires: FireStore) -> None:
        self._fires = fires
        self.looks = 0  # claims, whatever they got
        self.takeovers = 0  # leases that would have taken over from the dead
        self.extended = 0
        self.taken: list[Claim] = []
        self.claimed_at: dict[str, int] = {}  # what the worker's clock said when it asked for the fire, by the fire's id

    def __getattr__(self, name: str) -> object:
        return getattr(self._fires, name)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        claims = await self._fires.claim(request)
        self.looks += 1
        self.taken += claims
        self.claimed_at |= {claim.fire.id: request.now_ms for claim in claims if claim.fire is not None}
        return claims

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        claims = await self._fires.lease(request)
        self.takeovers += request.expired
        self.taken += claims
        return claims

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        extension = await self._fires.extend(fires, until_ms)
        self.extended += len(fires) - len(extension.lost) - len(extension.skipped)
        return extension


class _WatchedStore:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.fires = WatchedFires(store.fires)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def watched(url: str, clock: Clock) -> tuple[Tickler, WatchedFires]:
    """Connect, and return the watched fires as well."""
    store = _WatchedStore(store_for_url(url))
    settings = Settings(create=True, environ=os.environ, allow_networks=(LOOPBACK,), reopen=lambda: store_for_url(url))
    return Tickler(cast(Store, store), clock, settings), store.fires
