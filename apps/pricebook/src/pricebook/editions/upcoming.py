"""Reads prices that will count: of a store, and of a day across stores. They are those of sealed editions that are not settled.

What is upcoming changes with each decision, so unlike pages of prices these show what is known when each page is read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import date, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from pricebook.editions.cursors import Cursors, CursorSecret, Position
from pricebook.editions.nodes import change_node
from pricebook.editions.pages import ChangeNode, PageArgs, UpcomingPage
from pricebook.editions.ranges import Window
from pricebook.editions.row_scan import row_pages
from pricebook.editions.timing import Now, Timing
from pricebook.editions.transitions import ever_counts
from pricebook.editions.traversal import Traversal
from pricebook.errors import NotFound
from pricebook.model import Edition, Head, UnsettledEdition
from tickler.table import MISSING, OpenTable

ENTRIES_AT_A_TIME = 64
COORDINATES = 6
DIGITS = 10  # of the number of an edition in a position, so that its text has the order of the number

Changes = AsyncIterator["Placed"]
InOrder = Callable[[Window, bool], Changes]  # backwards or not


class Placed(NamedTuple):
    position: Position
    node: ChangeNode


class Upcoming:
    def __init__(self, db: OpenTable, now: Now, timing: Timing, secret: CursorSecret) -> None:
        self._db = db
        self._now = now
        self._timing = timing
        self._secret = secret

    async def of_store(self, store: str, page: PageArgs) -> UpcomingPage:
        """Return the changes of a store that are still to come, by instant, edition and product."""
        walk = await self._begin(page, ("upcoming", store))
        now = self._now()
        head = await self._db.get(Head.key.id(store))
        if head is None:
            raise NotFound("store")
        coming = {n: each for n, each in head.editions.items() if each.from_at is not MISSING and each.from_at > now}
        placed = sorted(Placed(_by_instant(node), node) for node in await self._changes(head, coming))

        async def in_order(window: Window, backwards: bool) -> Changes:
            for each in reversed(placed) if backwards else placed:
                if _is_within(each, window):
                    yield each

        return await _page(walk, in_order)

    async def of_day(self, day: date, page: PageArgs) -> UpcomingPage:
        """Return the changes of a day, each in the zone of its store, by store, product and edition, until they are settled."""
        walk = await self._begin(page, ("day", day.isoformat()))

        async def in_order(window: Window, backwards: bool) -> Changes:
            async for head in self._heads(day, window, backwards):
                that_day = {n: each for n, each in head.editions.items() if _day(each, head.tz) == day}
                placed = sorted(Placed(_by_store(node), node) for node in await self._changes(head, that_day))
                for each in reversed(placed) if backwards else placed:
                    if _is_within(each, window):
                        yield each

        return await _page(walk, in_order)

    async def _begin(self, page: PageArgs, query: tuple[str, ...]) -> Traversal:
        cursors = Cursors(await self._secret.get(), query)
        return Traversal.begin(page, cursors, COORDINATES, self._now(), self._timing)

    async def _heads(self, day: date, window: Window, backwards: bool) -> AsyncIterator[Head]:
        """Yield the heads of the stores that have editions on a day, in the order of their names."""
        entries = UnsettledEdition.of_day(day)
        if window.low is not None:
            entries = entries.since(window.low[0])
        if window.high is not None:
            entries = entries.until(window.high[0])
        cursor: str | None = None
        last = ""
        while True:
            page = await self._db.query(entries.newest_first() if backwards else entries, first=ENTRIES_AT_A_TIME, after=cursor)
            stores = [store for store in dict.fromkeys(entry.store for entry in page.items) if store != last]
            for head in await self._db.get_many([Head.key.id(store) for store in stores]):
                if head is not None:
                    yield head
            if not page.has_next:
                return
            cursor, last = page.end, page.items[-1].store

    async def _changes(self, head: Head, editions: dict[int, Edition]) -> list[ChangeNode]:
        wanted = {n: each.from_at for n, each in editions.items() if each.state == "sealed" and ever_counts(each)}
        if not wanted:
            return []
        return [
            change_node(row, value, value.edition, from_at)
            async for rows in row_pages(self._db, head.store)
            for row in rows
            for value in row.values.values()
            if value.edition is not MISSING and isinstance(from_at := wanted.get(value.edition), datetime)
        ]


async def _page(walk: Traversal, in_order: InOrder) -> UpcomingPage:
    """Read a page, and look on its other side, too: what was there may have been cancelled since the cursor was made."""
    found: list[Placed] = []
    if not walk.is_empty:
        async for each in in_order(walk.window, walk.backwards):
            found.append(each)
            if len(found) == walk.wanted:
                break
    page = walk.page(found, lambda each: each.position, lambda each: each.node)
    kept = sorted(found[: walk.size])
    low, high = walk.window
    more = len(found) > walk.size
    has_previous = more if walk.backwards else False
    if not has_previous and low is not None:
        has_previous = await _any(in_order, None, kept[0].position if kept else (*low, ""))
    has_next = False if walk.backwards else more
    if not has_next and high is not None:
        has_next = await _any(in_order, kept[-1].position if kept else high, None, or_there=not kept)
    return UpcomingPage(page.edges, has_next, has_previous, page.at)


async def _any(in_order: InOrder, low: Position | None, high: Position | None, *, or_there: bool = False) -> bool:
    """Tell whether there is a change between two positions, or with `or_there` at the lower one."""
    begin = low[:-1] if low is not None and or_there else low
    async for each in in_order(Window(begin, high), low is None):
        if low is None or each.position > low or (or_there and each.position == low):
            return True
    return False


def _is_within(each: Placed, window: Window) -> bool:
    return (window.low is None or each.position > window.low) and (window.high is None or each.position < window.high)


def _day(edition: Edition, tz: str) -> date | None:
    return None if edition.from_at is MISSING else edition.from_at.astimezone(ZoneInfo(tz)).date()


def _by_instant(node: ChangeNode) -> Position:
    at = node.effective_from.isoformat(timespec="milliseconds")
    return (at, f"{node.edition:0{DIGITS}}", node.channel, node.type, node.product, node.combination or "")


def _by_store(node: ChangeNode) -> Position:
    return (node.store, node.channel, node.type, node.product, node.combination or "", f"{node.edition:0{DIGITS}}")
