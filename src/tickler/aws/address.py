"""Where an AWS service is, and the timeouts and limits of its client."""

from __future__ import annotations

import msgspec

CONNECT_TIMEOUT_S = 3.0


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Region and endpoint of a service. Those left out come from the environment, as in AWS's own tools."""

    region: str | None = None
    endpoint: str | None = None
    timeout_s: float = 10.0  # of one attempt
    attempts: int = 10
    connections: int = 32
