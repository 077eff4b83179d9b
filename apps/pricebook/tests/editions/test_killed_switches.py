"""A process that is killed before or after any write of a change leaves no mixture, and another one finishes its work."""

from __future__ import annotations

from typing import Any

import msgspec
from killed_switch import AFTER, BEFORE, FROM_AT, SEALED_AT, SETTLED_AT, go_on

from book import MARCH, Book, open_book
from killed_process import answer_of
from pricebook.model import CombinationPrice, PastPrice, Price, PriceKey, UnsettledEdition
from tickler import ManualClock

MAX_ATTEMPTS = 80


async def test_a_switch_that_is_killed_at_any_write_leaves_no_mixture_and_is_finished_by_the_next_process(
    stored_url: str, clock: ManualClock
) -> None:
    async with open_book(stored_url, clock) as book:
        for number in range(1, MAX_ATTEMPTS):
            clock.set(MARCH)
            await book.a_store(f"store{number}", BEFORE)
        attempts = await answer_of("killed_switch", stored_url)
        assert 10 < attempts < MAX_ATTEMPTS
        expected = await _state(book, f"store{attempts}")  # that one was not killed
        sealed = 0
        for number in range(1, attempts):
            store = f"store{number}"
            sealed += await _shows_all_or_nothing(book, store)
            await go_on(book, store)
            assert await book.shown(store) == AFTER
            assert await _state(book, store) == expected, f"after a kill at step {number}"
        assert 0 < sealed < attempts - 1


async def _shows_all_or_nothing(book: Book, store: str) -> bool:
    """Tell whether the prices of a killed process count from their instant on. If they do not, none ever does."""
    seen = []
    for at in (FROM_AT, SETTLED_AT):
        book.clock.set(at)
        seen.append(await book.shown(store))
    assert seen in ([AFTER, AFTER], [BEFORE, BEFORE])
    former = await book.prices.as_of_many([PriceKey(store, "ALL", "Base", product) for product in BEFORE], SEALED_AT)
    assert [node.amount.minor for node in former if node is not None] == list(BEFORE.values())
    return seen[-1] == AFTER


async def _state(book: Book, store: str) -> list[Any]:
    """Return everything of a store, without its name, and without how often its head was written."""
    head = await book.head(store)
    rows = await book.db.query(Price.key(store), CombinationPrice.key(store), UnsettledEdition.key(store), first=100)
    past = await book.db.query(PastPrice.key(store), first=100)
    items = [msgspec.to_builtins(each, str_keys=True) for each in (head, *rows.items, *past.items)]
    return [{name: value for name, value in each.items() if name not in ("store", "rev")} for each in items]
