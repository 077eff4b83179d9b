"""Takes back a settled edition: the values that rows have of it no longer count once the edition that takes it back does.

A value of it that others have hidden may be past already. Its row gets it back, so that settling ends it there: otherwise it
would count again as soon as those that hide it are taken back, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pricebook.editions.evaluate import Values, moment
from pricebook.editions.point_in_time import PointInTime
from pricebook.editions.row_scan import row_pages
from pricebook.editions.staging import AT_ONCE, batches
from pricebook.editions.timing import MILLISECOND, Timing
from pricebook.model import CombinationPrice, Edition, Head, Price, PriceKey, PriceRow, Value, key_of, row_id
from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table import Missing, OpenTable

EVER = datetime.fromtimestamp(0, UTC)


class Retraction:
    def __init__(self, db: OpenTable, points: PointInTime, timing: Timing) -> None:
        self._db = db
        self._points = points
        self._timing = timing

    async def values(
        self, head: Head, number: int, edition: Edition, counted_from: datetime | None
    ) -> AsyncIterator[list[tuple[PriceKey, Value]]]:
        """Yield the values to stage for an edition that takes another one back. Rows get back what is to count again.

        `counted_from` is from when on the other one counted: without it, all that is past is looked at.
        """
        retracting = Value(edition=number, retracts=edition.retracts)
        async for rows in row_pages(self._db, head.store):
            concerned = [(row, values) for row in rows if (values := _of(edition.retracts, row.values))]
            if counted_from is None or counted_from - MILLISECOND < edition.slot - self._timing.retention:
                others = [row for row in rows if not _of(edition.retracts, row.values)]
                concerned += await self._revived(others, edition, counted_from)
            for row, values in concerned:
                await self._restore(row, values, edition)
            yield [(key_of(row), retracting) for row, _ in concerned]

    async def _revived(
        self, rows: Sequence[PriceRow], edition: Edition, counted_from: datetime | None
    ) -> list[tuple[PriceRow, Values]]:
        """Return the rows whose value of the edition to take back is past, with it. They have it again."""
        since, until = (EVER, edition.slot) if counted_from is None else (counted_from - MILLISECOND, counted_from)
        revived: list[tuple[PriceRow, Values]] = []
        for some in batches(rows, AT_ONCE):
            found = await asyncio.gather(*(self._points.past(key_of(row), since, until) for row in some))
            for row, past in zip(some, found, strict=True):
                if values := _of(edition.retracts, past):
                    await self._put_back(row, values)
                    revived.append((row, values))
        return revived

    async def _restore(self, row: PriceRow, values: Values, edition: Edition) -> None:
        """Let a row have again what is beneath the values to take back. So any number of them can be taken back in any order."""
        for slot in values:
            past = await self._points.past(key_of(row), slot, moment(slot), without=edition.retracts)
            await self._put_back(row, past)

    async def _put_back(self, row: PriceRow, past: Values) -> None:
        """Let a row have values again that had become past. Nobody sees them while others hide them."""
        paths: Any = CombinationPrice.values if isinstance(row, CombinationPrice) else Price.values
        for slot, value in past.items():
            try:
                await self._db.update(row_id(row), paths[slot].set(value), when=paths[slot].missing())
            except (ConditionFailed, ItemNotFound):
                continue  # it is there


def _of(number: int | Missing, values: Values) -> Values:
    return {slot: value for slot, value in values.items() if value.settled == number}
