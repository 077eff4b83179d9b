"""Connections keep the rules of Relay's specification, on the real prices of a store."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from book import Book, open_book
from query_client import QueryClient
from relay_walk import changed, walk
from tickler import ManualClock

TODAY = datetime(2026, 3, 8, tzinfo=UTC)
PRODUCTS = [f"P{n:02}" for n in range(10)]
QUERY = """
query ($store: ID!, $first: Int, $after: String, $last: Int, $before: String) {
  basePrices(store: $store, first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { product } } nodes { product }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""


class Page:
    """A connection that was asked for."""

    def __init__(self, connection: Any) -> None:
        self.cursors = [edge["cursor"] for edge in connection["edges"]]
        self.products = [edge["node"]["product"] for edge in connection["edges"]]
        self.nodes = [node["product"] for node in connection["nodes"]]
        info = connection["pageInfo"]
        self.has_next, self.has_previous = info["hasNextPage"], info["hasPreviousPage"]
        self.start, self.end = info["startCursor"], info["endCursor"]


@pytest.fixture
async def client(book: Book) -> QueryClient:
    await book.a_store("1", dict.fromkeys(PRODUCTS, 100))
    return QueryClient(book.prices, now=book.now())


async def page(client: QueryClient, store: str = "1", **arguments: Any) -> Page:
    return Page((await client.data(QUERY, store=store, **arguments))["basePrices"])


async def test_first_gives_the_beginning_and_after_what_follows_its_cursor_without_it(client: QueryClient) -> None:
    start = await page(client, first=3)
    assert start.products == PRODUCTS[:3]
    assert (await page(client, first=3, after=start.end)).products == PRODUCTS[3:6]
    assert (await page(client, first=3, after=start.cursors[0])).products == PRODUCTS[1:4]


async def test_last_gives_the_end_and_before_what_comes_before_its_cursor_without_it(client: QueryClient) -> None:
    end = await page(client, last=3)
    assert end.products == PRODUCTS[-3:]
    assert (await page(client, last=3, before=end.start)).products == PRODUCTS[-6:-3]
    assert (await page(client, last=3, before=end.cursors[-1])).products == PRODUCTS[-4:-1]


async def test_the_order_of_edges_is_the_same_in_both_directions(client: QueryClient) -> None:
    assert (await page(client, last=10)).products == (await page(client, first=10)).products == PRODUCTS


async def test_the_edge_nearest_to_before_is_the_last_one(client: QueryClient) -> None:
    all_of_them = await page(client, first=10)
    assert (await page(client, last=2, before=all_of_them.cursors[5])).products[-1] == PRODUCTS[4]


async def test_before_and_after_bound_a_page_on_both_sides(client: QueryClient) -> None:
    cursors = (await page(client, first=10)).cursors
    between = await page(client, first=10, after=cursors[2], before=cursors[6])
    assert between.products == PRODUCTS[3:6]
    assert (between.has_previous, between.has_next) == (True, True)
    assert (await page(client, last=2, after=cursors[2], before=cursors[6])).products == PRODUCTS[4:6]


async def test_has_next_page_is_true_exactly_if_edges_follow(client: QueryClient) -> None:
    cursors = (await page(client, first=10)).cursors
    assert [(await page(client, first=size)).has_next for size in (0, 9, 10, 11)] == [True, True, False, False]
    assert [(await page(client, last=2, before=before)).has_next for before in (cursors[-1], cursors[3])] == [True, True]
    assert not (await page(client, last=2)).has_next


async def test_has_previous_page_is_true_exactly_if_edges_come_before(client: QueryClient) -> None:
    cursors = (await page(client, first=10)).cursors
    assert [(await page(client, last=size)).has_previous for size in (0, 9, 10, 11)] == [True, True, False, False]
    assert [(await page(client, first=2, after=after)).has_previous for after in (cursors[0], cursors[6])] == [True, True]
    assert not (await page(client, first=2)).has_previous


async def test_an_empty_page_is_legal_and_its_flags_are_true_statements(client: QueryClient) -> None:
    empty = await page(client, first=0)
    assert (empty.products, empty.has_next, empty.has_previous) == ([], True, False)
    last = (await page(client, last=1)).end
    beyond = await page(client, first=5, after=last)
    assert (beyond.products, beyond.has_next, beyond.has_previous) == ([], False, True)


async def test_cursors_of_the_page_info_are_those_of_its_edges_and_null_without_edges(client: QueryClient) -> None:
    some = await page(client, first=4)
    assert (some.start, some.end) == (some.cursors[0], some.cursors[-1])
    none = await page(client, first=0)
    assert (none.start, none.end) == (None, None)


async def test_nodes_are_those_of_the_edges(client: QueryClient) -> None:
    some = await page(client, first=4)
    assert some.nodes == some.products


async def test_the_page_info_alone_is_as_true_as_with_edges(client: QueryClient) -> None:
    data = await client.data("{ basePrices(store: 1, first: 3) { pageInfo { hasNextPage hasPreviousPage } } }")
    assert data == {"basePrices": {"pageInfo": {"hasNextPage": True, "hasPreviousPage": False}}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": -1}, "first: is -1: ask for 0 to 2,048"),
        ({"last": -1}, "last: is -1: ask for 0 to 2,048"),
        ({"first": 2_049}, "first: is 2049: ask for 0 to 2,048"),
        ({"last": 2_049}, "last: is 2049: ask for 0 to 2,048"),
        ({"first": 2, "last": 2}, "first: cannot go with last: ask for one end of the list"),
    ],
)
async def test_sizes_that_make_no_page_are_refused(client: QueryClient, arguments: dict[str, int], message: str) -> None:
    assert await client.error(QUERY, store="1", **arguments) == ("INVALID_INPUT", message)


async def test_a_page_has_64_edges_unless_it_is_told_otherwise_and_2048_at_most(book: Book) -> None:
    await book.a_store("2", {f"P{n:04}": 100 for n in range(2_060)})
    client = QueryClient(book.prices, now=book.now())
    assert len((await page(client, "2")).nodes) == 64
    most = await page(client, "2", first=2_048)
    assert (len(most.nodes), most.has_next) == (2_048, True)
    assert len((await page(client, "2", last=2_048)).nodes) == 2_048


async def test_before_alone_gives_the_64_edges_before_it(book: Book) -> None:
    await book.a_store("2", {f"P{n:03}": 100 for n in range(100)})
    client = QueryClient(book.prices, now=book.now())
    end = await page(client, "2", last=1)
    assert (await page(client, "2", before=end.start)).products == [f"P{n:03}" for n in range(35, 99)]


async def test_a_cursor_stays_valid_when_the_price_that_it_points_at_is_gone(book: Book, client: QueryClient) -> None:
    start = await page(client, first=3)
    await book.change({PRODUCTS[2]: None, PRODUCTS[3]: None})
    book.pass_()
    await book.switch.settle("1")
    assert (await page(client, first=2, after=start.end)).products == PRODUCTS[3:5]  # as they were at the first page
    assert (await page(client, first=4)).products == [*PRODUCTS[:2], *PRODUCTS[4:6]]


async def test_cursors_of_other_queries_are_refused(book: Book, client: QueryClient) -> None:
    await book.a_store("2", {"P01": 100})
    foreign = (await page(client, "2", first=1)).end
    assert await client.code(QUERY, store="1", after=foreign) == "INVALID_CURSOR"
    assert await client.code(QUERY, store="1", before=foreign) == "INVALID_CURSOR"
    own = (await page(client, first=1)).end
    others = [
        'prices(store: 1, type: "Swap"',
        "basePricesByProduct(product: 1",
        'basePrices(store: 1, channel: "WEB"',
        "upcomingPriceChanges(store: 1",
    ]
    for other in others:
        assert await client.code(f'{{ {other}, after: "{own}") {{ __typename }} }}') == "INVALID_CURSOR", other


async def test_forged_cursors_are_refused(client: QueryClient) -> None:
    own = (await page(client, first=1)).end
    assert own is not None
    forged = [own[:-1], own[1:], f"{own}A", changed(own), "", "YXJyYXljb25uZWN0aW9uOjU=", "ü", "\x00", own * 100]
    for cursor in forged:
        assert await client.code(QUERY, store="1", first=1, after=cursor) == "INVALID_CURSOR", cursor


async def test_a_cursor_that_is_older_than_former_prices_are_kept_is_refused(book: Book, client: QueryClient) -> None:
    start = await page(client, first=3)
    book.pass_(timedelta(days=2))
    code, message = await client.error(QUERY, store="1", after=start.end)
    assert code == "INVALID_CURSOR"
    assert "begin with the first page" in message.lower()


LISTS = {
    "basePrices": 'basePrices(store: "1"',
    "channel": 'basePrices(store: "1", channel: "WEB"',
    "prices": 'prices(store: "1", productPrefix: "P1"',
    "product": 'basePricesByProduct(product: "P1"',
    "upcoming": 'upcomingPriceChanges(store: "1"',
    "day": 'changesOn(date: "2026-03-09"',
}


@pytest.mark.parametrize("name", LISTS)
async def test_walks_in_random_steps_and_directions_meet_every_edge_once_and_all_flags_are_true(name: str, soak: bool) -> None:
    for seed in range(40 if soak else 4):
        drawn = random.Random(f"{name} {seed}")
        async with open_book("memory://", ManualClock(TODAY)) as book:
            await _fill(book, drawn)
            client = QueryClient(book.prices, now=book.now())
            for _ in range(4):
                await walk(client, LISTS[name], drawn)


@pytest.mark.parametrize("name", ["basePrices", "channel", "prices", "product"])
async def test_walks_meet_what_was_there_when_they_began_whatever_is_decided_meanwhile(name: str, soak: bool) -> None:
    for seed in range(40 if soak else 4):
        drawn = random.Random(f"{name} {seed}")
        async with open_book("memory://", ManualClock(TODAY)) as book:
            stores = await _fill(book, drawn)
            client = QueryClient(book.prices, now=book.now())

            async def decide(book: Book = book, drawn: random.Random = drawn, stores: list[str] = stores) -> None:
                await _decide_something(book, drawn, stores)

            await walk(client, LISTS[name], drawn, decide)


async def _fill(book: Book, drawn: random.Random) -> list[str]:
    """Make stores with prices, of which some have changes to come."""
    stores = ["1", *drawn.sample([str(n) for n in range(2, 40)], drawn.randint(0, 12))]
    for store in stores:
        products = drawn.sample([f"P{n}" for n in range(40)], drawn.randint(1, 30))
        await book.a_store(store, dict.fromkeys([*products, "P1"], 100))
        await book.change(dict.fromkeys(drawn.sample(products, drawn.randint(1, len(products))), 90), store=store, channel="WEB")
        for days in drawn.sample(range(1, 9), drawn.randint(1, 3)):
            chosen = dict.fromkeys(drawn.sample(products, drawn.randint(1, len(products))), 80)
            await book.change(chosen, store=store, at=(TODAY + timedelta(days=days)).date())
    book.pass_()
    return stores


async def _decide_something(book: Book, drawn: random.Random, stores: list[str]) -> None:
    store = drawn.choice(stores)
    prices = {f"P{drawn.randrange(45)}": drawn.choice([None, 70]) for _ in range(5)}
    number = await book.change(prices, store=store, channel=drawn.choice(["ALL", "WEB"]))
    if drawn.random() < 0.3:
        await book.switch.cancel(store, number)
    book.pass_(timedelta(seconds=drawn.choice([1, 3, 600])))
    if drawn.random() < 0.5:
        await book.switch.settle(store)
