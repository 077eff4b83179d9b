"""What a page knows about the items on its other side, also while others write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.table.engines.engine import Ask, Slice
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.open_table import OpenTable
from tickler.table.page import _up_to
from tickler.table.selection import Span
from tickler.testing.table_fixtures import NOW, TABLE, Order, numbers, order

OPEN_ENDED = Span(None, "p")
BOUNDED = Span(None, "p", "c", "g")
EXCLUDING = Span(None, "p", "c", "g", False)


class Interrupted(MemoryEngine):
    """Calls `between` after each slice that it reads, as others write while a page is read."""

    between: Callable[[], Awaitable[object]] | None = None

    async def slice(self, ask: Ask, *, now_ms: int) -> Slice:
        found = await super().slice(ask, now_ms=now_ms)
        if self.between is not None:
            await self.between()
        return found


@pytest.fixture
async def engine() -> Interrupted:
    return Interrupted(TABLE, MemoryDatabase())


@pytest.fixture
async def db(engine: Interrupted) -> AsyncIterator[OpenTable]:
    async with OpenTable(TABLE, engine, ManualClock(NOW), create=True) as opened:
        yield opened


@pytest.mark.parametrize("backwards", [False, True])
async def test_an_item_that_arrives_beyond_an_empty_page_is_not_before_it(
    db: OpenTable, engine: Interrupted, backwards: bool
) -> None:
    orders = Order.key("c1").newest_first() if backwards else Order.key("c1")
    await db.put(order(5))
    end = (await db.query(orders, first=1)).end
    await db.delete(order(5).key)
    beyond = order(4 if backwards else 6)
    engine.between = lambda: db.put(beyond)
    page = await db.query(orders, first=1, after=end)
    engine.between = None
    assert (list(page.items), page.has_previous) == ([], False)
    assert numbers((await db.query(orders, first=1, after=end)).items) == numbers([beyond])


@pytest.mark.parametrize(
    ("span", "sort", "below", "above"),
    [
        (OPEN_ENDED, "e", Span(None, "p", None, "e"), Span(None, "p", "e")),
        (BOUNDED, "b", None, BOUNDED),
        (BOUNDED, "c", Span(None, "p", "c", "c"), BOUNDED),
        (BOUNDED, "e", Span(None, "p", "c", "e"), Span(None, "p", "e", "g")),
        (BOUNDED, "g", BOUNDED, Span(None, "p", "g", "g")),
        (BOUNDED, "h", BOUNDED, None),
        (EXCLUDING, "e", Span(None, "p", "c", "e"), Span(None, "p", "e", "g", False)),
        (EXCLUDING, "g", EXCLUDING, Span(None, "p", "g", "g", False)),
    ],
)
def test_a_span_is_cut_at_a_sort_key_and_keeps_it(span: Span, sort: str, below: Span | None, above: Span | None) -> None:
    assert _up_to(span, sort, backwards=False) == below
    assert _up_to(span, sort, backwards=True) == above
