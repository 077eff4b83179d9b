"""GraphQL of pricebook: a page of 64 edges by a compiled function, beside graphql-core and beside msgspec alone.

Processor time, with ready prices: nothing is read from a store.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec

from measure import Result
from pricebook.access.caller import Caller
from pricebook.editions.pages import Edge, NodePage, PageArgs, PriceNode, PricePage, UpcomingPage
from pricebook.graphql.context import RequestContext
from pricebook.graphql.executor.executor import Prepared
from pricebook.graphql.executor.reference import ReferenceRun, run_reference
from pricebook.graphql.schema import build_schema
from pricebook.graphql.service import Graphql, GraphqlRequest
from pricebook.model import PriceKey
from pricebook.money import Money

EDGES = 64
LARGEST = 2_048
ROUNDS = 9
SECONDS = 0.3  # that a round takes at least
AT = datetime(2026, 3, 15, tzinfo=UTC)
QUERY = """
query Page($store: ID!, $first: Int, $nested: Boolean = false) {
  basePrices(store: $store, first: $first) {
    edges { cursor node {
      store channel product price { minor currency } effectiveDate until
      asOf(at: "2026-03-01T00:00:00Z") @include(if: $nested) { price { minor } }
    } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""


class ReadyPrices:
    """One page of each size, made once, with cursors that are signed already."""

    def __init__(self) -> None:
        self._pages: dict[int, PricePage] = {}
        self._then = _price(0)

    async def of_store(
        self, store: str, *, channel: str = "ALL", type: str = "Base", product_prefix: str = "", page: PageArgs
    ) -> PricePage:
        if page.size not in self._pages:
            edges = [Edge(_price(n), (str(n),), lambda _: "c" * 72) for n in range(page.size)]
            assert all(edge.cursor for edge in edges)
            self._pages[page.size] = NodePage(edges, True, False, AT)
        return self._pages[page.size]

    async def of_product(self, product: str, *, channel: str = "ALL", type: str = "Base", page: PageArgs) -> PricePage:
        raise NotImplementedError

    async def as_of(
        self,
        store: str,
        product: str,
        at: datetime,
        *,
        channel: str = "ALL",
        type: str = "Base",
        combination: str | None = None,
    ) -> PriceNode | None:
        return self._then

    async def as_of_many(self, keys: Sequence[PriceKey], at: datetime) -> list[PriceNode | None]:
        return [self._then] * len(keys)

    async def upcoming(self, store: str, *, page: PageArgs) -> UpcomingPage:
        raise NotImplementedError

    async def changes_on(self, day: date, *, page: PageArgs) -> UpcomingPage:
        raise NotImplementedError

    async def version(self, store: str) -> str:
        return "0"


def _price(n: int) -> PriceNode:
    return PriceNode("12345", "ALL", "Base", f"PROD{n:04}", Money(1999, "EUR"), AT + timedelta(minutes=n))


async def run(say: Callable[[str], None]) -> list[Result]:
    service = Graphql(build_schema())
    prices = ReadyPrices()
    results = []
    for name, variables in (
        (f"a page of {EDGES}", {"store": "12345", "first": EDGES}),
        (f"a page of {LARGEST:,}", {"store": "12345", "first": LARGEST}),
        (f"a page of {EDGES} with a nested read", {"store": "12345", "first": EDGES, "nested": True}),
    ):
        say(f"GraphQL: {name}")
        results += await _compared(service, prices, name, GraphqlRequest(QUERY, variables))
    assert service.executor.slow_runs.counts.total() == 0
    return results


async def _compared(service: Graphql, prices: ReadyPrices, name: str, request: GraphqlRequest) -> list[Result]:
    services: Any = SimpleNamespace(prices=prices)

    def context() -> RequestContext:
        return RequestContext(services, Caller("bench", frozenset({"read"})), AT)

    prepared = service.prepare(request)
    assert isinstance(prepared, Prepared)
    schema = build_schema()

    async def compiled() -> bytes:
        return (await service.answer(request, context())).body

    async def reference() -> bytes:
        """Run graphql-core on a query that is parsed and validated already, as we do."""
        run = ReferenceRun(prepared.document, None, request.variables or {}, context())
        found = await run_reference(schema, run)
        return msgspec.json.encode({"data": found.data, "extensions": extensions})

    whole = msgspec.json.decode(await compiled())
    extensions = whole["extensions"]
    ready = (await service.executor.run(prepared, context())).data
    assert await compiled() == await reference()

    async def floor() -> bytes:
        """Write the same bytes, of objects that are there."""
        return msgspec.json.encode({"data": ready, "extensions": extensions})

    ours, theirs, least = await _processor_ms(compiled, reference, floor)
    return [
        Result(f"pricebook: GraphQL, {name}", f"{ours:.3f} ms", f"{theirs:.2f} ms", "graphql-core, cached", theirs / ours, 0),
        Result(
            f"pricebook: GraphQL, {name}", f"{ours:.3f} ms", f"{least:.3f} ms", "msgspec alone", ours / least, 0, at_most=True
        ),
    ]


async def _processor_ms(*works: Callable[[], Awaitable[bytes]]) -> list[float]:
    """Return the median processor time of each, measured in turns."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, its in zip(works, taken, strict=True):
            number, started = 0, time.process_time()
            while time.process_time() - started < SECONDS / ROUNDS or number < 2:
                await work()
                number += 1
            its.append((time.process_time() - started) / number * 1_000)
    return [statistics.median(each) for each in taken]
