"""The connections of change sets, of the audit and of stores keep the rules of Relay's specification, too."""

from __future__ import annotations

import random
from typing import Any

import pytest

from book import MARCH, Book
from change_client import ChangeClient, prices
from pricebook.app import Pricebook, Settings, open_pricebook
from relay_walk import changed, walk
from tickler import ManualClock

LISTS = {
    "stores": "stores(",
    "change sets": "changeSets(",
    "change sets of a state": "changeSets(state: DRAFT",
    "change sets that are over": "changeSets(state: CANCELLED",
    "prices": 'changeSet(id: "%s") { lines(',
    "prices of a store": 'changeSet(id: "%s") { lines(store: "1"',
    "stores of a change set": 'changeSet(id: "%s") { stores(',
    "entries of a change set": 'audit(changeSet: "%s"',
    "entries of a store": 'audit(store: "1"',
    "entries of an actor": 'audit(actor: "tests"',
    "entries of a day": 'audit(day: "2026-03-01"',
    "prices of a product": 'auditedPrices(product: "P1"',
}


class Filled:
    """A pricebook with some of everything, and a change set that is approved."""

    def __init__(self, opened: Pricebook, clock: ManualClock) -> None:
        self.book = Book(opened.db, clock)
        self.client = ChangeClient(opened)
        self.id = ""

    async def fill(self, drawn: random.Random) -> None:
        stores = ["1", *drawn.sample([str(n) for n in range(2, 60)], drawn.randint(3, 9))]
        for store in stores:
            await self.book.a_store(store)
        self.id = await self.client.approved(*self._lines(drawn, stores, 3), day="2026-03-09")
        for _ in range(drawn.randint(2, 7)):
            self.book.pass_()
            make = drawn.choice([self.client.draft, self.client.submitted])
            await make(*self._lines(drawn, stores, 1))
        for _ in range(drawn.randint(2, 7)):
            await self.client.do("cancelPriceChange", id=await self.client.draft())

    def _lines(self, drawn: random.Random, stores: list[str], most: int) -> list[list[dict[str, Any]]]:
        products = {"P1": 100, **{f"P{drawn.randrange(40)}": drawn.choice([None, 5]) for _ in range(8)}}
        return [prices(products, store) for store in ["1", *drawn.sample(stores[1:], drawn.randint(1, most))]]


@pytest.fixture
async def filled(opened: Pricebook, clock: ManualClock) -> Filled:
    made = Filled(opened, clock)
    await made.fill(random.Random(1))
    return made


@pytest.mark.parametrize("name", LISTS)
async def test_walks_in_random_steps_and_directions_meet_every_edge_once_and_all_flags_are_true(name: str, soak: bool) -> None:
    for seed in range(40 if soak else 1):
        drawn, clock = random.Random(f"{name} {seed}"), ManualClock(MARCH)
        async with open_pricebook(Settings(store="memory://"), clock=clock) as opened:
            filled = Filled(opened, clock)
            await filled.fill(drawn)
            list_ = LISTS[name] % filled.id if "%s" in LISTS[name] else LISTS[name]
            for _ in range(4):
                await walk(filled.client, list_, drawn)


PAGE = "edges { cursor } nodes { __typename } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"


def asked(name: str, id: str, **arguments: Any) -> str:
    """Return a query of a list, with arguments as JSON."""
    list_ = LISTS[name] % id if "%s" in LISTS[name] else LISTS[name]
    given = ", ".join(f'{name}: "{value}"' if isinstance(value, str) else f"{name}: {value}" for name, value in arguments.items())
    return f"{{ {list_}, {given}) {{ {PAGE} }} }}" + " }" * list_.count("{")


def connection_of(data: Any) -> Any:
    while "edges" not in data:
        (data,) = data.values()
    return data


@pytest.mark.parametrize("name", ["change sets", "entries of a change set", "entries of an actor", "entries of a day"])
async def test_a_walk_to_what_is_older_is_not_disturbed_by_what_is_done_meanwhile(name: str, filled: Filled) -> None:
    id = await filled.client.draft(*[prices({f"P{n}": 1}) for n in range(8)])
    node = "id" if name == "change sets" else "id changeSetId"

    async def page(**arguments: Any) -> Any:
        query = asked(name, id, **arguments).replace("__typename", node)
        return connection_of(await filled.client.data(query))

    whole = (await page(first=2_048))["nodes"]
    found = await page(first=3)
    met = found["nodes"]
    while found["pageInfo"]["hasNextPage"]:
        filled.book.pass_()
        await filled.client.draft()
        await filled.client.do("addPrices", id=id, prices=prices({f"Q{len(met)}": 1}))
        found = await page(first=3, after=found["pageInfo"]["endCursor"])
        met += found["nodes"]
        assert found["pageInfo"]["hasPreviousPage"]
    assert met == whole
    assert len(met) > 3


@pytest.mark.parametrize("name", LISTS)
async def test_an_empty_page_is_legal_and_has_no_cursors(name: str, filled: Filled) -> None:
    empty = connection_of(await filled.client.data(asked(name, filled.id, first=0)))
    assert (empty["edges"], empty["nodes"]) == ([], [])
    assert empty["pageInfo"] == {"hasNextPage": True, "hasPreviousPage": False, "startCursor": None, "endCursor": None}


@pytest.mark.parametrize("name", LISTS)
async def test_the_page_info_has_the_cursors_of_the_edges_and_nodes_are_those_of_the_edges(name: str, filled: Filled) -> None:
    page = connection_of(await filled.client.data(asked(name, filled.id, first=2)))
    cursors = [edge["cursor"] for edge in page["edges"]]
    assert (page["pageInfo"]["startCursor"], page["pageInfo"]["endCursor"]) == (cursors[0], cursors[-1])
    assert len(page["nodes"]) == len(cursors)


@pytest.mark.parametrize("name", LISTS)
async def test_sizes_that_make_no_page_are_refused(name: str, filled: Filled) -> None:
    for arguments in ({"first": -1}, {"last": 2_049}, {"first": 1, "last": 1}):
        assert await filled.client.code(asked(name, filled.id, **arguments)) == "INVALID_INPUT"


async def test_cursors_of_other_lists_and_forged_ones_are_refused(filled: Filled) -> None:
    cursors = {}
    for name in LISTS:
        page = connection_of(await filled.client.data(asked(name, filled.id, first=1)))
        cursors[name] = page["pageInfo"]["endCursor"]
    same = {"change sets", "change sets of a state"}  # a part of the same list
    for name in LISTS:
        foreign = [cursor for other, cursor in cursors.items() if other != name and not {name, other} <= same]
        own = cursors[name]
        for number, cursor in enumerate([*foreign, own[:-1], f"{own}A", changed(own), "", "ü", own * 100]):
            side = ("after", "before")[number % 2]
            assert await filled.client.code(asked(name, filled.id, **{side: cursor})) == "INVALID_CURSOR", (name, cursor)


async def test_cursors_of_other_change_sets_are_refused(filled: Filled) -> None:
    other = await filled.client.draft(prices({"P1": 1, "P2": 2}))
    for name in ("prices", "entries of a change set", "prices of a store"):
        page = connection_of(await filled.client.data(asked(name, other, first=1)))
        foreign = page["pageInfo"]["endCursor"]
        assert await filled.client.code(asked(name, filled.id, after=foreign)) == "INVALID_CURSOR", name


async def test_a_cursor_stays_valid_when_what_it_points_at_is_gone(filled: Filled) -> None:
    id = await filled.client.draft(prices({f"P{n}": 1 for n in range(6)}))
    page = connection_of(await filled.client.data(asked("prices", id, first=3)))
    rest = connection_of(await filled.client.data(asked("prices", id, first=9, after=page["pageInfo"]["endCursor"])))
    await filled.client.do("removePrices", id=id, prices=[{"store": "1", "product": "P2"}])
    again = connection_of(await filled.client.data(asked("prices", id, first=9, after=page["pageInfo"]["endCursor"])))
    assert again["edges"] == rest["edges"] or len(again["edges"]) == len(rest["edges"]) == 3
    assert again["pageInfo"]["hasPreviousPage"]


async def test_nested_pages_of_prices_of_an_edition_are_walked_like_others(filled: Filled) -> None:
    query = """
      query ($after: String) { audit(store: "1", last: 1) { nodes { prices(first: 2, after: $after) {
        nodes { product } pageInfo { hasNextPage endCursor } } } } }
    """
    found: list[str] = []
    after = None
    while True:
        (entry,) = (await filled.client.data(query, after=after))["audit"]["nodes"]
        found += [node["product"] for node in entry["prices"]["nodes"]]
        if not entry["prices"]["pageInfo"]["hasNextPage"]:
            break
        after = entry["prices"]["pageInfo"]["endCursor"]
    assert len(found) > 2
    assert found == sorted(set(found))
