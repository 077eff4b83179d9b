"""What queries cost, and that too dear ones are refused before anything is read."""

from __future__ import annotations

from typing import Any

import graphql as core
import pytest

from made_prices import AT, MadePrices
from pricebook.graphql.cost import READ, Cost
from pricebook.graphql.executor.plan import Planner
from pricebook.graphql.limits import Limits
from query_client import QueryClient


async def cost_of(query: str, **variables: Any) -> int:
    answer = await QueryClient(MadePrices(), now=AT).ask(query, **variables)
    cost: int = answer["extensions"]["cost"]["requestedQueryCost"]
    return cost


async def test_each_value_of_the_answer_costs_one_and_each_read_a_hundred() -> None:
    assert await cost_of('{ priceAsOf(store: 1, product: 2, at: "2026-03-15T00:00:00Z") { product } }') == READ + 2
    assert await cost_of("{ __typename }") == 1


@pytest.mark.parametrize(
    ("arguments", "nodes"), [("first: 10", 10), ("last: 7", 7), ("", 64), ("first: 0", 0), ("first: null", 64)]
)
async def test_what_is_in_a_list_costs_as_often_as_the_page_has_nodes(arguments: str, nodes: int) -> None:
    query = (
        f"{{ prices(store: 1{',' if arguments else ''} {arguments}) {{ nodes {{ product channel }} pageInfo {{ endCursor }} }} }}"
    )
    assert await cost_of(query) == READ + 1 + nodes * 3 + 2


async def test_the_size_of_a_page_may_be_a_variable_with_a_default() -> None:
    query = "query ($first: Int = 10) { prices(store: 1, first: $first) { nodes { product } } }"
    assert await cost_of(query) == READ + 1 + 10 * 2
    assert await cost_of(query, first=20) == READ + 1 + 20 * 2
    assert await cost_of(query, first=None) == READ + 1 + 64 * 2


async def test_a_page_that_is_too_large_costs_what_the_largest_does_and_is_refused_for_its_size() -> None:
    client = QueryClient(MadePrices(), now=AT)
    answer = await client.ask("{ prices(store: 1, first: 2147483647) { nodes { product } } }")
    assert answer["extensions"]["cost"]["requestedQueryCost"] == READ + 1 + 2_048 * 2
    assert [error["message"] for error in answer["errors"]] == ["first: is 2147483647: ask for 0 to 2,048"]
    assert await cost_of("{ prices(store: 1, first: -5) { nodes { product } } }") == READ + 1


async def test_fields_under_one_name_and_those_that_are_skipped_cost_nothing() -> None:
    once = await cost_of("{ prices(store: 1) { nodes { product } } }")
    assert (
        await cost_of(
            "{ prices(store: 1) { nodes { product } } ...A } fragment A on Query { prices(store: 1) { nodes { product } } }"
        )
        == once
    )
    skipped = "query ($x: Boolean!) { prices(store: 1) { nodes { product store @skip(if: $x) } } }"
    assert await cost_of(skipped, x=True) == once
    assert await cost_of(skipped, x=False) == once + 64


async def test_nested_reads_cost_more_than_values() -> None:
    plain = await cost_of("{ prices(store: 1, first: 10) { nodes { product } } }")
    assert await cost_of("{ prices(store: 1, first: 10) { nodes { product asOf { product } } } }") == plain + 10 * (50 + 2)


SHOPS = core.build_schema("""
    type Query { shops(first: Int, last: Int): Shops thing: Thing schedule: [Item] }
    type Shops { nodes: [Shop] }
    type Shop { items(first: Int, last: Int): Items }
    type Items { nodes: [Item] }
    type Item { name: String price: Int tags: [String] }
    type Note { text: String }
    union Thing = Item | Note
""")


def cost_in_shops(query: str, **variables: Any) -> int:
    document = core.parse(query)
    assert core.validate(SHOPS, document) == []
    operation: Any = document.definitions[0]
    fragments = {each.name.value: each for each in document.definitions if isinstance(each, core.FragmentDefinitionNode)}
    return Cost(Planner(SHOPS, fragments, {}).plan(operation)).of(variables)


def test_sizes_of_nested_pages_compound() -> None:
    small = cost_in_shops("{ shops(first: 3) { nodes { items(last: 2) { nodes { name } } } } }")
    large = cost_in_shops("query ($n: Int) { shops(first: $n) { nodes { items(last: $n) { nodes { name } } } } }", n=100)
    assert small < 4_000
    assert large > 100 * 100 * 10


def test_lists_that_are_no_pages_count_as_ten_wherever_they_are() -> None:
    at_root = cost_in_shops("{ schedule { name } }")
    tags = cost_in_shops("{ schedule { tags } }")
    assert tags - at_root == 10 * (READ + 10 * 10 - (READ + 10))


def test_of_several_types_the_dearest_counts() -> None:
    item = cost_in_shops("{ thing { ... on Item { name price } } }")
    both = cost_in_shops("{ thing { ... on Item { name price } ... on Note { text } } }")
    assert both == item


async def test_a_query_that_is_too_dear_is_refused_with_its_cost_and_nothing_is_read() -> None:
    prices = MadePrices()
    client = QueryClient(prices, limits=Limits(cost=1_000))
    query = "query ($first: Int) { prices(store: 1, first: $first) { nodes { product } } }"
    assert await client.data(query, first=400)
    answer = await client.ask(query, first=500)
    (error,) = answer["errors"]
    assert error["extensions"]["code"] == "COST_EXCEEDED"
    assert error["message"] == "the query costs 1,101, and 1,000 is the most: ask for smaller pages or fewer fields"
    assert answer["extensions"]["cost"] == {"requestedQueryCost": 1_101, "maximumAvailable": 1_000}
    assert "data" not in answer
    assert prices.calls == 1


async def test_the_largest_page_with_all_fields_of_its_prices_can_be_afforded() -> None:
    money = "{ minor currency }"
    fields = f"store channel product price {money} effectiveDate until lowest30Days {money}"
    query = f"{{ basePrices(store: 1, first: 2048) {{ edges {{ cursor node {{ {fields} }} }} pageInfo {{ hasNextPage }} }} }}"
    assert 25_000 < await cost_of(query) < Limits().cost


async def test_what_only_graphql_core_can_run_costs_ten_times_as_much_since_it_takes_longer() -> None:
    alone = await cost_of("{ prices(store: 1) { nodes { product } } }")
    with_schema = await cost_of("{ prices(store: 1) { nodes { product } } __schema { queryType { name } } }")
    assert with_schema == (alone - READ) * 10 + READ + 10_000
