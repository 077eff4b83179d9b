"""Reads the prices of products over a time, from their rows and the heads of their stores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pricebook.access.caller import Caller
from pricebook.editions.evaluate import Editions
from pricebook.model import ALL, Head, PriceKey
from pricebook.timelines.spans import Span, spans_of
from tickler.table import OpenTable


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


def _rows_of(key: PriceKey) -> list[PriceKey]:
    """Return the row of a key, and that of ALL, whose price counts where a channel has none of its own."""
    if key.channel == ALL:
        return [key]
    return [key, PriceKey(key.store, ALL, key.type, key.product, key.combination)]
