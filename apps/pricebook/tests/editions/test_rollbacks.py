"""Prices that others have hidden for so long that they are past are rolled back in any order, at once or one after the other."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations, product

from book import Book

DAY = timedelta(days=1)
FIRST = 100


async def test_whatever_is_rolled_back_first_what_is_left_counts(book: Book) -> None:
    cases = list(product(permutations((0, 1, 2)), (False, True), (None, 0, 1)))
    assert len(cases) == 36
    for case, (order, settled_between, ending) in enumerate(cases):
        store = await book.a_store(f"{case}", {"P1": FIRST})
        numbers = []
        for n, minor in enumerate((90, 80, 70)):
            until = book.now() + DAY if n == ending else None
            numbers.append(await book.change({"P1": minor}, store=store, until=until))
            book.pass_(timedelta(minutes=1))
        book.pass_(3 * DAY)
        await book.switch.settle(store)  # the row has the last one alone
        left = {n: minor for n, minor in enumerate((90, 80, 70)) if n != ending}
        for n in order:
            await book.switch.roll_back(store, numbers[n])
            left.pop(n, None)
            for _ in range(2):
                book.pass_()
                assert await book.shown(store) == {"P1": left[max(left)] if left else FIRST}, (order, settled_between, ending)
                if settled_between:
                    await book.switch.settle(store)
