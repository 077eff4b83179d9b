"""Decides when expired leases of other workers may be taken over."""

from __future__ import annotations

import asyncio

MAX_HOLD_LEASES = 3  # a store that stays slow must not protect the leases of dead workers for ever


class TakeoverHold:
    """Suspends takeovers for one lease after a clock jump or a store outage: live workers may not have extended their leases."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._held_at: float | None = None
        self._answered_at: float | None = None  # the store's first answer since the hold began

    @property
    def is_active(self) -> bool:
        return self._held_at is not None and asyncio.get_running_loop().time() - self._held_at <= self._lease_s

    def clock_jumped(self) -> None:
        self._held_at, self._answered_at = asyncio.get_running_loop().time(), None

    def store_failed(self) -> None:
        """The store failed or was slow. If it answers in between, the hold is prolonged for a few leases at most."""
        now_s = asyncio.get_running_loop().time()
        if not self.is_active:
            self._answered_at = None
        if self._answered_at is None or now_s - self._answered_at < MAX_HOLD_LEASES * self._lease_s:
            self._held_at = now_s

    def store_answered(self) -> None:
        """The store answered every call of a round."""
        if self._answered_at is None:
            self._answered_at = asyncio.get_running_loop().time()
