"""Where DynamoDB is, and how patient to be with it."""

from __future__ import annotations

import msgspec


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A region, or an endpoint of one's own; what is left out comes from the environment, as with AWS's own tools."""

    region: str | None = None
    endpoint: str | None = None
    timeout_s: float = 10.0  # for one answer
    attempts: int = 10
    connections: int = 32
