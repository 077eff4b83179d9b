"""Over HTTP, tokens change and see what their roles and stores allow, whatever they ask."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from change_client import mutation, prices
from graphql_server import GraphqlServer, serving
from pricebook.access.caller import Role
from tickler import ManualClock

ONE = "query ($id: ID!) { changeSet(id: $id) { id state lines { nodes { store } } } }"


@pytest.fixture
async def server(clock: ManualClock) -> AsyncIterator[GraphqlServer]:
    async with serving("memory://", clock) as served:
        for store in ("10", "11", "20"):
            await served.book.a_store(store, {"P1": 100})
        yield served


async def answer(server: GraphqlServer, query: str, **variables: Any) -> tuple[Any, str | None]:
    """Return the only field of an answer, and the code of its error."""
    found = json.loads((await server.post(query, variables)).body)
    codes = [error["extensions"]["code"] for error in found.get("errors", [])]
    (value,) = found["data"].values()
    return value, codes[0] if codes else None


async def do(server: GraphqlServer, name: str, **input: Any) -> Any:
    payload, code = await answer(server, mutation(name), input=input)
    assert code is None, (name, payload, code)
    return payload["changeSet"]


async def refused(server: GraphqlServer, name: str, **input: Any) -> str | None:
    payload, code = await answer(server, mutation(name), input=input)
    assert payload is None
    return code


async def submitted(server: GraphqlServer, *stores: str) -> Any:
    id = (await do(server, "createPriceChange", title="Spring"))["id"]
    for store in stores:
        await do(server, "addPrices", id=id, prices=prices({"P1": 90}, store))
    return await do(server, "submitPriceChange", id=id)


def inputs(id: str, rev: int) -> dict[str, dict[str, Any]]:
    """Return an input of each mutation that names a change set."""
    return {
        "editPriceChange": {"id": id, "rev": rev, "title": "x"},
        "addPrices": {"id": id, "prices": prices({"P1": 1}, "10")},
        "removePrices": {"id": id, "prices": [{"store": "10", "product": "P1"}]},
        "submitPriceChange": {"id": id},
        "sendBackPriceChange": {"id": id},
        "approvePriceChange": {"id": id, "rev": rev},
        "unapprovePriceChange": {"id": id},
        "cancelPriceChange": {"id": id},
        "rollbackPriceChange": {"id": id},
    }


async def test_a_change_goes_from_draft_to_prices_that_count(server: GraphqlServer) -> None:
    await server.sign_in("read", "edit")
    found = await submitted(server, "10", "11")
    await server.sign_in("read", "approve")
    assert (await do(server, "approvePriceChange", id=found["id"], rev=found["rev"]))["state"] == "APPROVING"
    await server.opened.change_sets.carry_on(found["id"])
    server.book.pass_()
    shown, _ = await answer(server, '{ basePricesByProduct(product: "P1") { nodes { store price { minor } } } }')
    assert [(each["store"], each["price"]["minor"]) for each in shown["nodes"]] == [("10", 90), ("11", 90), ("20", 100)]
    one, _ = await answer(
        server, "query ($id: ID!) { changeSet(id: $id) { state progress { staged sealed settled } } }", id=found["id"]
    )
    assert one == {"state": "APPROVED", "progress": {"staged": 2, "sealed": 2, "settled": 0}}


async def test_a_conflict_names_the_other_change_set(server: GraphqlServer) -> None:
    await server.sign_in("read", "edit")
    ids = []
    for _ in range(2):
        id = (await do(server, "createPriceChange", title="Spring", day="2026-03-09"))["id"]
        await do(server, "addPrices", id=id, prices=prices({"P1": 90}, "10"))
        ids.append(await do(server, "submitPriceChange", id=id))
    await server.sign_in("read", "approve")
    await do(server, "approvePriceChange", id=ids[0]["id"], rev=ids[0]["rev"])
    await server.opened.change_sets.carry_on(ids[0]["id"])
    got = await server.post(mutation("approvePriceChange"), {"input": {"id": ids[1]["id"], "rev": ids[1]["rev"]}})
    (error,) = json.loads(got.body)["errors"]
    assert error["extensions"] == {"code": "CONFLICT", "store": "10", "changeSet": ids[0]["id"]}


EDITING = {"createPriceChange", "editPriceChange", "addPrices", "removePrices", "submitPriceChange", "changePricesNow"}
NOW = {"title": "now", "reason": "an error", "prices": prices({"P1": 1}, "10")}


@pytest.mark.parametrize("roles", [("read",), ("read", "edit"), ("read", "approve")])
async def test_mutations_need_their_role(server: GraphqlServer, roles: tuple[Role, ...]) -> None:
    await server.sign_in("read", "edit")
    found = await submitted(server, "10")
    everything = {"createPriceChange": {"title": "x"}, "changePricesNow": NOW, **inputs(found["id"], found["rev"])}
    await server.sign_in(*roles)
    for name, input in everything.items():
        needed = "edit" if name in EDITING or name == "cancelPriceChange" else "approve"
        lacks = needed not in roles or (name == "changePricesNow" and "approve" not in roles)
        if lacks:
            got = await server.post(mutation(name), {"input": input})
            (error,) = json.loads(got.body)["errors"]
            assert error["extensions"]["code"] == "NOT_ALLOWED", name
            assert "lacks the role" in error["message"], name
    one, _ = await answer(server, ONE, id=found["id"])
    assert one["state"] == "SUBMITTED"


async def test_a_token_that_may_not_read_adds_no_prices_and_makes_drafts_all_the_same(server: GraphqlServer) -> None:
    await server.sign_in("edit")
    made = await do(server, "createPriceChange", title="Spring")
    assert await refused(server, "addPrices", id=made["id"], prices=prices({"P1": 1}, "10")) == "NOT_ALLOWED"
    assert (await answer(server, ONE, id=made["id"]))[1] == "NOT_ALLOWED"
    await server.sign_in("read")
    one, _ = await answer(server, ONE, id=made["id"])
    assert one["lines"]["nodes"] == []


async def test_change_sets_of_other_stores_do_not_exist_for_a_token(server: GraphqlServer) -> None:
    await server.sign_in("read", "edit", "approve")
    found = await submitted(server, "20", "10")
    before, _ = await answer(server, "query ($id: ID!) { audit(changeSet: $id) { nodes { id } } }", id=found["id"])
    await server.sign_in("read", "edit", "approve", stores=["1"])
    for name, input in inputs(found["id"], found["rev"]).items():
        assert await refused(server, name, **input) == "NOT_FOUND", name
    unknown = {"id": "0123456789abcdef"}
    for query in (
        ONE,
        "query ($id: ID!) { audit(changeSet: $id) { nodes { id } } }",
        "query ($id: ID!) { changeSet(id: $id) { report { errors } } }",
    ):
        hidden, missing = await server.post(query, {"id": found["id"]}), await server.post(query, unknown)
        assert hidden.body == missing.body
        assert b'"NOT_FOUND"' in hidden.body
    assert await answer(server, "{ changeSets { nodes { id } pageInfo { hasNextPage } } }") == (
        {"nodes": [], "pageInfo": {"hasNextPage": False}},
        None,
    )
    for query in ('{ audit(day: "2026-03-01") { nodes { changeSetId } } }', '{ audit(actor: "x") { nodes { changeSetId } } }'):
        listed, code = await answer(server, query)
        assert (listed["nodes"], code) == ([], None)
    assert (await answer(server, '{ audit(store: "20") { nodes { id } } }'))[1] == "NOT_FOUND"
    await server.sign_in("read")
    after, _ = await answer(server, "query ($id: ID!) { audit(changeSet: $id) { nodes { id } } }", id=found["id"])
    assert after == before


async def test_prices_of_other_stores_are_not_changed(server: GraphqlServer) -> None:
    await server.sign_in("read", "edit", "approve", stores=["1"])
    id = (await do(server, "createPriceChange", title="Spring"))["id"]
    some = [*prices({"P1": 1}, "10"), *prices({"P1": 1}, "20")]
    assert await refused(server, "addPrices", id=id, prices=some) == "NOT_FOUND"
    assert await refused(server, "changePricesNow", title="now", reason="an error", prices=some) == "NOT_FOUND"
    one, _ = await answer(server, ONE, id=id)
    assert one["lines"]["nodes"] == []
    listed, _ = await answer(server, "{ stores { nodes { id } } }")
    assert listed["nodes"] == [{"id": "10"}, {"id": "11"}]


async def test_emergency_prices_count_at_once_and_are_audited_with_the_request(server: GraphqlServer) -> None:
    await server.sign_in("read", "edit", "approve")
    got = await server.post(mutation("changePricesNow"), {"input": NOW}, **{"x-request-id": "till-7"})
    found = json.loads(got.body)["data"]["changePricesNow"]["changeSet"]
    await server.opened.change_sets.carry_on(found["id"])
    server.book.pass_()
    assert await server.book.shown("10") == {"P1": 1}
    told, _ = await answer(server, "query ($id: ID!) { audit(changeSet: $id) { nodes { request reason } } }", id=found["id"])
    assert {each["request"] for each in told["nodes"]} >= {"till-7"}
    assert "an error" in {each["reason"] for each in told["nodes"]}


async def test_mutations_are_sent_by_post_only(server: GraphqlServer) -> None:
    await server.sign_in("read", "edit")
    got = await server.get(mutation("createPriceChange"), {"input": {"title": "x"}})
    assert (got.status, got.headers["allow"]) == (405, "POST")
    assert (await answer(server, "{ changeSets { nodes { id } } }"))[0] == {"nodes": []}


async def test_change_sets_and_the_audit_have_no_etag(server: GraphqlServer) -> None:
    await server.sign_in("read")
    for query in (
        "{ changeSets { nodes { id } } }",
        '{ audit(store: "10") { nodes { id } } }',
        "{ stores { nodes { version } } }",
    ):
        got = await server.get(query)
        assert got.status == 200
        assert "etag" not in got.headers
