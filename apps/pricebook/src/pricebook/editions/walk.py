"""Walks over rows in one direction, and finds those that have a price at an instant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from pricebook.editions.cursors import Position
from pricebook.editions.evaluate import Counting
from pricebook.editions.ranges import RowRange, Window
from pricebook.model import PriceRow
from tickler.table import MISSING

MAX_READ = 1_000  # rows in one query, the most that the table toolkit takes
MIN_READ = 8  # where rows without a price may be in between


class Found(Struct, frozen=True, eq=False):
    """A row, what counts of it, and where it is in its list."""

    position: Position
    row: PriceRow
    counting: Counting


class Rows(Protocol):
    """Reads of a table, or of a snapshot of it."""

    async def query(
        self, *selections: Any, first: int | None = None, last: int | None = None, consistent: bool = False
    ) -> Any: ...


Judge = Callable[[Sequence[PriceRow], datetime], Awaitable[list[Counting | None]]]


class Walk(NamedTuple):
    """How to read a list: its rows, as of when, in which direction, and what says which of their values count."""

    rows: Rows
    at: datetime
    backwards: bool
    judge: Judge
    consistent: bool = False

    async def find(self, ranges: Sequence[RowRange], window: Window, wanted: int) -> list[Found]:
        """Return the first `wanted` prices in walking order. Of several ranges, the first one's price goes before the others'."""
        if len(ranges) == 1:
            return await self._find_in_one(ranges[0], window, wanted)
        found: list[Found] = []
        async for candidates in self._merged([self._prices(each, window, wanted) for each in ranges]):
            found.append(candidates[0])
            if len(found) == wanted:
                break
        return found

    async def _find_in_one(self, range: RowRange, window: Window, wanted: int) -> list[Found]:
        found: list[Found] = []
        left: Window | None = window
        while left is not None and len(found) < wanted:
            some, left = await self._read(range, left, wanted - len(found))
            found += some
        return found[:wanted]

    async def _prices(self, range: RowRange, window: Window, wanted: int) -> AsyncIterator[Found]:
        left: Window | None = window
        while left is not None:
            some, left = await self._read(range, left, wanted)
            for each in some:
                yield each

    async def _merged(self, sources: Sequence[AsyncIterator[Found]]) -> AsyncIterator[list[Found]]:
        """Yield what is at each position, in the order of the sources."""
        heads = [await anext(source, None) for source in sources]
        choose = max if self.backwards else min
        while present := [each.position for each in heads if each is not None]:
            position = choose(present)
            yield [each for each in heads if each is not None and each.position == position]
            heads = [
                await anext(source, None) if each is not None and each.position == position else each
                for source, each in zip(sources, heads, strict=True)
            ]

    async def _read(self, range: RowRange, window: Window, wanted: int) -> tuple[list[Found], Window | None]:
        """Read some rows. Returns those that have a price, and where to go on; None at the end."""
        size = min(max(wanted, MIN_READ), MAX_READ)
        asked = {"last": size} if self.backwards else {"first": size}
        page = await self.rows.query(*range.selections(window), **asked, consistent=self.consistent)
        rows: list[PriceRow] = page.items[::-1] if self.backwards else page.items
        judged = await self.judge(rows, self.at)
        found = [
            Found(range.position(row), row, counting)
            for row, counting in zip(rows, judged, strict=True)
            if counting is not None and counting.value.amount is not MISSING
        ]
        if not (page.has_previous if self.backwards else page.has_next):
            return found, None
        last = range.position(rows[-1])
        return found, window._replace(high=last) if self.backwards else window._replace(low=last)
