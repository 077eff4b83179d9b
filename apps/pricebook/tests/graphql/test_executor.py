"""How queries are run: by a function of their own, and by graphql-core where something is not as it should be."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from made_changes import made_services
from made_prices import AT, MadePrices
from pricebook.editions.pages import PriceNode, PricePage
from pricebook.errors import NotFound
from pricebook.graphql.executor.executor import MAX_FUNCTIONS
from pricebook.graphql.executor.slow_runs import SlowRuns
from pricebook.graphql.limits import Limits
from pricebook.graphql.service import GraphqlRequest
from pricebook.money import Money
from query_client import QueryClient

PAGE = "basePrices(store: $store, first: $first) { edges { cursor node { product price { minor currency } effectiveDate } } }"
QUERIES = [
    f"query ($store: ID!, $first: Int) {{ {PAGE} }}",
    "{ basePricesByProduct(product: 1, last: 3) { nodes { store until lowest30Days { minor } } pageInfo { startCursor } } }",
    '{ prices(store: 1, type: "Swap", productPrefix: "P") { nodes { combination recordType __typename } } }',
    '{ priceAsOf(store: 1, product: "P1", at: "2026-03-15T00:00:00Z") { price { minor } } }',
    "{ upcomingPriceChanges(store: 1) { nodes { edition asOf { price { minor } } } pageInfo { hasNextPage } } }",
    '{ changesOn(date: "2026-03-15") { edges { node { product price { currency } } } } }',
    "query ($store: ID!, $flag: Boolean = false) { basePrices(store: $store) { nodes { product @skip(if: $flag) ...A } } } "
    "fragment A on BasePriceRecord { store asOf { product asOf(at: \"2026-03-15T00:00:00Z\") { product } } }",
    "{ changeSets(state: SETTLED, first: 3) { nodes { id state endedAt } } }",
    "{ changeSets(state: DRAFT, first: 3) { nodes { id state rev day report { canApprove largest { share } } } } }",
    'query ($n: Int) { changeSet(id: "C1") { lines(store: 1, first: $n) { nodes { price { minor } asOf { product } } } } }',
    '{ audit(actor: "x") { nodes { at before { state } changeSet { stores { nodes { state } } } prices { nodes { at } } } } }',
    "{ auditedPrices(product: 1) { edges { cursor node { before { minor } changeSet { progress { sealed } } } } } }",
    "{ stores { nodes { id channels version } pageInfo { endCursor } } }",
    '{ a: basePrices(store: "nobody") { nodes { product } } b: basePrices(store: 1, after: "forged") { nodes { product } } }',
]  # fmt: skip


class OneBadNode(MadePrices):
    """The amount of the last price of a page is missing."""

    async def of_store(self, store: str, **arguments: Any) -> PricePage:
        page = await super().of_store(store, **arguments)
        nothing: Any = None
        page.edges[-1].node = replace(page.edges[-1].node, amount=nothing)
        return page


@pytest.mark.parametrize("query", QUERIES)
async def test_every_query_of_the_schema_has_a_function_of_its_own(query: str) -> None:
    client = QueryClient(services=made_services(MadePrices(nodes=3), nodes=3), now=AT)
    assert (await client.ask(query, store="7", first=2))["data"]
    assert not client.slow_runs


async def test_a_function_is_written_once_for_a_query_and_once_more_for_other_flags() -> None:
    client = QueryClient(MadePrices())
    query = "query ($x: Boolean!, $first: Int) { basePrices(store: 1, first: $first) { nodes { product store @skip(if: $x) } } }"

    def plan(**variables: Any) -> object:
        prepared: Any = client.graphql.prepare(GraphqlRequest(query, variables))
        return prepared.planned

    assert plan(x=True, first=1) is plan(x=True, first=2)
    assert plan(x=True) is not plan(x=False)


async def test_flags_change_which_fields_there_are_and_in_which_order() -> None:
    client = QueryClient(MadePrices(nodes=1), now=AT)
    query = "query ($x: Boolean!) { basePrices(store: 1) { nodes { ...A @skip(if: $x) product store } } } "
    query += "fragment A on BasePriceRecord { store }"
    for x, names in ((True, ["product", "store"]), (False, ["store", "product"])):
        (node,) = (await client.data(query, x=x))["basePrices"]["nodes"]
        assert list(node) == names


async def test_flags_of_other_operations_do_not_matter() -> None:
    client = QueryClient(MadePrices(nodes=1), now=AT)
    query = "query A($x: Boolean!) { ...F @skip(if: $x) } query B { ...F } fragment F on Query { __typename }"
    assert (await client.answer(query, name="B")).body.startswith(b'{"data":{"__typename":"Query"}')
    assert not client.slow_runs


async def test_functions_and_documents_are_forgotten_when_there_are_too_many() -> None:
    client = QueryClient(MadePrices())
    for n in range(MAX_FUNCTIONS + 50):
        client.graphql.prepare(GraphqlRequest(f"{{ a{n}: __typename }}"))
    executor = client.graphql.executor
    assert len(executor._known) == MAX_FUNCTIONS
    documents = client.graphql._documents._kept
    assert documents.weight == sum(len(text) for text in documents._entries) <= documents.capacity


async def test_what_a_function_cannot_complete_is_completed_by_graphql_core_without_reading_anything_twice() -> None:
    prices = OneBadNode(nodes=3)
    client = QueryClient(prices, now=AT)
    answer = await client.ask(
        "{ a: basePrices(store: 1) { nodes { product price { minor } } } b: prices(store: 2) { nodes { product } } }"
    )
    assert answer["data"]["a"] is None
    assert len(answer["data"]["b"]["nodes"]) == 3  # its last node has no price, either, but nobody asked for it
    assert prices.calls == 2


async def test_a_query_that_is_nested_deeper_than_code_may_be_is_run_by_graphql_core() -> None:
    client = QueryClient(MadePrices(nodes=1), now=AT, limits=Limits(depth=200, cost=10**9))
    depth = 110
    data = await client.data("{ basePrices(store: 1) { nodes { " + "asOf { " * depth + "product" + " }" * depth + " } } }")
    assert data["basePrices"]["nodes"]
    assert client.graphql.executor.slow_runs.counts == {"no function: IndentationError": 1}


async def test_runs_of_graphql_core_are_counted_by_reason_and_logged_ever_less_often(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "pricebook.graphql")
    client = QueryClient(MadePrices())
    for _ in range(10):
        await client.data("{ __schema { queryType { name } } }")
    assert client.graphql.executor.slow_runs.counts == {"introspection": 10}
    assert caplog.records == []  # tools ask for the schema, and nothing is wrong with that
    slow_runs = SlowRuns()
    for _ in range(10):
        slow_runs.count("a reason", "{ a }")
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"graphql-core ran a query (a reason; {number} so far): '{{ a }}'" for number in (1, 2, 4, 8)]


async def test_a_root_field_that_fails_is_null_and_the_others_are_answered_by_the_function() -> None:
    client = QueryClient(MadePrices(nodes=1), now=AT)
    answer = await client.ask(
        '{ a: basePrices(store: "nobody") { nodes { store } } b: basePrices(store: 2) { nodes { store } } }'
    )
    assert answer["data"] == {"a": None, "b": {"nodes": [{"store": "2"}]}}
    (error,) = answer["errors"]
    assert (error["path"], error["extensions"]["code"], error["locations"]) == (["a"], "NOT_FOUND", [{"line": 1, "column": 3}])
    assert not client.slow_runs


class Counted(MadePrices):
    def __init__(self) -> None:
        super().__init__(nodes=64)
        self.batches: list[tuple[int, datetime]] = []

    async def as_of_many(self, keys: Any, at: datetime) -> list[PriceNode | None]:
        self.batches.append((len(keys), at))
        self.calls += 1
        if at.year == 1999:
            raise NotFound("price")
        return [PriceNode(key.store, key.channel, key.type, key.product, Money(1999, "EUR"), at) for key in keys]


@pytest.mark.parametrize("first", [1, 8, 64])
async def test_nested_reads_take_one_call_for_all_nodes_however_many(first: int) -> None:
    prices = Counted()
    client = QueryClient(prices, now=AT)
    then = '"2026-01-01T00:00:00Z"'
    inside = f"product asOf(at: {then}) {{ price {{ minor }} asOf {{ product }} }} now: asOf {{ product }}"
    await client.data(
        f"query ($first: Int) {{ basePrices(store: 1, first: $first) {{ edges {{ node {{ {inside} }} }} }} }}", first=first
    )
    assert prices.calls == 3  # the page, what was then, and what is now: for each node twice, but read once
    assert prices.batches == [(first, datetime.fromisoformat("2026-01-01T00:00:00Z")), (first, AT)]
    assert not client.slow_runs


async def test_graphql_core_batches_nested_reads_too() -> None:
    prices = Counted()
    client = QueryClient(prices, now=AT)
    await client.data("{ basePrices(store: 1) { nodes { asOf { product } } } __schema { queryType { name } } }")
    assert client.slow_runs == 1
    assert prices.calls == 2


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_nested_reads_that_fail_are_not_repeated_by_graphql_core() -> None:
    prices = Counted()
    client = QueryClient(prices, now=AT)
    answer = await client.ask(
        '{ basePrices(store: 1, first: 3) { nodes { product asOf(at: "1999-01-01T00:00:00Z") { product } } } }'
    )
    assert [node["asOf"] for node in answer["data"]["basePrices"]["nodes"]] == [None] * 3
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["NOT_FOUND"] * 3
    assert len(prices.batches) == 1
