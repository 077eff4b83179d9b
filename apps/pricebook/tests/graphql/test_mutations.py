"""Change sets are made, decided and taken back by mutations, which graphql-core runs one after the other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from book import Book
from change_client import CHANGE_SET, ChangeClient, mutation, prices
from pricebook.app import Pricebook
from pricebook.graphql.changes.inputs import MAX_LINES
from query_client import SCHEMA


@pytest.fixture
async def book(opened: Pricebook, clock: Any) -> Book:
    book = Book(opened.db, clock)
    await book.a_store("1", {"P1": 100, "P2": 200})
    await book.a_store("2", {"P1": 100})
    return book


@pytest.fixture
def client(opened: Pricebook, book: Book) -> ChangeClient:
    return ChangeClient(opened)


async def test_a_draft_is_created_as_it_is_described(client: ChangeClient) -> None:
    fields = "changeSet { state rev title reason at day untilAt untilDay createdBy storeCount lineCount }"
    made = await client.do(
        "createPriceChange", fields, title="Spring", reason="a sale", day="2026-03-15", untilAt="2026-04-01T00:00:00+02:00"
    )
    assert made["changeSet"] == {
        "state": "DRAFT",
        "rev": 1,
        "title": "Spring",
        "reason": "a sale",
        "at": None,
        "day": "2026-03-15",
        "untilAt": "2026-03-31T22:00:00Z",
        "untilDay": None,
        "createdBy": "tests",
        "storeCount": 0,
        "lineCount": 0,
    }


async def test_an_edit_replaces_all_that_a_draft_says_and_needs_the_rev_that_was_read(client: ChangeClient) -> None:
    id = await client.draft(reason="a sale", day="2026-03-15")
    fields = "changeSet { title reason day rev }"
    edited = await client.do("editPriceChange", fields, id=id, rev=1, title="Summer")
    assert edited["changeSet"] == {"title": "Summer", "reason": "", "day": None, "rev": 2}
    refused = await client.refused("editPriceChange", id=id, rev=1, title="Autumn")
    assert (refused["code"], refused["rev"]) == ("CONFLICT", 2)
    assert (await client.data("query ($id: ID!) { changeSet(id: $id) { title } }", id=id))["changeSet"] == {"title": "Summer"}


async def test_prices_are_added_replaced_and_removed(client: ChangeClient) -> None:
    id = await client.draft(prices({"P1": 90, "P2": None}))
    again = await client.do("addPrices", f"count {CHANGE_SET}", id=id, prices=prices({"P1": 80, "P3": 300}))
    assert (again["count"], again["changeSet"]["id"]) == (2, id)
    swap = [{**each, "recordType": "Swap", "combination": "MENU1"} for each in prices({"P1": 5}, channel="WEB")]
    await client.do("addPrices", id=id, prices=swap)
    removed = await client.do(
        "removePrices", "count", id=id, prices=[{"store": "1", "product": "P3"}, {"store": "1", "product": "P9"}]
    )
    assert removed["count"] == 1
    lines = "changeSet(id: $id) { lines { nodes { channel recordType product combination price { minor currency } } } }"
    found = (await client.data(f"query ($id: ID!) {{ {lines} }}", id=id))["changeSet"]["lines"]["nodes"]
    assert [(each["channel"], each["recordType"], each["product"], each["combination"], each["price"]) for each in found] == [
        ("ALL", "Base", "P1", None, {"minor": 80, "currency": "EUR"}),
        ("ALL", "Base", "P2", None, None),
        ("WEB", "Swap", "P1", "MENU1", {"minor": 5, "currency": "EUR"}),
    ]


async def test_a_submitted_change_set_is_not_edited_until_it_is_sent_back(client: ChangeClient) -> None:
    id, rev = await client.submitted(prices({"P1": 90}))
    refused = await client.refused("addPrices", id=id, prices=prices({"P1": 80}))
    assert refused["code"] == "NOT_ALLOWED"
    assert "send it back" in refused["message"]
    back = await client.do("sendBackPriceChange", id=id, rev=rev, reason="too cheap")
    assert back["changeSet"]["state"] == "DRAFT"
    await client.do("addPrices", id=id, prices=prices({"P1": 95}))


async def test_an_approval_is_taken_back_and_given_again(client: ChangeClient, book: Book) -> None:
    id = await client.approved(prices({"P1": 90}), day="2026-03-09")
    back = await client.by_another("unapprovePriceChange", id=id, reason="too early")
    assert back["changeSet"]["state"] == "WITHDRAWING"
    await client.change_sets.carry_on(id)
    found = (await client.data("query ($id: ID!) { changeSet(id: $id) { state rev approvedBy } }", id=id))["changeSet"]
    assert (found["state"], found["approvedBy"]) == ("SUBMITTED", None)
    await client.by_another("approvePriceChange", id=id, rev=found["rev"])


async def test_an_approval_of_what_has_changed_since_it_was_read_is_refused(opened: Pricebook, client: ChangeClient) -> None:
    id, rev = await client.submitted(prices({"P1": 90}))
    await client.do("sendBackPriceChange", id=id)
    await client.do("addPrices", id=id, prices=prices({"P1": 9}))
    now = (await client.do("submitPriceChange", id=id))["changeSet"]["rev"]
    refused = await ChangeClient(opened, id="another").refused("approvePriceChange", id=id, rev=rev)
    assert (refused["code"], refused["rev"]) == ("CONFLICT", now)


async def test_whoever_has_submitted_a_change_set_does_not_approve_it(client: ChangeClient) -> None:
    id, rev = await client.submitted(prices({"P1": 90}))
    refused = await client.refused("approvePriceChange", id=id, rev=rev)
    assert refused["code"] == "NOT_ALLOWED"
    assert "somebody else approves it" in refused["message"]


async def test_a_change_set_is_cancelled_for_good(client: ChangeClient) -> None:
    id, rev = await client.submitted(prices({"P1": 90}))
    done = await client.do("cancelPriceChange", "changeSet { state endedAt }", id=id, rev=rev, reason="not now")
    assert done["changeSet"] == {"state": "CANCELLED", "endedAt": "2026-03-01T00:00:04Z"}
    assert (await client.refused("cancelPriceChange", id=id))["code"] == "NOT_ALLOWED"
    assert await client.data("{ changeSets { nodes { id } } }") == {"changeSets": {"nodes": []}}


async def test_prices_that_count_are_rolled_back_by_a_change_set_of_its_own(client: ChangeClient, book: Book) -> None:
    id = await client.approved(prices({"P1": 90}))
    book.pass_()
    assert await book.shown() == {"P1": 90, "P2": 200}
    made = await client.do("rollbackPriceChange", "changeSet { id state rev rollsBackId }", id=id, reason="an error")
    rollback = made["changeSet"]
    assert (rollback["state"], rollback["rollsBackId"]) == ("SUBMITTED", id)
    await client.by_another("approvePriceChange", id=rollback["id"], rev=rollback["rev"])
    await client.change_sets.carry_on(rollback["id"])
    book.pass_()
    assert await book.shown() == {"P1": 100, "P2": 200}
    found = await client.data("query ($id: ID!) { changeSet(id: $id) { supersededById } }", id=id)
    assert found == {"changeSet": {"supersededById": rollback["id"]}}


PRICE = {"minor": 1, "currency": "EUR"}
BAD_PRICES = {
    "no prices": ([], "prices", "is empty"),
    "a price that is left out": ([{"store": "1", "product": "P1"}], "prices[0].price", "is missing: give one, or null"),
    "a currency that is none": (
        [*prices({"P1": 1}), {"store": "1", "product": "P2", "price": {"minor": 1, "currency": "euro"}}],
        "prices[1].price",
        "is not a currency code",
    ),
    "an unknown type": (
        [{"store": "1", "product": "P1", "recordType": "Bas", "price": PRICE}],
        "prices[0].recordType",
        "is unknown",
    ),
    "a Swap without a combination": (
        [{"store": "1", "product": "P1", "recordType": "Swap", "price": PRICE}],
        "prices[0].combination",
        "is missing",
    ),
    "no product": ([{"store": "1", "product": "", "price": PRICE}], "prices[0].product", "is empty"),
    "the same price twice": (
        [*prices({"P1": 1, "P2": 2}), *prices({"P1": 3})],
        "prices[2]",
        "is of the same price as prices[0]: name each once",
    ),
}


@pytest.mark.parametrize("name", BAD_PRICES)
async def test_prices_that_cannot_be_used_are_named_and_none_is_written(client: ChangeClient, name: str) -> None:
    bad, field, says = BAD_PRICES[name]
    id = await client.draft(prices({"P9": 1}))
    for asked in (
        await client.refused("addPrices", id=id, prices=bad),
        await client.refused("changePricesNow", title="now", reason="an error", prices=bad),
    ):
        assert (asked["code"], asked["field"]) == ("INVALID_INPUT", field)
        assert says in asked["message"]
    lines = "query ($id: ID!) { changeSet(id: $id) { rev lines { nodes { product } } } changeSets { nodes { id } } }"
    found = await client.data(lines, id=id)
    assert found == {"changeSet": {"rev": 2, "lines": {"nodes": [{"product": "P9"}]}}, "changeSets": {"nodes": [{"id": id}]}}


async def test_more_prices_than_a_mutation_takes_are_sent_to_the_bulk_upload(client: ChangeClient) -> None:
    id = await client.draft(prices({f"P{n}": n for n in range(MAX_LINES)}))
    refused = await client.refused("addPrices", id=id, prices=prices({f"P{n}": n for n in range(MAX_LINES + 1)}))
    assert refused == {
        "code": "INVALID_INPUT",
        "field": "prices",
        "message": "prices: there are 501, and 500 is the most: send them in parts, or as a file by POST /bulk",
    }
    found = await client.data("query ($id: ID!) { changeSet(id: $id) { rev } }", id=id)
    assert found == {"changeSet": {"rev": 2}}


async def test_fields_at_fault_have_the_names_of_the_schema(client: ChangeClient) -> None:
    refused = await client.refused("createPriceChange", title="Spring", untilAt="2026-04-01T00:00:00Z", untilDay="2026-04-01")
    assert (refused["code"], refused["field"]) == ("INVALID_INPUT", "untilDay")
    assert (await client.refused("createPriceChange", title=" "))["field"] == "title"


NEEDED: dict[str, dict[str, Any]] = {
    "editPriceChange": {"rev": 1, "title": "x"},
    "approvePriceChange": {"rev": 1},
    "addPrices": {"prices": prices({"P1": 1})},
    "removePrices": {"prices": [{"store": "1", "product": "P1"}]},
}


async def test_a_change_set_that_there_is_not_is_not_found(client: ChangeClient) -> None:
    assert SCHEMA.mutation_type is not None
    for name in SCHEMA.mutation_type.fields:
        if name in ("createPriceChange", "changePricesNow"):
            continue
        for id in ("0123456789abcdef", "", "x" * 3_000, "a#b"):
            assert (await client.refused(name, id=id, **NEEDED.get(name, {})))["code"] in ("NOT_FOUND", "INVALID_INPUT"), (
                name,
                id,
            )


async def test_mutations_are_done_in_their_order_and_are_no_surprise(client: ChangeClient) -> None:
    id = await client.draft()
    both = """
      mutation ($id: ID!, $prices: [PriceInput!]!) {
        a: addPrices(input: {id: $id, prices: $prices}) { changeSet { rev lines { nodes { product } } } }
        b: removePrices(input: {id: $id, prices: [{store: "1", product: "P1"}]}) { changeSet { rev lines { nodes { product } } } }
        c: submitPriceChange(input: {id: $id}) { changeSet { state lineCount } }
      }
    """
    assert await client.data(both, id=id, prices=prices({"P1": 1, "P2": 2})) == {
        "a": {"changeSet": {"rev": 2, "lines": {"nodes": [{"product": "P1"}, {"product": "P2"}]}}},
        "b": {"changeSet": {"rev": 3, "lines": {"nodes": [{"product": "P2"}]}}},
        "c": {"changeSet": {"state": "SUBMITTED", "lineCount": 1}},
    }
    assert client.slow_runs == 0


async def test_a_mutation_that_fails_is_null_and_leaves_the_others_as_they_are(client: ChangeClient) -> None:
    two = 'mutation { a: createPriceChange(input: {title: ""}) { %s } b: createPriceChange(input: {title: "x"}) { %s } }'
    answer = await client.ask(two % (CHANGE_SET, CHANGE_SET))
    assert answer["data"]["a"] is None
    assert answer["data"]["b"]["changeSet"]["state"] == "DRAFT"
    assert [error["path"] for error in answer["errors"]] == [["a"]]


@pytest.mark.parametrize("how", ["aliases", "a fragment", "fragments in fragments"])
async def test_there_are_four_mutations_in_a_request_at_most(client: ChangeClient, how: str) -> None:
    def create(n: int) -> str:
        return f'a{n}: createPriceChange(input: {{title: "x"}}) {{ {CHANGE_SET} }}'

    five = " ".join(map(create, range(5)))
    text = {
        "aliases": f"mutation {{ {five} }}",
        "a fragment": f"mutation {{ ...F }} fragment F on Mutation {{ {five} }}",
        "fragments in fragments": f"mutation {{ {create(9)} ...F ...F }} fragment F on Mutation {{ {create(1)} {create(2)} }}",
    }[how]
    answer = await client.ask(text)
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["TOO_MANY_MUTATIONS"]
    assert await client.data("{ changeSets { nodes { id } } }") == {"changeSets": {"nodes": []}}


async def test_a_mutation_costs_more_than_a_read(client: ChangeClient) -> None:
    answer = await client.ask(mutation("createPriceChange"), input={"title": "x"})
    assert answer["extensions"]["cost"]["requestedQueryCost"] == 1_000 + 10 * 5


HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "a long title": ("createPriceChange", {"title": "x" * 90_000}),
    "a long reason": ("createPriceChange", {"title": "x", "reason": "x" * 90_000}),
    "a date at the end of time": ("createPriceChange", {"title": "x", "day": "9999-12-31", "untilDay": "0001-01-01"}),
    "an instant before time": ("createPriceChange", {"title": "x", "at": "0001-01-01T00:00:00+14:00"}),
    "lists in lists": ("createPriceChange", {"title": json.loads("[" * 400 + "]" * 400)}),
    "thousands of prices": ("addPrices", {"id": "x", "prices": prices({f"P{n}": n for n in range(1_500)})}),
    "thousands of wrong prices": ("addPrices", {"id": "x", "prices": [{}] * 20_000}),
    "a long product": ("changePricesNow", {"title": "x", "reason": "y", "prices": prices({"P" * 50_000: 1})}),
    "a long id": ("cancelPriceChange", {"id": "x" * 90_000}),
    "a huge rev": ("approvePriceChange", {"id": "x", "rev": 10**300}),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_inputs_get_an_error_with_a_code_and_change_nothing(client: ChangeClient, name: str) -> None:
    called, input = HOSTILE[name]
    answer = await client.ask(mutation(called), input=input)
    codes = {error["extensions"]["code"] for error in answer["errors"]}
    assert codes <= {"BAD_VARIABLES", "INVALID_INPUT", "NOT_FOUND"}, answer
    assert len(json.dumps(answer)) < 20_000
    assert await client.data("{ changeSets { nodes { id } } }") == {"changeSets": {"nodes": []}}


async def test_names_with_marks_are_names_like_others(client: ChangeClient) -> None:
    names = ["P1#!HEAD", "P1\t", "#", "ü" * 50]
    id = await client.draft(prices(dict.fromkeys(names, 5), channel="W#B"))
    lines = "query ($id: ID!) { changeSet(id: $id) { lines { nodes { channel product } } } }"
    found = (await client.data(lines, id=id))["changeSet"]["lines"]["nodes"]
    assert {(each["channel"], each["product"]) for each in found} == {("W#B", name) for name in names}
    assert await client.data("{ basePrices(store: 1) { nodes { product } } stores { nodes { id } } }")


async def test_variables_that_do_not_fit_an_input_change_nothing(client: ChangeClient) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"title": None},
        {"title": "x", "unknown": 1},
        {"title": "x", "at": "2026-03-15"},
        {"title": "x", "day": "15.3.2026"},
    ]
    for input in wrong:
        assert await client.code(mutation("createPriceChange"), input=input) == "BAD_VARIABLES", input
    amounts: list[Any] = [10**16, 1.5, "100", True, None]
    for minor in amounts:
        bad = [{"store": "1", "product": "P1", "price": {"minor": minor, "currency": "EUR"}}]
        assert await client.code(mutation("addPrices"), input={"id": "x", "prices": bad}) == "BAD_VARIABLES", minor
    assert await client.data("{ changeSets { nodes { id } } }") == {"changeSets": {"nodes": []}}
