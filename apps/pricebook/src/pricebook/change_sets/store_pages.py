"""Reads the stores and the lines of a change set page by page, as they are at each read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pricebook.model import ChangeLine, ChangeStore
from tickler.table import OpenTable

STORES_AT_A_TIME = 64
LINES_AT_A_TIME = 500


async def store_pages(db: OpenTable, id: str, size: int = STORES_AT_A_TIME) -> AsyncIterator[Sequence[ChangeStore]]:
    cursor: str | None = None
    while True:
        page = await db.query(ChangeStore.key(id), first=size, after=cursor, consistent=True)
        yield page.items
        if not page.has_next:
            return
        cursor = page.end


async def line_pages(db: OpenTable, id: str, store: str) -> AsyncIterator[Sequence[ChangeLine]]:
    cursor: str | None = None
    while True:
        page = await db.query(ChangeLine.key(id, store), first=LINES_AT_A_TIME, after=cursor, consistent=True)
        yield page.items
        if not page.has_next:
            return
        cursor = page.end
