"""The summary that a tick returns."""

from __future__ import annotations

import msgspec


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts what a tick did. `failed` includes `dead`.

    No attempt is counted for a `released` fire, which could not be started here, and for one that its target `postponed`.
    `left`: something was still due when the budget was spent.
    """

    claimed: int
    delivered: int
    failed: int
    dead: int
    left: bool
    duration_ms: int
    released: int = 0
    postponed: int = 0
