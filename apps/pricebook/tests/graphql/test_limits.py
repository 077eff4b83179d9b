"""Limits of what a query may look like."""

from __future__ import annotations

import pytest

from made_prices import MadePrices
from pricebook.graphql.limits import Limits
from query_client import QueryClient

NODES = "{ prices(store: 1) { nodes { %s } } }"


async def refused(query: str, limits: Limits | None = None) -> tuple[str, str]:
    """Return the code and the message of the first error, and check that nothing was run."""
    prices = MadePrices()
    answer = await QueryClient(prices, limits=limits).ask(query)
    assert "data" not in answer
    assert prices.calls == 0
    error = answer["errors"][0]
    return error["extensions"]["code"], error["message"]


@pytest.mark.parametrize(
    ("query", "limits", "code", "message"),
    [
        ("{ __typename }" + " " * 100, Limits(characters=100), "QUERY_TOO_LONG", "the query has 114 characters: 100 is the most"),
        (NODES % "store " * 9, Limits(tokens=30), "TOO_MANY_TOKENS", "more than 30 tokens"),
        (NODES % "price { minor }", Limits(depth=3), "TOO_DEEP", "fields are nested 4 deep: 3 is the most"),
        ("{ a: __typename b: __typename }", Limits(aliases=1), "TOO_MANY_ALIASES", "there are 2 aliases: 1 is the most"),
        (NODES % "store product", Limits(fields=3), "TOO_MANY_FIELDS", "there are 4 fields: 3 is the most"),
        (NODES % "store store store", Limits(comparisons=2), "TOO_MANY_FIELDS", "the same fields are there too often"),
        ("query A { __typename } query B { __typename }", Limits(operations=1), "TOO_MANY_OPERATIONS", "there are 2 operations"),
        ("{ __schema { queryType { name } } }", Limits(introspection=False), "INTROSPECTION_DISABLED", "the schema cannot be"),
        ('{ __type(name: "Money") { n: name } }', None, "TOO_MANY_ALIASES", "fields of the introspection cannot have aliases"),
        ("{ prices(store: " + "[" * 450 + "]" * 450 + ") { nodes { store } } }", None, "TOO_DEEP", "nested too deeply"),
        ("{ a " * 320 + "}" * 320, None, "TOO_DEEP", "nested too deeply"),
    ],
)  # fmt: skip
async def test_each_limit_names_itself_and_what_is_allowed(query: str, limits: Limits | None, code: str, message: str) -> None:
    found, said = await refused(query, limits)
    assert found == code
    assert message in said


@pytest.mark.parametrize("limits", [Limits(depth=4), Limits(aliases=1), Limits(fields=7), Limits(document_nodes=12)])
async def test_what_fragments_have_counts_as_often_as_they_are_used(limits: Limits) -> None:
    fragment = "fragment A on PriceRecord { a: product price { minor } }"
    once = f"{{ prices(store: 1) {{ nodes {{ ...A }} }} }} {fragment}"
    assert await QueryClient(MadePrices(), limits=limits).data(once) is not None
    deeper = NODES % "asOf { ...A } ... { ...A } store"
    await refused(f"{deeper} {fragment}", limits)


async def test_fragments_that_double_at_each_step_are_counted_without_being_followed() -> None:
    steps = " ".join(f"fragment F{n} on PriceRecord {{ ...F{n + 1} ...F{n + 1} }}" for n in range(60))
    code, message = await refused(f"{NODES % '...F0'} {steps} fragment F60 on PriceRecord {{ store }}")
    assert (code, message) == ("TOO_MANY_FIELDS", "there are millions of fields: 500 is the most")


async def test_fragments_that_contain_themselves_are_refused() -> None:
    code, message = await refused(
        f"{NODES % '...A'} fragment A on PriceRecord {{ asOf {{ ...B }} }} fragment B on PriceRecord {{ ...A }}"
    )
    assert code == "GRAPHQL_VALIDATION_FAILED"
    assert "contains itself" in message


async def test_unused_fragments_are_limited_too_since_they_are_validated() -> None:
    assert (await refused("{ __typename } fragment A on PriceRecord { " + "store " * 800 + "}"))[0] == "TOO_MANY_FIELDS"


async def test_names_that_were_meant_are_not_told_where_the_schema_is_not() -> None:
    misspelled = "{ basePrice(store: 1) { __typename } }"
    assert "Did you mean 'basePrices'" in (await refused(misspelled))[1]
    assert (await refused(misspelled, Limits(introspection=False)))[1] == "Cannot query field 'basePrice' on type 'Query'."


async def test_the_query_that_tools_ask_for_the_schema_is_within_the_limits() -> None:
    from graphql import get_introspection_query

    data = await QueryClient(MadePrices()).data(get_introspection_query())
    assert data["__schema"]["queryType"]["name"] == "Query"


async def test_lists_of_types_in_lists_of_types_are_refused() -> None:
    inside = "name"
    for _ in range(3):
        inside = f"fields {{ type {{ {inside} }} }}"
    assert (await refused(f"{{ __schema {{ types {{ {inside} }} }} }}"))[1] == "Maximum introspection depth exceeded"
