"""What a worker asks for when it claims or leases."""

from __future__ import annotations

from typing import NamedTuple


class Order(NamedTuple):
    """Who wants fires, when, for how long, and until when the history keeps what is to say of it."""

    now_ms: int
    worker: str
    lease_ms: int
    expires_at: int
