"""Pages of items that are listed by a key of the table or of an index: both flags are true when the page is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from pricebook.editions.cursors import Cursors, CursorSecret, Position
from pricebook.editions.pages import Edge, NodePage, PageArgs
from pricebook.editions.timing import Now
from pricebook.errors import InvalidCursor
from tickler.table import OpenTable

E = TypeVar("E")

READ_AT_A_TIME = 1_000  # the most that the table toolkit returns at once

Selection = Any  # of items. The table toolkit does not export its type
Place = tuple[Any, ...]


class Bounds(NamedTuple):
    """The part of a list behind `low` and before `high`, in key order; None is no bound. `included`: with what is at them."""

    low: Place | None = None
    high: Place | None = None
    included: bool = False


class Source(Protocol[E]):
    """A list. `types` are those of the attributes that `place` returns, which order its items."""

    @property
    def types(self) -> tuple[type, ...]: ...

    @property
    def newest_first(self) -> bool: ...

    def place(self, item: E) -> Place: ...

    async def find(self, db: OpenTable, bounds: Bounds, wanted: int, *, from_end: bool) -> list[E]:
        """Return the first `wanted` items between the bounds, in the direction of reading."""
        ...


class Listed(Generic[E]):
    """The items of a selection. `place` returns the attributes of its sort key."""

    def __init__(
        self, selection: Selection, place: Callable[[E], Place], types: tuple[type, ...], *, newest_first: bool = False
    ) -> None:
        self.types = types
        self.newest_first = newest_first
        self._selection = selection
        self._place = place

    def place(self, item: E) -> Place:
        return self._place(item)

    async def find(self, db: OpenTable, bounds: Bounds, wanted: int, *, from_end: bool) -> list[E]:
        selections = _between(self._selection, bounds)
        found: list[E] = []
        cursor: str | None = None
        while selections and len(found) < wanted:
            size = min(wanted - len(found), READ_AT_A_TIME)
            asked: dict[str, Any] = {"last": size, "before": cursor} if from_end else {"first": size, "after": cursor}
            read: Any = await db.query(*selections, **asked)
            found += read.items[::-1] if from_end else read.items
            cursor = read.start if from_end else read.end
            if not (read.has_previous if from_end else read.has_next):
                break
        return found


class KeysetPages:
    def __init__(self, db: OpenTable, now: Now) -> None:
        self._db = db
        self._now = now
        self._secret = CursorSecret(db)

    async def page(self, query: tuple[str, ...], source: Source[E], page: PageArgs) -> NodePage[E]:
        """Return a page. Its cursors belong to `query`, and stay valid when the item that they point at is gone."""
        page.check()
        cursors = Cursors(await self._secret.get(), query)
        at = self._now()
        after, before = (_read(cursors, each, source.types) for each in (page.after, page.before))
        low, high = (before, after) if source.newest_first else (after, before)
        from_end = page.backwards is not source.newest_first  # in the order of keys
        found = await source.find(self._db, Bounds(low, high), page.size + 1, from_end=from_end)
        more = len(found) > page.size
        is_below = (more and from_end) or (low is not None and await self._any(source, Bounds(high=low, included=True)))
        is_above = (more and not from_end) or (high is not None and await self._any(source, Bounds(low=high, included=True)))
        has_next, has_previous = (is_below, is_above) if source.newest_first else (is_above, is_below)
        kept = found[: page.size]
        ordered = kept[::-1] if page.backwards else kept
        write = cursors.writer(at)
        edges = [Edge(each, _text(source.place(each)), write) for each in ordered]
        return NodePage(edges, has_next, has_previous, at)

    async def _any(self, source: Source[E], bounds: Bounds) -> bool:
        return bool(await source.find(self._db, bounds, 1, from_end=False))


def _read(cursors: Cursors, cursor: str | None, types: tuple[type, ...]) -> Place | None:
    if cursor is None:
        return None
    _, position = cursors.read(cursor, len(types))
    try:
        return tuple(msgspec.convert(text, kind, strict=False) for text, kind in zip(position, types, strict=True))
    except msgspec.ValidationError:
        raise InvalidCursor("the cursor is of another version of pricebook: begin with the first page") from None


def _between(selection: Selection, bounds: Bounds) -> list[Selection]:
    """Return what lies between two places. A place of several attributes cuts through the items that share its first one."""
    low, high, included = bounds
    if low is not None and high is not None and low[0] == high[0]:
        inner = Bounds(low[1:], high[1:], included)
        return _between(selection.under(low[0]), inner) if len(low) > 1 else []
    middle, selections = selection, []
    if low is not None:
        is_last = len(low) == 1
        middle = middle.since(low[0]) if included and is_last else middle.after(low[0])
        selections += [] if is_last else _between(selection.under(low[0]), Bounds(low=low[1:], included=included))
    if high is not None:
        is_last = len(high) == 1
        middle = middle.until(high[0]) if included and is_last else middle.before(high[0])
        selections += [] if is_last else _between(selection.under(high[0]), Bounds(high=high[1:], included=included))
    return [middle, *selections]


def _text(place: Place) -> Position:
    return tuple(each.isoformat() if isinstance(each, date | datetime) else str(each) for each in place)
