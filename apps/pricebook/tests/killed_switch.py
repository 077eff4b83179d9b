"""Changes a store's prices in processes that are killed before or after a write. Each attempt has a store of its own."""

from __future__ import annotations

import sys
from datetime import timedelta
from functools import partial

from book import MARCH, Book, open_book, staged
from killed_process import Steps, survivor
from pricebook.editions import settlement, staging
from tickler import ManualClock

PRODUCTS = 7
BEFORE = {f"P{n}": 100 + n for n in range(PRODUCTS)}
AFTER = {f"P{n}": 200 + n for n in range(PRODUCTS)}
SEALED_AT = MARCH + timedelta(hours=12)
FROM_AT = MARCH + timedelta(days=1)
SETTLED_AT = FROM_AT + timedelta(days=2)  # what was before is no longer kept in the rows
EDITION = 2
CHANNEL_ENDS_AT = FROM_AT + timedelta(days=9)


async def go_on(book: Book, store: str) -> None:
    """Change all prices of a store and settle them, from wherever a process that did the same has stopped."""
    book.clock.set(SEALED_AT)
    head = await book.head(store)
    if head.next_edition == EDITION:
        await book.switch.open_edition(store, FROM_AT)
        head = await book.head(store)
    edition = head.editions.get(EDITION)
    if edition is not None and edition.state == "open":
        await book.switch.stage(store, EDITION, staged(AFTER))
        await book.switch.stage(store, EDITION, staged({"P0": 300}, "WEB", until=CHANNEL_ENDS_AT))
        await book.switch.seal(store, EDITION)
    book.clock.set(SETTLED_AT)
    await book.switch.settle(store)


async def change(url: str, number: int) -> None:
    for module in (staging, settlement):
        vars(module)["STAGED_AT_A_TIME"] = 3  # so that there are several batches
    async with open_book(url, ManualClock(SEALED_AT)) as book:
        Steps(number).begin(book.db.engine)
        await go_on(book, f"store{number}")


if __name__ == "__main__":
    sys.stdout.write(f"{survivor(partial(change, sys.argv[1]))}\n")
