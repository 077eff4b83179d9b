"""Takes back a settled edition: the values that rows have of it no longer count once the edition that takes it back does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from pricebook.editions.point_in_time import PointInTime
from pricebook.editions.row_scan import row_pages
from pricebook.model import CombinationPrice, Edition, Head, Price, PriceKey, PriceRow, Value, key_of, row_id
from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table import OpenTable


class Retraction:
    def __init__(self, db: OpenTable, points: PointInTime) -> None:
        self._db = db
        self._points = points

    async def values(self, head: Head, number: int, edition: Edition) -> AsyncIterator[list[tuple[PriceKey, Value]]]:
        """Yield the values to stage for an edition that takes another one back. Rows get back what is to count again."""
        retracting = Value(edition=number, retracts=edition.retracts)
        async for rows in row_pages(self._db, head.store):
            concerned = [row for row in rows if any(value.settled == edition.retracts for value in row.values.values())]
            for row in concerned:
                await self._restore(row, edition.slot)
            yield [(key_of(row), retracting) for row in concerned]

    async def _restore(self, row: PriceRow, at: datetime) -> None:
        """Let a row have former values again that had become past. Nobody sees them while the edition hides them."""
        paths: Any = CombinationPrice.values if isinstance(row, CombinationPrice) else Price.values
        for slot, value in (await self._points.past(key_of(row), at, at)).items():
            try:
                await self._db.update(row_id(row), paths[slot].set(value), when=paths[slot].missing())
            except (ConditionFailed, ItemNotFound):
                continue  # it is there
