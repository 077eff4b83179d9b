"""The audit is read by store, change set, actor, day and product."""

from __future__ import annotations

from typing import Any

import pytest

from book import Book
from change_client import ChangeClient, prices
from pricebook.app import Pricebook

ENTRIES = "nodes { action actor reason request store edition changeSetId stateBefore stateAfter lines changeSet { title } }"


@pytest.fixture
async def book(opened: Pricebook, clock: Any) -> Book:
    book = Book(opened.db, clock)
    await book.a_store("1", {"P1": 100, "P2": 200})
    return book


@pytest.fixture
def client(opened: Pricebook, book: Book) -> ChangeClient:
    return ChangeClient(opened)


async def entries(client: ChangeClient, fields: str = ENTRIES, **of: str) -> list[Any]:
    arguments = ", ".join(f'{name}: "{value}"' for name, value in of.items())
    found: list[Any] = (await client.data(f"{{ audit({arguments}) {{ {fields} }} }}"))["audit"]["nodes"]
    return found


async def test_what_was_done_to_a_change_set_is_told_latest_first(client: ChangeClient) -> None:
    id, rev = await client.submitted(prices({"P1": 90}))
    await client.do("sendBackPriceChange", id=id, rev=rev, reason="too cheap")
    found = await entries(client, changeSet=id)
    assert [(each["action"], each["stateBefore"], each["stateAfter"], each["lines"]) for each in found[:2]] == [
        ("send_back", "SUBMITTED", "DRAFT", None),
        ("submit", "DRAFT", "SUBMITTED", None),
    ]
    assert [each["lines"] for each in found if each["lines"]] == [1]
    assert {(each["actor"], each["changeSetId"], each["changeSet"]["title"]) for each in found} == {("tests", id, "Spring")}
    assert found[0]["reason"] == "too cheap"
    assert client.slow_runs == 0


async def test_one_of_the_ways_to_ask_is_named_and_no_other(client: ChangeClient) -> None:
    for arguments in ("first: 5", 'store: "1", actor: "tests"', 'changeSet: "x", day: "2026-03-01"'):
        code, message = await client.error(f"{{ audit({arguments}) {{ nodes {{ id }} }} }}")
        assert (code, message) == ("INVALID_INPUT", "audit: name one of store, changeSet, actor or day, and no other")


async def test_an_approval_is_told_by_store_actor_day_and_product(client: ChangeClient) -> None:
    id = await client.approved(prices({"P1": 90, "P2": None}), reason="a sale")
    editions = "before { state } after { state effectiveDate }"
    of_store = f"nodes {{ action changeSetId {editions} prices {{ nodes {{ product before {{ minor }} after {{ minor }} }} }} }}"
    found = [each for each in await entries(client, of_store, store="1") if each["changeSetId"] == id]
    sealed = next(each for each in found if each["action"] == "seal")
    assert (sealed["before"]["state"], sealed["after"]["state"]) == ("open", "sealed")
    assert sealed["prices"]["nodes"] == [
        {"product": "P1", "before": {"minor": 100}, "after": {"minor": 90}},
        {"product": "P2", "before": {"minor": 200}, "after": None},
    ]
    assert {each["action"] for each in await entries(client, actor="tests")} == {"create", "put_lines", "submit"}
    decided = [each["action"] for each in await entries(client, actor="another")]
    assert {"approve", "seal"} <= set(decided)
    of_day = await entries(client, day="2026-03-01")
    assert [each["action"] for each in of_day if each["actor"] == "another"] == decided
    assert await entries(client, day="2026-02-28") == []
    query = '{ auditedPrices(product: "P1") { nodes { store edition changeSet { id state } before { minor } after { minor } } } }'
    (price,) = (await client.data(query))["auditedPrices"]["nodes"]
    assert price["changeSet"]["id"] == id
    assert (price["before"], price["after"]) == ({"minor": 100}, {"minor": 90})
    assert client.slow_runs == 0
