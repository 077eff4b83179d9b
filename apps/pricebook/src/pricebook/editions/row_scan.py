"""Reads all price rows of a store, page by page: rows of all channels and types, in the order of their keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pricebook.model import CombinationPrice, Price, PriceRow
from tickler.table import OpenTable

SCANNED_AT_A_TIME = 500


async def row_pages(db: OpenTable, store: str, *, consistent: bool = True) -> AsyncIterator[Sequence[PriceRow]]:
    cursor: str | None = None
    while True:
        page = await db.query(
            Price.key(store), CombinationPrice.key(store), first=SCANNED_AT_A_TIME, after=cursor, consistent=consistent
        )
        yield page.items
        if not page.has_next:
            return
        cursor = page.end
