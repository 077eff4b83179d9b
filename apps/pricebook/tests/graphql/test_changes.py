"""Change sets are read with their prices, their stores, how far they are, and what they would do."""

from __future__ import annotations

from typing import Any

import pytest

from book import Book
from change_client import ChangeClient, prices
from pricebook.app import Pricebook


@pytest.fixture
async def book(opened: Pricebook, clock: Any) -> Book:
    book = Book(opened.db, clock)
    await book.a_store("1", {"P1": 100, "P2": 200})
    await book.a_store("2", {"P1": 110})
    return book


@pytest.fixture
def client(opened: Pricebook, book: Book) -> ChangeClient:
    return ChangeClient(opened)


async def test_a_change_set_shows_its_prices_beside_those_that_count(client: ChangeClient) -> None:
    id = await client.draft(prices({"P1": 90, "P3": 300}), prices({"P1": 95}, "2"))
    query = "query ($id: ID!, $store: ID) { changeSet(id: $id) { lines(store: $store) { nodes { %s } } } }"
    fields = query % "store product price { minor } asOf { price { minor } }"
    nodes = (await client.data(fields, id=id))["changeSet"]["lines"]["nodes"]
    shown = [(each["store"], each["product"], each["price"]["minor"], each["asOf"]) for each in nodes]
    assert shown == [
        ("1", "P1", 90, {"price": {"minor": 100}}),
        ("1", "P3", 300, None),
        ("2", "P1", 95, {"price": {"minor": 110}}),
    ]
    of_one = (await client.data(fields, id=id, store="2"))["changeSet"]["lines"]["nodes"]
    assert [each["store"] for each in of_one] == ["2"]
    assert client.slow_runs == 0


async def test_a_change_set_shows_its_stores(client: ChangeClient) -> None:
    id, _ = await client.submitted(prices({"P1": 90}), prices({"P1": 95}, "2"), day="2026-03-09")
    fields = "state submittedBy submittedAt storeCount lineCount stores { nodes { store state edition effectiveDate } }"
    found = await client.data(f"query ($id: ID!) {{ changeSet(id: $id) {{ {fields} }} }}", id=id)
    pending = {"state": "PENDING", "edition": None, "effectiveDate": None}
    assert found["changeSet"] == {
        "state": "SUBMITTED",
        "submittedBy": "tests",
        "submittedAt": "2026-03-01T00:00:04Z",
        "storeCount": 2,
        "lineCount": 2,
        "stores": {"nodes": [{"store": "1", **pending}, {"store": "2", **pending}]},
    }


async def test_change_sets_are_listed_newest_first_and_by_state(client: ChangeClient, clock: Any) -> None:
    ids = []
    for n in range(4):
        clock.advance(1)
        make = client.draft if n % 2 else client.submitted
        made = await make(prices({"P1": n + 1}), title=f"number {n}")
        ids.append(made if isinstance(made, str) else made[0])
    fields = "nodes { id } pageInfo { hasNextPage }"
    query = f"query ($state: ChangeSetState, $first: Int) {{ changeSets(state: $state, first: $first) {{ {fields} }} }}"

    async def listed(**arguments: Any) -> tuple[list[str], bool]:
        found = (await client.data(query, **arguments))["changeSets"]
        return [node["id"] for node in found["nodes"]], found["pageInfo"]["hasNextPage"]

    assert await listed() == (ids[::-1], False)
    assert await listed(state="DRAFT") == ([ids[3], ids[1]], False)
    assert await listed(state="SUBMITTED", first=1) == ([ids[2]], True)
    assert await listed(state="APPROVED") == ([], False)
    for id in (ids[3], ids[0]):
        clock.advance(1)
        await client.do("cancelPriceChange", id=id)
    assert await listed() == ([ids[2], ids[1]], False)
    assert await listed(state="CANCELLED") == ([ids[0], ids[3]], False)
    assert await listed(state="CANCELLED", first=1) == ([ids[0]], True)
    assert await listed(state="SETTLED") == ([], False)
    assert client.slow_runs == 0


async def test_a_report_says_what_would_happen(client: ChangeClient) -> None:
    id, _ = await client.submitted(prices({"P1": 50, "P2": 200, "P9": 1, "P3": -5}))
    fields = """
      lines stores added removed raised lowered unchanged errors warnings canApprove firstEffectiveDate
      findings { severity code message otherChangeSetId subject { store channel recordType product combination } }
      largest { subject { product } before { minor } after { minor } share }
    """
    found = (await client.data(f"query ($id: ID!) {{ changeSet(id: $id) {{ report {{ {fields} }} }} }}", id=id))["changeSet"][
        "report"
    ]
    counts = {name: found[name] for name in ("lines", "stores", "added", "removed", "raised", "lowered", "unchanged")}
    assert counts == {"lines": 4, "stores": 1, "added": 2, "removed": 0, "raised": 0, "lowered": 1, "unchanged": 1}
    assert found["canApprove"] is False
    codes = {(each["severity"], each["code"], each["subject"]["product"]) for each in found["findings"]}
    assert ("ERROR", "negative", "P3") in codes
    assert ("WARNING", "large_change", "P1") in codes
    assert {"subject": {"product": "P1"}, "before": {"minor": 100}, "after": {"minor": 50}, "share": -0.5} in found["largest"]
    assert client.slow_runs == 0


async def test_a_report_names_the_change_set_that_has_the_same_price(client: ChangeClient) -> None:
    other = await client.approved(prices({"P1": 90}), day="2026-03-09")
    id, _ = await client.submitted(prices({"P1": 80}), day="2026-03-09")
    fields = "report { canApprove findings { code otherChangeSetId subject { store product } } }"
    found = await client.data(f"query ($id: ID!) {{ changeSet(id: $id) {{ {fields} }} }}", id=id)
    conflict = {"code": "conflict", "otherChangeSetId": other, "subject": {"store": "1", "product": "P1"}}
    assert conflict in found["changeSet"]["report"]["findings"]
    assert not found["changeSet"]["report"]["canApprove"]
