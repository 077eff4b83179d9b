"""The list of stores: by id, in both directions, and only those that a caller may see."""

from __future__ import annotations

import pytest

from pricebook.access.caller import Caller
from pricebook.app import Pricebook
from pricebook.editions.pages import PageArgs
from pricebook.errors import InvalidCursor, LacksRole
from pricebook.stores.stores import shortest

ALL = [f"{number}" for number in range(100, 125)]
READER = Caller("anna", frozenset({"read"}))


@pytest.fixture
async def book(opened_anywhere: Pricebook) -> Pricebook:
    for store in ALL:
        await opened_anywhere.switch.open_store(store, tz="Asia/Tokyo")
    return opened_anywhere


async def test_stores_come_by_id_in_pages_forward_and_backward(book: Pricebook) -> None:
    page = await book.stores.page(READER, PageArgs(first=25))
    assert ([head.store for head in page.nodes], page.has_previous, page.has_next) == (ALL, False, False)
    for backwards in (False, True):
        cursor: str | None = None
        seen: list[str] = []
        while len(seen) < len(ALL):
            args = PageArgs(last=7, before=cursor) if backwards else PageArgs(first=7, after=cursor)
            page = await book.stores.page(READER, args)
            stores = [head.store for head in page.nodes]
            seen = [*stores, *seen] if backwards else [*seen, *stores]
            assert (page.has_previous, page.has_next) == (stores[0] != ALL[0], stores[-1] != ALL[-1])
            cursor = page.start_cursor if backwards else page.end_cursor
        assert seen == ALL
    assert (await book.stores.page(READER, PageArgs(first=1))).nodes[0].tz == "Asia/Tokyo"
    between = PageArgs(first=9, after=page.edges[0].cursor, before=page.edges[3].cursor)
    assert [head.store for head in (await book.stores.page(READER, between)).nodes] == ["101", "102"]


async def test_a_caller_sees_the_stores_of_their_prefixes_each_once(book: Pricebook) -> None:
    caller = Caller("bo", frozenset({"read"}), ("12", "103", "120", "9"))
    page = await book.stores.page(caller, PageArgs(first=3))
    assert ([head.store for head in page.nodes], page.has_next) == (["103", "120", "121"], True)
    rest = await book.stores.page(caller, PageArgs(first=9, after=page.end_cursor))
    assert ([head.store for head in rest.nodes], rest.has_next) == (["122", "123", "124"], False)
    ends = await book.stores.page(caller, PageArgs(last=2))
    assert [head.store for head in ends.nodes] == ["123", "124"]
    assert await book.stores.count_hint(caller) == 6
    assert (await book.stores.get(caller, "100"), await book.stores.get(caller, "900")) == (None, None)
    with pytest.raises(InvalidCursor):
        await book.stores.page(READER, PageArgs(after=page.end_cursor))


async def test_without_the_role_or_any_store_there_is_nothing(opened: Pricebook) -> None:
    await opened.switch.open_store("1")
    with pytest.raises(LacksRole):
        await opened.stores.page(Caller("anna", frozenset({"edit"})), PageArgs())
    nobody = Caller("bo", frozenset({"read"}), ())
    assert ((await opened.stores.page(nobody, PageArgs())).nodes, await opened.stores.count_hint(nobody)) == ([], 0)


@pytest.mark.parametrize(
    ("prefixes", "expected"),
    [((), []), (("",), [""]), (("1", "10", "2"), ["1", "2"]), (("10", "1", "11"), ["1"]), (("b", "", "a"), [""])],
)
def test_prefixes_that_a_shorter_one_covers_are_left_out(prefixes: tuple[str, ...], expected: list[str]) -> None:
    assert shortest(prefixes) == expected
