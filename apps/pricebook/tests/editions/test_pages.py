"""Pages of prices: the rules of Relay's connections, in both directions, over any data and any page size."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from random import Random

import pytest

from book import Book, open_book, staged
from pricebook.editions.pages import DEFAULT_PAGE, MAX_PAGE, PageArgs, PriceNode, PricePage
from pricebook.errors import InvalidCursor, InvalidField, NotFound
from pricebook.model import PriceKey
from tickler import ManualClock
from tickler.table import MISSING

Between = Callable[[], Awaitable[None]]

SIZES = (1, 2, 3, 7, 64)


async def a_random_book(book: Book, random: Random) -> None:
    """Fill a book with stores, channels and types, of whose products some have no price any more."""
    for store in ("1", "10", "2", "A#1"):
        await book.a_store(store)
        for channel in ("ALL", "WEB"):
            names = random.sample([f"P{n}" for n in range(12)] + ["P1#x", "Q%", "Ä", "𝔓"], random.randint(0, 14))
            await book.change({name: random.randint(1, 99) for name in names}, store=store, channel=channel)
            swaps = {f"{combo}/{choice}": random.randint(1, 99) for combo in ("C1", "C2") for choice in random.sample("ABCD", 3)}
            await book.change(swaps, store=store, channel=channel, type="Swap")
            book.pass_()
            gone = {name: None for name in names if random.random() < 0.3}
            await book.change(gone, store=store, channel=channel)
            book.pass_()
            if random.random() < 0.5:
                await book.switch.settle(store)


async def read(book: Book, what: str, page: PageArgs) -> PricePage:
    kind, name, channel, type = what.split()
    if kind == "store":
        return await book.prices.of_store(name, channel=channel, type=type, page=page)
    return await book.prices.of_product(name, channel=channel, type=type, page=page)


async def expected(book: Book, what: str) -> list[PriceNode]:
    """Return all prices of a list, each looked up by itself, in the order of the list."""
    kind, name, channel, type = what.split()
    products = ["C1", "C2"] if type == "Swap" else [*[f"P{n}" for n in range(12)], "P1#x", "Q%", "Ä", "𝔓"]
    pairs = [(name, each) for each in products] if kind == "store" else [(each, name) for each in ("1", "10", "2", "A#1")]
    choices = "ABCD" if type == "Swap" else [None]
    keys = [PriceKey(store, channel, type, product, choice) for store, product in pairs for choice in choices]
    found = await book.prices.as_of_many(keys, book.now())
    nodes = [node for node in found if node is not None]
    return sorted(nodes, key=lambda node: (node.product if kind == "store" else node.store, node.combination or ""))


LISTS = [
    *(f"store {store} {channel} {type}" for store in ("1", "A#1") for channel in ("ALL", "WEB") for type in ("Base", "Swap")),
    *(f"product {product} {channel} Base" for product in ("P3", "P1#x", "Ä") for channel in ("ALL", "WEB")),
    "product C1 WEB Swap",
]


@pytest.mark.parametrize("number", range(3))
async def test_pages_of_any_size_in_either_direction_are_the_list_and_tell_the_truth_about_what_is_around_them(
    book: Book, number: int, seed: int
) -> None:
    await a_random_book(book, Random(f"{seed} {number}"))
    assert await check_all_lists(book, SIZES) > 50


async def test_pages_are_the_list_on_each_store(stored_url: str, clock: ManualClock, soak: bool, seed: int) -> None:
    async with open_book(stored_url, clock) as book:
        await a_random_book(book, Random(seed))
        assert await check_all_lists(book, SIZES if soak else (2, 64)) > 50


async def check_all_lists(book: Book, sizes: Sequence[int]) -> int:
    found = 0
    for what in LISTS:
        nodes = await expected(book, what)
        found += len(nodes)
        for size in sizes:
            assert await forwards(book, what, size) == nodes
            assert await backwards(book, what, size) == nodes
    return found


@pytest.mark.parametrize("number", range(6))
async def test_a_traversal_shows_the_prices_of_its_first_instant_whatever_is_written_between_its_pages(
    book: Book, number: int, seed: int
) -> None:
    random = Random(f"{seed} {number}")
    await a_random_book(book, random)
    for what in ["store 1 WEB Base", "store 1 ALL Base", "product P3 WEB Base"] * 6:
        nodes = await expected(book, what)
        walk = forwards if random.random() < 0.5 else backwards
        assert await walk(book, what, random.randint(1, 4), lambda: write_something(book, random)) == nodes


async def write_something(book: Book, random: Random) -> None:
    """Let the switch do something in a store, so that other prices count a moment later."""
    store = random.choice(("1", "2"))
    choice = random.random()
    if choice < 0.5:
        prices = {f"P{n}": random.choice((None, *range(200, 300))) for n in random.sample(range(12), 6)}
        await book.change(prices, store=store, channel=random.choice(("ALL", "WEB")))
    elif choice < 0.7:
        await book.switch.settle(store)
    else:
        numbers = [n for n, each in (await book.head(store)).editions.items() if each.state == "sealed" and each.to_at is MISSING]
        if numbers:
            await book.switch.roll_back(store, random.choice(numbers))
    book.pass_(timedelta(seconds=random.choice((0.001, 1, 3))))


async def nothing() -> None:
    pass


async def forwards(book: Book, what: str, size: int, between: Between = nothing) -> list[PriceNode]:
    nodes: list[PriceNode] = []
    after: str | None = None
    while True:
        page = await read(book, what, PageArgs(first=size, after=after))
        assert page.has_previous == bool(nodes)
        nodes += page.nodes
        if not page.has_next:
            return nodes
        assert len(page.edges) == size
        after = page.end_cursor
        await between()


async def backwards(book: Book, what: str, size: int, between: Between = nothing) -> list[PriceNode]:
    nodes: list[PriceNode] = []
    before: str | None = None
    while True:
        page = await read(book, what, PageArgs(last=size, before=before))
        assert page.has_next == bool(nodes)
        nodes = page.nodes + nodes
        if not page.has_previous:
            return nodes
        before = page.start_cursor
        await between()


async def test_each_window_between_two_cursors_is_cut_as_relay_says(book: Book) -> None:
    """Apply `after` and `before`, then `first` cuts the tail, or `last` cuts the head."""
    await book.a_store(prices={f"P{n}": n for n in range(8)})
    whole = await book.prices.of_store("1", page=PageArgs(first=8))
    cursors = [edge.cursor for edge in whole.edges]
    for low in (None, *range(8)):
        for high in (None, *range(8)):
            bounds = {"after": None if low is None else cursors[low], "before": None if high is None else cursors[high]}
            inside = list(range(0 if low is None else low + 1, 8 if high is None else high))
            for size in (0, 1, 3, 8):
                page = await book.prices.of_store("1", page=PageArgs(first=size, **bounds))
                assert [node.amount.minor for node in page.nodes] == inside[:size]
                assert page.has_next == (len(inside) > size or high is not None)
                page = await book.prices.of_store("1", page=PageArgs(last=size, **bounds))
                assert [node.amount.minor for node in page.nodes] == (inside[-size:] if size else [])
                assert page.has_previous == (len(inside) > size or low is not None)


async def test_first_0_and_last_0_say_whether_there_is_anything(book: Book) -> None:
    await book.a_store(prices={"P1": 1})
    await book.a_store("2")
    for store, any_ in (("1", True), ("2", False)):
        page = await book.prices.of_store(store, page=PageArgs(first=0))
        assert (page.edges, page.has_next, page.has_previous) == ([], any_, False)
        assert (page.start_cursor, page.end_cursor) == (None, None)
        page = await book.prices.of_store(store, page=PageArgs(last=0))
        assert (page.edges, page.has_next, page.has_previous) == ([], False, any_)


async def test_a_page_has_64_prices_unless_another_size_is_asked_for_and_at_most_2048(book: Book) -> None:
    await book.a_store(prices={f"P{n:04}": n for n in range(2_100)})
    assert len((await book.prices.of_store("1", page=PageArgs())).edges) == DEFAULT_PAGE == 64
    page = await book.prices.of_store("1", page=PageArgs(first=2_048))
    assert (len(page.edges), page.has_next) == (MAX_PAGE, True)
    assert len((await book.prices.of_store("1", page=PageArgs(first=MAX_PAGE, after=page.end_cursor))).edges) == 52
    last = await book.prices.of_store("1", page=PageArgs(before=page.end_cursor))
    assert [node.product for node in last.nodes] == [f"P{n:04}" for n in range(2_047 - 64, 2_047)]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (PageArgs(first=1, last=1), "first: cannot go with last: ask for one end of the list"),
        (PageArgs(first=-1), "first: is -1: ask for 0 to 2,048"),
        (PageArgs(last=2_049), "last: is 2049: ask for 0 to 2,048"),
    ],
)
async def test_a_page_that_cannot_be_is_refused(book: Book, page: PageArgs, reason: str) -> None:
    await book.a_store()
    for pages in (book.prices.of_store("1", page=page), book.prices.upcoming("1", page=page)):
        with pytest.raises(InvalidField) as refused:
            await pages
        assert str(refused.value) == reason


async def test_cursors_of_other_queries_and_forged_ones_are_refused(book: Book) -> None:
    await book.a_store(prices={"P1": 1, "P2": 2})
    await book.a_store("2", prices={"P1": 1, "P2": 2})
    cursor = (await book.prices.of_store("1", page=PageArgs(first=1))).end_cursor
    assert cursor is not None
    prices = book.prices
    for pages in (
        prices.of_store("2", page=PageArgs(after=cursor)),
        prices.of_store("1", channel="WEB", page=PageArgs(after=cursor)),
        prices.of_store("1", product_prefix="P", page=PageArgs(after=cursor)),
        prices.of_product("P1", page=PageArgs(after=cursor)),
        prices.upcoming("1", page=PageArgs(after=cursor)),
        prices.of_store("1", page=PageArgs(before=cursor[:-2] + "AA")),
    ):
        with pytest.raises(InvalidCursor, match="belongs to another query, or was changed"):
            await pages
    for text in ("", "x", "ä", "!!!!", "A" * 10_000):
        with pytest.raises(InvalidCursor):
            await prices.of_store("1", page=PageArgs(after=text))


async def test_cursors_of_two_traversals_do_not_go_together(book: Book) -> None:
    await book.a_store(prices={"P1": 1, "P2": 2})
    one = await book.prices.of_store("1", page=PageArgs(first=1))
    book.pass_()
    other = await book.prices.of_store("1", page=PageArgs(last=1))
    with pytest.raises(InvalidCursor, match="the cursors are of two traversals"):
        await book.prices.of_store("1", page=PageArgs(first=1, after=one.end_cursor, before=other.start_cursor))


async def test_cursors_are_taken_by_other_processes(book: Book) -> None:
    await book.a_store(prices={"P1": 1, "P2": 2})
    page = await book.prices.of_store("1", page=PageArgs(first=1))
    other = Book(book.db, book.clock)
    assert [node.product for node in (await other.prices.of_store("1", page=PageArgs(after=page.end_cursor))).nodes] == ["P2"]


async def test_prices_of_a_prefix_are_those_whose_product_begins_with_it(book: Book) -> None:
    await book.a_store(prices={"A1": 1, "B1": 2, "B2": 3, "B": 4, "C": 5})
    page = await book.prices.of_store("1", product_prefix="B", page=PageArgs(first=2))
    assert ([node.product for node in page.nodes], page.has_next) == (["B", "B1"], True)
    page = await book.prices.of_store("1", product_prefix="B", page=PageArgs(first=2, after=page.end_cursor))
    assert ([node.product for node in page.nodes], page.has_next) == (["B2"], False)


async def test_there_is_nothing_to_read_of_a_store_that_does_not_exist(book: Book) -> None:
    for pages in (book.prices.of_store("9", page=PageArgs()), book.prices.upcoming("9", page=PageArgs())):
        with pytest.raises(NotFound, match="there is no such store"):
            await pages
    with pytest.raises(NotFound):
        await book.prices.version("9")
    assert (await book.prices.of_product("P9", page=PageArgs())).edges == []
    with pytest.raises(InvalidField, match="type: 'Bundle' is unknown"):
        await book.prices.of_product("P9", type="Bundle", page=PageArgs())


async def test_a_product_without_a_price_in_between_is_not_counted_as_an_edge(book: Book) -> None:
    await book.a_store(prices={f"P{n:03}": n for n in range(200)})
    number = await book.switch.open_edition("1")
    await book.switch.stage("1", number, staged({f"P{n:03}": None for n in range(1, 199)}))
    await book.switch.seal("1", number)
    book.pass_()
    page = await book.prices.of_store("1", page=PageArgs(first=1))
    assert ([node.product for node in page.nodes], page.has_next) == (["P000"], True)
    page = await book.prices.of_store("1", page=PageArgs(first=1, after=page.end_cursor))
    assert ([node.product for node in page.nodes], page.has_next, page.has_previous) == (["P199"], False, True)
