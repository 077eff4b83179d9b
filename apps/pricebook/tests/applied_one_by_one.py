"""The way of the design that pricebook began from: when a price comes to count, each row is written by itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pricebook.loading.loader import priced_row
from pricebook.model import PriceKey
from pricebook.money import Money
from tickler.table import OpenTable


async def apply_one_by_one(db: OpenTable, store: str, prices: Mapping[str, int], from_at: datetime) -> None:
    for product, minor in prices.items():
        await db.put(priced_row(PriceKey(store, "ALL", "Base", product), Money(minor, "EUR"), from_at))
