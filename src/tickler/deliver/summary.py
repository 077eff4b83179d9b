"""The summary that a tick returns."""

from __future__ import annotations

import msgspec


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts what a tick did. `failed` includes `dead`; a `released` fire could not be started here and counts no attempt.

    `left`: something was still due when the budget was spent.
    """

    claimed: int
    delivered: int
    failed: int
    dead: int
    left: bool
    duration_ms: int
    released: int = 0
