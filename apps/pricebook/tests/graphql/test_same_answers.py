"""Compiled functions answer what graphql-core answers, byte for byte."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from made_changes import made_services
from made_prices import AT, MadePrices
from pricebook.graphql.context import RequestContext
from pricebook.graphql.errors import formatted
from pricebook.graphql.executor.reference import ReferenceRun, run_reference
from pricebook.graphql.limits import Limits
from pricebook.graphql.service import GraphqlAnswer, GraphqlRequest
from query_client import SCHEMA, QueryClient
from random_queries import QueryMaker, RandomQuery

ORDINARY, ALL = 300, 5_000
ROOMY = Limits(tokens=5_000, aliases=1_000, fields=2_000, document_nodes=10_000, comparisons=20_000, cost=10**9)

# graphql-core leaves coroutines behind where a value beside them is an error, which is a warning when they are collected.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.fixture
def collected_by_hand(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage while that warning is ignored, and only where it can be: some frames have no `__import__`."""
    caplog.set_level(logging.CRITICAL, "pricebook.graphql")  # what is logged would be kept
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.mark.usefixtures("collected_by_hand")
async def test_random_queries_are_answered_as_graphql_core_does_byte_for_byte(soak: bool) -> None:
    how: Counter[str] = Counter()
    for number in range(ALL if soak else ORDINARY):
        made = QueryMaker(SCHEMA, number).make()
        how[await _compared(made, broken=0.05 if number % 3 == 0 else 0.0)] += 1
        if number % 100 == 0:
            gc.collect()
    assert how["refused"] < 0.05 * how.total(), how
    assert how["compiled"] > 0.85 * how.total(), how
    assert how["graphql-core"] > 0.02 * how.total(), how  # what functions cannot do comes up, too


async def _compared(made: RandomQuery, broken: float) -> str:
    client = QueryClient(services=made_services(MadePrices(broken), broken), now=AT, limits=ROOMY)
    prepared = client.graphql.prepare(GraphqlRequest(made.text, made.variables, made.operation_name))
    if isinstance(prepared, GraphqlAnswer):
        assert b'"BAD_VARIABLES"' in prepared.body, (made, prepared.body)
        return "refused"
    ours = await client.graphql.run(prepared, RequestContext(client.services, client.caller, AT))
    run = ReferenceRun(
        prepared.document,
        made.operation_name,
        made.variables,
        RequestContext(made_services(MadePrices(broken), broken), client.caller, AT),
    )
    theirs = await run_reference(SCHEMA, run)
    expected = {"data": theirs.data} | ({} if theirs.errors is None else {"errors": formatted(theirs.errors)})
    written = msgspec.json.encode(expected)
    assert ours.body[: len(written) - 1] == written[:-1], made
    assert ours.body[len(written) - 1 :].startswith(b',"extensions":{"cost":'), made
    return "graphql-core" if client.slow_runs else "compiled"
