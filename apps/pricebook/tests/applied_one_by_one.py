"""The way of the design that pricebook began from: when a price comes to count, each row is written by itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pricebook.loading.loader import loaded_value
from pricebook.model import PriceKey
from tickler.table import OpenTable


async def apply_one_by_one(db: OpenTable, store: str, prices: Mapping[str, int], from_at: datetime) -> None:
    for product, minor in prices.items():
        await db.put(PriceKey(store, "ALL", "Base", product).new_row({from_at: loaded_value(minor, "EUR")}))
