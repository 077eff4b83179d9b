"""`/graphql` over HTTP: requests, media types, tokens, and ETags for tills that poll."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from web.asking import Got, ask

from graphql_server import GraphqlServer, serving
from tickler import ManualClock

QUERY = "query ($store: ID!) { basePrices(store: $store) { nodes { product price { minor } } } }"
GRAPHQL_JSON = "application/graphql-response+json"


@pytest.fixture
async def server(clock: ManualClock) -> AsyncIterator[GraphqlServer]:
    async with serving("memory://", clock) as served:
        await served.book.a_store("1", {"P1": 1999, "P2": 250})
        await served.book.a_store("2", {"P1": 1799})
        await served.sign_in("read")
        yield served


def data(got: Got) -> Any:
    assert got.status == 200, got
    answer = json.loads(got.body)
    assert "errors" not in answer, answer
    return answer["data"]


def code(got: Got) -> str:
    found: str = json.loads(got.body)["errors"][0]["extensions"]["code"]
    return found


async def test_a_query_is_answered_by_post_and_by_get(server: GraphqlServer) -> None:
    expected = {
        "basePrices": {"nodes": [{"product": "P1", "price": {"minor": 1999}}, {"product": "P2", "price": {"minor": 250}}]}
    }
    assert data(await server.post(QUERY, {"store": "1"})) == expected
    assert data(await server.get(QUERY, {"store": "1"})) == expected


async def test_the_operation_may_be_named_and_what_is_unknown_is_ignored(server: GraphqlServer) -> None:
    body = {"query": "query A { a: __typename } query B { b: __typename }", "operationName": "B", "extensions": {"x": 1}}
    assert data(await server.send(json.dumps(body).encode())) == {"b": "Query"}
    assert data(await server.get_raw("query=query+A{a:__typename}query+B{b:__typename}&operationName=A")) == {"a": "Query"}


async def test_clients_that_know_the_media_type_of_graphql_get_it_and_a_status_that_says_more(server: GraphqlServer) -> None:
    good, bad = await server.post("{ __typename }", accept=GRAPHQL_JSON), await server.post("{ nothing }", accept=GRAPHQL_JSON)
    assert (good.status, good.headers["content-type"]) == (200, GRAPHQL_JSON)
    assert (bad.status, bad.headers["content-type"]) == (400, GRAPHQL_JSON)
    older = await server.post("{ nothing }")
    assert (older.status, older.headers["content-type"]) == (200, "application/json")
    failed = await server.post('{ basePrices(store: "9") { nodes { product } } }', accept=GRAPHQL_JSON)
    assert (failed.status, code(failed)) == (200, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "send JSON such as"),
        (b"{", "send JSON such as"),
        (b'{"query": 7}', "Expected `str`"),
        (b'{"variables": {}}', "missing required field `query`"),
        (b'{"query": "{ __typename }", "variables": []}', "variables"),
        (b'{"query": "\xff"}', "send JSON such as"),
        (b'{"query": "{ __typename }", "variables": {"store": "\\ud800"}}', "send JSON such as"),
        (b'{"query": "{ __typename }", "variables": ' + b"[" * 50_000, "send JSON such as"),
        (b"[" * 50_000, "several operations cannot be sent at once"),
        (b'[{"query": "{ __typename }"}, {"query": "{ __typename }"}]', "several operations cannot be sent at once"),
    ],
    ids=[
        "empty",
        "cut off",
        "a number",
        "no query",
        "a list of variables",
        "no text",
        "half a character",
        "deep",
        "brackets",
        "a batch",
    ],
)
async def test_what_is_no_request_is_refused_with_an_example(server: GraphqlServer, body: bytes, says: str) -> None:
    got = await server.send(body)
    assert (got.status, code(got)) == (400, "BAD_REQUEST")
    assert says in json.loads(got.body)["errors"][0]["message"]


@pytest.mark.parametrize(
    "parameters",
    ["", "query=", "query=a&query=b", "query={__typename}&variables={", "query={__typename}&variables=[]", "query=%ff"],
)
async def test_parameters_that_are_no_request_are_refused(server: GraphqlServer, parameters: str) -> None:
    got = await server.get_raw(parameters)
    assert (got.status, code(got)) == (400, "BAD_REQUEST")


async def test_only_json_is_read(server: GraphqlServer) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        got = await server.send(b'{"query": "{ __typename }"}', **{"content-type": kind})
        assert got.status == 415, kind
    assert data(await server.send(b'{"query": "{ __typename }"}', **{"content-type": "application/json; charset=utf-8"}))


async def test_a_body_that_is_too_large_is_refused(server: GraphqlServer) -> None:
    assert (await server.post("#" * 200_000)).status == 413


async def test_other_paths_and_methods_say_where_to_go(server: GraphqlServer) -> None:
    missing = await ask(server.app.asgi, "GET", "/nothing", {"authorization": f"Bearer {server.token}"})
    assert (missing.status, missing.problem["detail"]) == (404, "there is no such page: queries go to /graphql")
    wrong = await ask(server.app.asgi, "DELETE", "/graphql", {"authorization": f"Bearer {server.token}"})
    assert wrong.status == 405


async def test_nobody_is_answered_without_a_valid_token(server: GraphqlServer) -> None:
    for token in ("", "pb_0123456789abcdef_" + "0" * 64, server.token[:-1] + ("0" if server.token[-1] != "0" else "1")):
        server.token = token
        got = await server.post(QUERY, {"store": "1"})
        assert got.status == 401
        assert got.headers["www-authenticate"].startswith("Bearer")


async def test_a_token_without_the_role_read_reads_nothing(server: GraphqlServer) -> None:
    await server.sign_in("edit", "approve")
    assert code(await server.post(QUERY, {"store": "1"})) == "NOT_ALLOWED"


async def test_a_token_for_some_stores_finds_no_others(server: GraphqlServer) -> None:
    await server.sign_in("read", stores=["2"])
    assert data(await server.post(QUERY, {"store": "2"}))
    of_others, unknown = await server.post(QUERY, {"store": "1"}), await server.post(QUERY, {"store": "77"})
    assert of_others.body == unknown.body
    assert code(of_others) == "NOT_FOUND"
    across = '{ basePricesByProduct(product: "P1") { nodes { store } pageInfo { hasPreviousPage hasNextPage } } }'
    found = {"nodes": [{"store": "2"}], "pageInfo": {"hasPreviousPage": False, "hasNextPage": False}}
    assert data(await server.post(across)) == {"basePricesByProduct": found}


async def test_a_revoked_token_ends(server: GraphqlServer) -> None:
    id = await server.sign_in("read")
    assert data(await server.post("{ __typename }"))
    assert await server.app.tokens.revoke(id)
    assert (await server.post("{ __typename }")).status == 401


async def test_a_till_that_polls_gets_304_until_prices_of_its_store_change(server: GraphqlServer) -> None:
    first = await server.get(QUERY, {"store": "1"})
    etag = first.headers["etag"]
    assert etag.startswith('W/"')
    assert first.headers["cache-control"] == "private, no-cache"
    again = await server.get(QUERY, {"store": "1"}, if_none_match=etag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    await server.book.change({"P1": 1899})
    assert (await server.get(QUERY, {"store": "1"}, if_none_match=etag)).status == 304  # it is sealed, and counts later
    server.book.pass_()
    changed = await server.get(QUERY, {"store": "1"}, if_none_match=etag)
    assert data(changed)["basePrices"]["nodes"][0] == {"product": "P1", "price": {"minor": 1899}}
    assert changed.headers["etag"] != etag


async def test_changes_of_other_stores_leave_the_etag_of_a_store(server: GraphqlServer) -> None:
    etag = (await server.get(QUERY, {"store": "1"})).headers["etag"]
    await server.book.change({"P1": 1}, store="2")
    server.book.pass_()
    assert (await server.get(QUERY, {"store": "1"}, if_none_match=etag)).status == 304


async def test_an_etag_is_that_of_one_query_with_its_variables(server: GraphqlServer) -> None:
    etag = (await server.get(QUERY, {"store": "1"})).headers["etag"]
    for query, variables in ((QUERY, {"store": "2"}), (QUERY.replace("minor", "currency"), {"store": "1"})):
        assert (await server.get(query, variables, if_none_match=etag)).status == 200
    listed = f'"other", {etag.removeprefix("W/")}'
    assert (await server.get(QUERY, {"store": "1"}, if_none_match=listed)).status == 304


@pytest.mark.parametrize(
    "query",
    [
        '{ basePricesByProduct(product: "P1") { nodes { product } } }',
        '{ upcomingPriceChanges(store: "1") { nodes { product } } }',
        '{ priceAsOf(store: "1", product: "P1", at: "2026-03-01T00:00:00Z") { product } }',
        '{ basePrices(store: "1") { nodes { asOf(at: "2026-04-01T00:00:00Z") { product } } } }',
        '{ a: basePrices(store: "1") { nodes { product } } b: basePricesByProduct(product: "P1") { nodes { product } } }',
        '{ basePrices(store: "77") { nodes { product } } }',
        "{ __schema { queryType { name } } }",
        "{ __typename }",
    ],
)
async def test_what_depends_on_more_than_the_present_prices_of_stores_has_no_etag(server: GraphqlServer, query: str) -> None:
    assert "etag" not in (await server.get(query)).headers


async def test_several_stores_have_one_etag_and_posts_have_none(server: GraphqlServer) -> None:
    both = '{ a: basePrices(store: "1") { nodes { product } } b: prices(store: "2") { nodes { asOf { product } } } __typename }'
    etag = (await server.get(both)).headers["etag"]
    await server.book.change({"P1": 1}, store="2")
    server.book.pass_()
    assert (await server.get(both, if_none_match=etag)).status == 200
    assert "etag" not in (await server.post(both)).headers


async def test_a_304_of_a_store_of_others_is_not_given_away(server: GraphqlServer) -> None:
    etag = (await server.get(QUERY, {"store": "1"})).headers["etag"]
    await server.sign_in("read", stores=["2"])
    got = await server.get(QUERY, {"store": "1"}, if_none_match=etag)
    assert (got.status, code(got)) == (200, "NOT_FOUND")
