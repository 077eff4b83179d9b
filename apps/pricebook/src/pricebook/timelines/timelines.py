"""Reads the prices of products over a time, and which of them end, from their rows and the heads of their stores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from heapq import nsmallest

from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.editions.evaluate import Editions, value_at
from pricebook.editions.row_scan import row_pages
from pricebook.model import ALL, Head, PriceKey, PriceRow, key_of
from pricebook.timelines.spans import Span, spans_of
from tickler.table import MISSING, OpenTable


class Ending(Struct, frozen=True):
    """Prices that count now and end by themselves, the earliest first."""

    keys: list[PriceKey]
    has_more: bool


class Timelines:
    def __init__(self, db: OpenTable) -> None:
        self._db = db

    async def spans(self, caller: Caller, keys: Sequence[PriceKey], start: datetime, end: datetime) -> dict[PriceKey, list[Span]]:
        """Return the prices of each key between two instants. Heads and rows are read in one batch each."""
        caller.require("read")
        stores = list(dict.fromkeys(key.store for key in keys))
        for store in stores:
            caller.require_store(store)
        heads = await self._db.get_many([Head.key.id(store) for store in stores])
        editions: dict[str, Editions] = {head.store: head.editions for head in heads if head is not None}
        wanted = list(dict.fromkeys(each for key in keys for each in _rows_of(key)))
        found = await self._db.get_many([each.row for each in wanted])
        rows = {key: row.values for key, row in zip(wanted, found, strict=True) if row is not None}
        values = {key: [rows[each] for each in _rows_of(key) if each in rows] for key in keys}
        return {key: spans_of(values[key], editions.get(key.store, {}), start, end) for key in keys}

    async def ending(self, caller: Caller, head: Head, now: datetime, first: int) -> Ending:
        """Return the first prices of a store that count for a time. Rows are read only if its head knows that some end."""
        caller.require("read")
        caller.require_store(head.store)
        found: list[tuple[datetime, PriceKey]] = []
        if _has_ends(head, now):
            async for rows in row_pages(self._db, head.store):
                ends = [(until, key_of(row)) for row in rows if (until := _end_of(row, head.editions, now)) is not None]
                found = nsmallest(first + 1, [*found, *ends])
        return Ending([key for _, key in found[:first]], len(found) > first)


def _has_ends(head: Head, now: datetime) -> bool:
    counting = (edition for edition in head.editions.values() if edition.counts_at(now))
    return any(until > now for until in (*head.untils, *(until for edition in counting for until in edition.untils)))


def _end_of(row: PriceRow, editions: Editions, now: datetime) -> datetime | None:
    counting = value_at(row.values, editions, now)
    return None if counting is None or counting.value.until is MISSING else counting.value.until


def _rows_of(key: PriceKey) -> list[PriceKey]:
    """Return the row of a key, and that of ALL, whose price counts where a channel has none of its own."""
    if key.channel == ALL:
        return [key]
    return [key, PriceKey(key.store, ALL, key.type, key.product, key.combination)]
