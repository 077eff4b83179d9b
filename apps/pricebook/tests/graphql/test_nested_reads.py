"""What nodes of a list ask for is read together, and what cannot be is read once for each of them, which costs as much."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from made_changes import MadeAudit, MadeChangeSets, made_services
from made_prices import AT, MadePrices
from made_services import MadeServices
from query_client import QueryClient


class Counting:
    """Services that count their reads."""

    def __init__(self, nodes: int) -> None:
        self.services: MadeServices = made_services(MadePrices(nodes=nodes), nodes=nodes)
        self.client = QueryClient(services=self.services, now=AT)

    async def calls(self, query: str) -> dict[str, int]:
        """Return how often each read was called, with those of prices, and make sure that a function ran the query."""
        await self.client.data(query)
        assert not self.client.slow_runs
        sets: MadeChangeSets = self.services.change_sets
        audit: MadeAudit = self.services.audit
        return dict(Counter(sets.calls) + Counter(audit.calls) + Counter(prices=self.services.prices.calls))


@pytest.mark.parametrize("nodes", [1, 8, 64])
async def test_change_sets_of_entries_and_prices_of_lines_take_one_call_however_many(nodes: int) -> None:
    audit = "{ audit(actor: 1) { nodes { changeSet { title } } edges { node { changeSet { id state } } } } }"
    assert await Counting(nodes).calls(audit) == {"entries": 1, "change sets": 1}
    of_product = "{ auditedPrices(product: 1) { nodes { after { minor } changeSet { title rev } } } }"
    assert await Counting(nodes).calls(of_product) == {"prices of a product": 1, "change sets": 1}
    lines = '{ changeSet(id: "C1") { lines { nodes { price { minor } asOf { price { minor } asOf { until } } } } } }'
    assert await Counting(nodes).calls(lines) == {"change set": 1, "lines": 1, "prices": 1}


@pytest.mark.parametrize("nodes", [1, 8, 20])
async def test_what_is_read_for_each_node_is_read_once_for_it_whatever_fields_it_has(nodes: int) -> None:
    fields = "progress { staged sealed } a: lines(first: 2) { nodes { product } } b: lines(first: 2) { pageInfo { endCursor } }"
    query = f"{{ changeSets(first: {nodes}) {{ nodes {{ {fields} }} edges {{ node {{ progress {{ settled }} }} }} }} }}"
    assert await Counting(nodes).calls(query) == {"open": 1, "progress": nodes, "lines": nodes}


async def test_prices_of_entries_are_read_where_they_are_of_an_edition() -> None:
    counting = Counting(64)
    calls = await counting.calls("{ audit(store: 1) { nodes { edition prices(first: 5) { nodes { product } } } } }")
    assert calls == {"entries": 1, "prices of an edition": 1}  # all of them are of one


async def test_after_a_mutation_things_are_read_anew() -> None:
    """`test_mutations.py` has what they are then."""
    services = made_services(MadePrices())
    sets: Any = services.change_sets

    async def submit(caller: Any, id: str, **_: Any) -> Any:
        return await sets.get(caller, id)

    sets.submit = submit
    one = 'submitPriceChange(input: {id: "C1"}) { changeSet { a: progress { staged } b: progress { sealed } } }'
    client = QueryClient(services=services, now=AT)
    await client.data(f"mutation {{ a: {one} b: {one} }}")
    assert Counter(sets.calls)["progress"] == 2


@pytest.mark.parametrize(
    ("fields", "each"),
    [
        ("progress { staged }", 100 + 1 + 1),
        ("report { lines }", 15_000 + 1 + 1),
        ("lines(first: 5) { nodes { product } }", 100 + 1 + 5 * (1 + 1)),
        ("stores(first: 5) { nodes { store } }", 100 + 1 + 5 * (1 + 1)),
        ("lines(first: 5) { nodes { asOf { product } } }", 100 + 1 + 5 * (1 + 50 + 1 + 1)),
    ],
)
async def test_each_nested_read_is_in_the_cost(fields: str, each: int) -> None:
    client = QueryClient(services=made_services(MadePrices()), now=AT)
    answer = await client.ask(f"{{ changeSets(first: 7) {{ nodes {{ {fields} }} }} }}")
    assert answer["extensions"]["cost"]["requestedQueryCost"] == 100 + 1 + 7 * (1 + each)


async def test_reports_of_many_change_sets_are_too_dear() -> None:
    services = made_services(MadePrices())
    code = await QueryClient(services=services, now=AT).code("{ changeSets { nodes { report { errors } } } }")
    assert code == "COST_EXCEEDED"
    assert services.change_sets.calls == []
