"""Mutations run in graphql-core, one after the other, within the same limits. The schema of these tests has one of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
import strawberry

from made_prices import AT, MadePrices
from made_services import MadeServices
from pricebook.access.caller import Caller
from pricebook.graphql.context import Info, RequestContext
from pricebook.graphql.schema import build_schema
from pricebook.graphql.service import Graphql, GraphqlRequest

done: list[str] = []


async def _note(info: Info, text: str) -> str:
    info.context.caller.require("edit")
    done.append(text)
    return text


@strawberry.type
class Mutation:
    note: str | None = strawberry.field(resolver=_note)


SCHEMA = build_schema(Mutation)


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    done.clear()


async def answer(graphql: Graphql, query: str, *roles: Any) -> dict[str, Any]:
    context = RequestContext(MadeServices(MadePrices()), Caller("tests", frozenset(roles)), AT)
    found: dict[str, Any] = json.loads((await graphql.answer(GraphqlRequest(query), context)).body)
    return found


async def test_mutations_are_done_in_their_order_and_are_no_surprise() -> None:
    graphql = Graphql(SCHEMA)
    found = await answer(graphql, 'mutation { a: note(text: "1") b: note(text: "2") c: note(text: "3") }', "edit")
    assert found["data"] == {"a": "1", "b": "2", "c": "3"}
    assert done == ["1", "2", "3"]
    assert not graphql.executor.slow_runs.counts


async def test_mutations_of_callers_without_the_role_do_nothing() -> None:
    found = await answer(Graphql(SCHEMA), 'mutation { note(text: "1") }', "read")
    assert found["data"] == {"note": None}
    assert found["errors"][0]["extensions"]["code"] == "NOT_ALLOWED"
    assert done == []


async def test_there_are_four_mutations_in_a_request_at_most() -> None:
    five = "mutation { ...F } fragment F on Mutation { " + " ".join(f'a{n}: note(text: "{n}")' for n in range(5)) + " }"
    found = await answer(Graphql(SCHEMA), five, "edit")
    assert found["errors"][0]["extensions"]["code"] == "TOO_MANY_MUTATIONS"
    assert done == []
