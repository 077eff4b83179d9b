"""What answers requests in tests of queries, made of parts."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class MadeServices(Struct, frozen=True):
    """Prices, and whatever else a test has."""

    prices: Any = None
    change_sets: Any = None
    audit: Any = None
    stores: Any = None
