"""How much one user may have and do, so that nobody fills the store of the others, or spends what the operator pays for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from tickler.web import RateLimit

MAX_PRODUCTS = 50
MAX_WAITING = 500  # posts that wait for a decision, or that are still to come


class Quota(msgspec.Struct, frozen=True):
    """`burst` at once, and `an_hour` from then on."""

    burst: int
    an_hour: int

    def limit(self, now: Callable[[], datetime]) -> RateLimit:
        """Return the limit, by whatever is limited. It is that of one process."""
        return RateLimit(self.an_hour / 3600, clock_s=lambda: now().timestamp(), burst=self.burst)


WRITTEN_POSTS = Quota(burst=100, an_hour=360)  # by a user, by hand
REDRAFTS = Quota(burst=20, an_hour=60)  # by a user: each may be two requests to a language model
DELIVERIES = Quota(burst=300, an_hour=7_200)  # to a product, signed by whoever knows its secret
