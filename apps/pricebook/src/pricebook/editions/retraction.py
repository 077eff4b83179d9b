"""Takes back a settled edition: the values that rows have of it no longer count once the edition that takes it back does."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pricebook.editions.evaluate import value_at
from pricebook.editions.point_in_time import PointInTime
from pricebook.editions.row_scan import row_pages
from pricebook.model import Edition, Head, PriceKey, PriceRow, Value, key_of
from tickler.table import MISSING, OpenTable, evolve


class Retraction:
    def __init__(self, db: OpenTable, points: PointInTime) -> None:
        self._db = db
        self._points = points

    async def values(self, head: Head, number: int, edition: Edition) -> AsyncIterator[list[tuple[PriceKey, Value]]]:
        """Yield the values to stage for an edition that takes another one back."""
        async for rows in row_pages(self._db, head.store):
            yield [
                (key_of(row), await self._value(row, head, number, edition))
                for row in rows
                if any(value.settled == edition.retracts for value in row.values.values())
            ]

    async def _value(self, row: PriceRow, head: Head, number: int, edition: Edition) -> Value:
        """Return a value that hides that of the other edition, or the price before it, if the row no longer has that."""
        left = {slot: value for slot, value in row.values.items() if value.settled != edition.retracts}
        if value_at(left, head.editions, edition.slot) is None:
            past = await self._points.past(key_of(row), edition.slot, edition.slot)
            former = value_at(past, {}, edition.slot)
            if former is not None:
                return evolve(former.value, edition=number, settled=MISSING)
        return Value(edition=number, retracts=edition.retracts)
