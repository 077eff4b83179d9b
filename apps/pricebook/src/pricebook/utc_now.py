"""The present instant, as everything in pricebook has it."""

from __future__ import annotations

from datetime import UTC, datetime

from tickler import Tickler


def utc_now(t: Tickler) -> datetime:
    """Return now by the clock of the engine, which tests move."""
    return datetime.fromtimestamp(t.now_ms() / 1000, UTC)
