"""Callers read what their roles and stores allow; other stores do not exist for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any

import pytest

from book import Book
from pricebook.access.allowed_prices import AllowedPrices
from pricebook.access.caller import Caller, Role
from pricebook.editions.pages import PageArgs
from pricebook.errors import NotAllowed, NotFound
from pricebook.model import PriceKey

Read = Callable[[AllowedPrices, str, Book], Awaitable[Any]]

OF_A_STORE: dict[str, Read] = {
    "of_store": lambda prices, store, _: prices.of_store(store, page=PageArgs()),
    "as_of": lambda prices, store, book: prices.as_of(store, "P1", book.now()),
    "as_of_many": lambda prices, store, book: prices.as_of_many([PriceKey(store, "ALL", "Base", "P1")], book.now()),
    "upcoming": lambda prices, store, _: prices.upcoming(store, page=PageArgs()),
    "version": lambda prices, store, _: prices.version(store),
}
ACROSS_STORES: dict[str, Read] = {
    "of_product": lambda prices, product, _: prices.of_product(product, page=PageArgs()),
    "changes_on": lambda prices, _, __: prices.changes_on(date(2026, 3, 9), page=PageArgs()),
}


def caller(*stores: str, roles: tuple[Role, ...] = ("read",)) -> Caller:
    return Caller("tests", frozenset(roles), stores)


@pytest.mark.parametrize("name", OF_A_STORE)
async def test_stores_of_others_are_not_found_as_if_they_did_not_exist(name: str, book: Book) -> None:
    for store in ("10", "11", "20"):
        await book.a_store(store, {"P1": 100})
    prices = AllowedPrices(book.prices, caller("1"))
    assert await OF_A_STORE[name](prices, "11", book)
    messages = set()
    for store in ("20", "no such store", "0"):
        with pytest.raises(NotFound) as raised:
            await OF_A_STORE[name](prices, store, book)
        messages.add(str(raised.value))
    assert messages == {"there is no such store: check its name"}


@pytest.mark.parametrize("name", [*OF_A_STORE, *ACROSS_STORES])
async def test_without_the_role_nothing_is_read(name: str, book: Book) -> None:
    await book.a_store("1", {"P1": 100})
    for roles in ((), ("edit", "approve")):
        prices = AllowedPrices(book.prices, caller("", roles=roles))
        with pytest.raises(NotAllowed, match="lacks the role 'read'"):
            await (OF_A_STORE | ACROSS_STORES)[name](prices, "1", book)


async def test_lists_across_stores_leave_out_the_others_and_have_full_pages_and_true_flags(book: Book) -> None:
    for n in range(1, 60):
        await book.a_store(str(n), {"P1": n})
        await book.change({"P1": n + 1}, store=str(n), at=date(2026, 3, 9))
    prices = AllowedPrices(book.prices, caller("2", "31"))
    own = ["2", *(str(n) for n in range(20, 30)), "31"]
    first = await prices.of_product("P1", page=PageArgs(first=5))
    assert [node.store for node in first.nodes] == own[:5]
    assert (first.has_next, first.has_previous) == (True, False)
    rest = await prices.of_product("P1", page=PageArgs(first=50, after=first.end_cursor))
    assert [node.store for node in rest.nodes] == own[5:]
    assert (rest.has_next, rest.has_previous) == (False, True)
    changes = await prices.changes_on(date(2026, 3, 9), page=PageArgs(last=3))
    assert [node.store for node in changes.nodes] == own[-3:]
    assert (changes.has_next, changes.has_previous) == (False, True)


async def test_whoever_may_see_all_stores_reads_the_list_as_it_is(book: Book) -> None:
    await book.a_store("1", {"P1": 100})
    everyone = AllowedPrices(book.prices, caller("9", ""))
    assert (await everyone.of_product("P1", page=PageArgs())).nodes == (await book.prices.of_product("P1", page=PageArgs())).nodes
