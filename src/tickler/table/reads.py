"""Reads of a table, or of a snapshot of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar, overload

from tickler.clock import Clock
from tickler.errors import InvalidInput
from tickler.table.condition import Condition
from tickler.table.cursor import Cursors
from tickler.table.definition import EntityDefinition
from tickler.table.engines.engine import Reader
from tickler.table.key import ItemId, not_an_id
from tickler.table.page import Page, PageRequest, Query
from tickler.table.selection import Selection

E = TypeVar("E")
E1 = TypeVar("E1")
E2 = TypeVar("E2")
E3 = TypeVar("E3")
E4 = TypeVar("E4")

ITERATED_AT_A_TIME = 256

CheckEntity = Callable[[EntityDefinition], None]  # raises unless an entity belongs to the table


class Reads:
    """Reads of a table, or of a snapshot of it. Expired items are absent."""

    def __init__(self, reader: Reader, clock: Clock, secret: Callable[[], Awaitable[bytes]], check: CheckEntity) -> None:
        self._reader = reader
        self._clock = clock
        self._secret = secret
        self._check_entity = check

    async def get(self, id: ItemId[E], *, consistent: bool = True) -> E | None:
        """Return an item by its key, None if there is none."""
        return (await self._reader.get([self._own(id)], consistent=consistent, now_ms=self._clock.now_ms()))[0]  # type: ignore[no-any-return]  # an entity

    async def get_many(self, ids: Sequence[ItemId[E]], *, consistent: bool = True) -> list[E | None]:
        """Return items by their keys, in order, None for each that there is not."""
        return await self._reader.get([self._own(id) for id in ids], consistent=consistent, now_ms=self._clock.now_ms())

    @overload
    async def query(
        self,
        one: Selection[E1, Any],
        /,
        *,
        where: Condition[E1] | None = None,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        consistent: bool = False,
    ) -> Page[E1]: ...
    @overload
    async def query(
        self,
        one: Selection[E1, Any],
        two: Selection[E2, Any],
        /,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        consistent: bool = False,
    ) -> Page[E1 | E2]: ...
    @overload
    async def query(
        self,
        one: Selection[E1, Any],
        two: Selection[E2, Any],
        three: Selection[E3, Any],
        /,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        consistent: bool = False,
    ) -> Page[E1 | E2 | E3]: ...
    @overload
    async def query(
        self,
        one: Selection[E1, Any],
        two: Selection[E2, Any],
        three: Selection[E3, Any],
        four: Selection[E4, Any],
        /,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        consistent: bool = False,
    ) -> Page[E1 | E2 | E3 | E4]: ...
    async def query(
        self,
        *selections: Selection[Any, Any],
        where: Condition[Any] | None = None,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        consistent: bool = False,
    ) -> Page[Any]:
        """Return a page of a selection, or of several of one partition: the `first` after a cursor, or the `last` before one.

        `where` filters what was read, so on DynamoDB what it leaves out is paid for. `consistent` reads are refused by the
        indexes of DynamoDB.
        """
        request = PageRequest(first, after, last, before)
        request.check()
        query = self._query(selections, where)
        cursors = Cursors(await self._secret(), query.identity)
        return await query.page(self._reader, request, cursors, consistent=consistent, now_ms=self._clock.now_ms())

    async def iterate(self, selection: Selection[E, Any], *, where: Condition[E] | None = None) -> AsyncIterator[E]:
        """Yield all items of a selection, reading them page by page."""
        page = await self.query(selection, where=where, first=ITERATED_AT_A_TIME)
        while True:
            for item in page.items:
                yield item
            if not page.has_next:
                return
            page = await self.query(selection, where=where, first=ITERATED_AT_A_TIME, after=page.end)

    async def count(self, *selections: Selection[Any, Any], consistent: bool = False) -> int:
        """Count the items of selections without reading them as a whole. The indexes of DynamoDB refuse `consistent` counts."""
        query = self._query(selections, None)
        now_ms = self._clock.now_ms()
        names = {selection.definition.cls: frozenset([selection.definition.name]) for selection in selections}
        counts = [
            await self._reader.count(span, names[cls], consistent=consistent, now_ms=now_ms)
            for cls, spans in query.spans_of.items()
            for span in spans
        ]
        return sum(counts)

    def _query(self, selections: Sequence[Selection[Any, Any]], where: Condition[Any] | None) -> Query:
        if not selections:
            raise InvalidInput("query: pass at least one selection, such as Order.pending()")
        for selection in selections:
            if not isinstance(selection, Selection):
                raise InvalidInput(f"query: {selection!r} is no selection: call an index or a key, as in Order.pending()")
            self._check_entity(selection.definition)
        return Query(selections, where)

    def _own(self, id: ItemId[E]) -> ItemId[E]:
        if not isinstance(id, ItemId):
            raise not_an_id(id)
        self._check_entity(id.definition)
        return id
