"""Pages of a query, in both directions, with true `has_next` and `has_previous`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tickler.errors import InvalidInput
from tickler.table.condition import Condition
from tickler.table.cursor import Cursors
from tickler.table.engines.engine import Ask, Position, Reader
from tickler.table.rendering import value_at
from tickler.table.selection import Selection, Span

E_co = TypeVar("E_co", covariant=True)

MAX_PAGE = 1_000
MAX_UNFILTERED = 256  # items that are read at a time where a filter may leave most of them out


class Page(Generic[E_co]):
    """Items in the order of the query. Pass `end` as `after=` for the next page, or `start` as `before=` for the one before."""

    def __init__(
        self, items: Sequence[E_co], positions: Sequence[Position], cursors: Cursors, has_next: bool, has_previous: bool
    ) -> None:
        self.items = items
        self.has_next = has_next
        self.has_previous = has_previous
        self._positions = positions
        self._cursors = cursors

    @cached_property
    def start(self) -> str | None:
        return self._cursors.write(self._positions[0]) if self._positions else None

    @cached_property
    def end(self) -> str | None:
        return self._cursors.write(self._positions[-1]) if self._positions else None

    def __repr__(self) -> str:
        return f"Page({len(self.items)} items, has_next={self.has_next}, has_previous={self.has_previous})"


class PageRequest(msgspec.Struct, frozen=True):
    """`first` items after a cursor, or the `last` ones before one."""

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None

    def check(self) -> None:
        if (self.first is None) == (self.last is None):
            raise InvalidInput("query: pass either first=, with after= if there is a cursor, or last=, with before=")
        if (self.first is None and self.after is not None) or (self.last is None and self.before is not None):
            raise InvalidInput("query: after= goes with first=, and before= with last=")
        if type(self.size) is not int or not 1 <= self.size <= MAX_PAGE:
            raise InvalidInput(f"query: a page has 1 to {MAX_PAGE:,} items, not {self.size}")

    @property
    def size(self) -> int:
        return self.first if self.first is not None else self.last or 0

    @property
    def cursor(self) -> str | None:
        return self.after if self.first is not None else self.before


class _Found(NamedTuple):
    items: list[Any]
    positions: list[Position]
    more: bool


class Query:
    """Selections of one partition, with a filter."""

    def __init__(self, selections: Sequence[Selection[Any, Any]], where: Condition[Any] | None) -> None:
        first = selections[0]
        for other in selections[1:]:
            if (other.span.gsi, other.span.partition) != (first.span.gsi, first.span.partition):
                raise InvalidInput("query: several selections must be of the same partition of the same index")
            if other.backwards is not first.backwards:
                raise InvalidInput("query: several selections must have the same order")
        if where is not None:
            entities = {leaf.path.attribute.entity for leaf in where.leaves()}
            chosen = [each.definition for each in selections if each.definition.cls in entities]
            if len(entities) > 1 or not chosen:
                raise InvalidInput("query: where= must be about one of the entities of the query")
            chosen[0].check_condition(where)
        self.backwards = first.backwards
        self.entities = frozenset(each.definition.name for each in selections)
        spans: dict[type, list[Span]] = {}
        for each in selections:
            spans.setdefault(each.definition.cls, []).append(each.span)
        self.spans = _merged([each.span for each in selections])
        self.spans_of = {cls: _merged(its_own) for cls, its_own in spans.items()}
        self._spans_differ = any(its_own != self.spans for its_own in self.spans_of.values())
        self.where = where

    def identity(self) -> object:
        """Return what a cursor is bound to. The order is not part of it, so that a walk can turn around."""
        spans = sorted(((cls.__name__, spans) for cls, spans in self.spans_of.items()), key=lambda each: each[0])
        return [spans, sorted(self.entities), repr(self.where)]

    async def page(self, reader: Reader, request: PageRequest, cursors: Cursors, *, consistent: bool, now_ms: int) -> Page[Any]:
        start = None if request.cursor is None else cursors.read(request.cursor)
        backwards = self.backwards is (request.first is not None)
        found = await self._collect(reader, request.size, start, backwards, consistent, now_ms)
        behind = False
        if start is not None:
            behind = await self._any_behind(reader, found, start, backwards, consistent, now_ms)
        items, positions = found.items, found.positions
        if request.first is None:
            items, positions = items[::-1], positions[::-1]
        has_next, has_previous = (found.more, behind) if request.first is not None else (behind, found.more)
        return Page(items, positions, cursors, has_next, has_previous)

    async def _any_behind(
        self, reader: Reader, found: _Found, start: Position, backwards: bool, consistent: bool, now_ms: int
    ) -> bool:
        """Tell whether the query has items on the other side of a page."""
        if found.positions:
            return bool(
                (await self._collect(reader, 1, found.positions[0], not backwards, consistent, now_ms, probe=False)).items
            )
        behind = [_up_to(span, str(start[0]), backwards) for span in self.spans]
        return bool((await self._collect(reader, 1, None, not backwards, consistent, now_ms, behind, probe=False)).items)

    async def _collect(
        self,
        reader: Reader,
        size: int,
        start: Position | None,
        backwards: bool,
        consistent: bool,
        now_ms: int,
        spans: Sequence[Span | None] | None = None,
        *,
        probe: bool = True,
    ) -> _Found:
        """Read `size` items, and with `probe` one more, which tells whether there are more."""
        wanted = size + probe
        items: list[Any] = []
        positions: list[Position] = []
        for span in _ordered(self.spans if spans is None else spans, backwards):
            if start is not None and _is_behind(span, start, backwards):
                continue
            resume = start if start is not None and span.contains(str(start[0])) else None
            while len(items) < wanted:
                limit = wanted - len(items) if self.where is None else max(wanted - len(items), min(MAX_UNFILTERED, 4 * wanted))
                ask = Ask(span, limit, self.entities, resume, backwards, self.where, consistent)
                found = await reader.slice(ask, now_ms=now_ms)
                kept = self._filtered(found.items, found.positions)
                items += found.items if kept is None else [found.items[n] for n in kept]
                positions += found.positions if kept is None else [found.positions[n] for n in kept]
                resume = found.resume
                if resume is None:
                    break
                await asyncio.sleep(0)  # a reader of SQLite does not wait, and others have to run
        return _Found(items[:size], positions[:size], len(items) > size)

    def _filtered(self, items: Sequence[Any], positions: Sequence[Position]) -> Iterable[int] | None:
        """Return which items to keep: those in the range of their own entity that pass the filter. None: all of them."""
        if not self._spans_differ and self.where is None:
            return None
        kept: Iterable[int] = range(len(items))
        if self._spans_differ:
            kept = [n for n in kept if any(span.contains(str(positions[n][0])) for span in self.spans_of[type(items[n])])]
        if self.where is not None:
            kept = [n for n in kept if satisfies(self.where, items[n])]
        return kept


def satisfies(where: Condition[Any], item: Any) -> bool:
    """Tell whether an item passes a filter. A filter on one entity of several lets the others pass."""
    definition = next(leaf.path for leaf in where.leaves()).attribute.entity
    if type(item) is not definition:
        return True
    return bool(where.evaluate(lambda path: value_at(item, path)))


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Return spans in key order that cover the same, none twice."""
    if len(spans) == 1:
        return list(spans)
    merged: list[Span] = []
    for span in sorted(spans, key=lambda each: each.low or ""):
        if merged and (merged[-1].high is None or span.low is None or span.low <= merged[-1].high):
            last = merged[-1]
            if last.high is not None and (span.high is None or span.high > last.high):
                merged[-1] = last._replace(high=span.high, high_included=span.high_included)
            elif span.high == last.high:
                merged[-1] = last._replace(high_included=last.high_included or span.high_included)
        else:
            merged.append(span)
    return merged


def _ordered(spans: Sequence[Span | None], backwards: bool) -> list[Span]:
    present = [span for span in spans if span is not None]
    return present[::-1] if backwards else present


def _is_behind(span: Span, start: Position, backwards: bool) -> bool:
    """Tell whether reading from `start` passes this span by."""
    sort = str(start[0])
    if backwards:
        return span.low is not None and sort < span.low
    return span.high is not None and sort > span.high


def _up_to(span: Span, sort: str, backwards: bool) -> Span | None:
    """Return the part of a span that lies before `sort`, itself included, seen in the direction of reading."""
    if backwards:
        if span.high is not None and span.high < sort:
            return None
        return span._replace(low=sort if span.low is None else max(span.low, sort))
    if span.low is not None and span.low > sort:
        return None
    return span if span.high is not None and span.high <= sort else span._replace(high=sort, high_included=True)
