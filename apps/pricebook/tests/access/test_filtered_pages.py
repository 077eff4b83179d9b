"""Pages of what a filter keeps are those of a list that has only that."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from pricebook.access import filtered_pages
from pricebook.access.filtered_pages import filtered_page
from pricebook.editions.pages import Edge, NodePage, PageArgs
from pricebook.errors import InvalidCursor

AT = datetime(2026, 3, 15, tzinfo=UTC)


class Numbers:
    """A list of numbers; the cursor of each is its text. `most` is how many a read had."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self.reads = 0

    async def read(self, page: PageArgs) -> NodePage[int]:
        page.check()
        self.reads += 1
        low, high = (None if text is None else _number(text) for text in (page.after, page.before))
        within = [n for n in self.numbers if (low is None or n > low) and (high is None or n < high)]
        found = within[max(0, len(within) - page.size) :] if page.backwards else within[: page.size]
        edges = [Edge(n, (str(n),), lambda where: where[0]) for n in found]
        first, last = (found[0], found[-1]) if found else _gap(page, low, high)
        return NodePage(edges, any(n > last for n in self.numbers), any(n < first for n in self.numbers), AT)

    def kept(self, keep: Callable[[int], bool]) -> Numbers:
        return Numbers([n for n in self.numbers if keep(n)])


def _divisible(divisor: int) -> Callable[[int], bool]:
    return lambda n: n % divisor == 0


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InvalidCursor("the cursor is not one of ours")
    return int(text)


def _gap(page: PageArgs, low: int | None, high: int | None) -> tuple[float, float]:
    """Return what lies before an empty page, and what behind it: between them is the place of the page."""
    if page.backwards:
        at = float("inf") if high is None else high
        return at, at - 1
    at = float("-inf") if low is None else low
    return at + 1, at


@pytest.mark.parametrize("seed", range(3))
async def test_a_filtered_page_is_that_of_a_list_without_the_others(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_pages, "MAX_PAGE", 16)  # so that some pages take many reads
    drawn = random.Random(seed)
    for _ in range(150):
        numbers = Numbers(sorted(drawn.sample(range(1, 200), drawn.randint(0, 120))))
        divisor = drawn.choice([1, 2, 7, 40])
        kept = numbers.kept(_divisible(divisor))
        cursors = [None, None, *(str(n) for n in kept.numbers), *(str(n) for n in numbers.numbers)]
        size, cursor = drawn.choice([0, 1, 2, 5, 30]), drawn.choice(cursors)
        page = drawn.choice([PageArgs(first=size, after=cursor), PageArgs(last=size, before=cursor)])
        ours = await filtered_page(numbers.read, page, _divisible(divisor))
        theirs = await kept.read(page)
        assert (ours.nodes, ours.has_next, ours.has_previous) == (theirs.nodes, theirs.has_next, theirs.has_previous), (
            page,
            divisor,
        )


async def test_reads_grow_so_that_a_filter_that_keeps_little_takes_few() -> None:
    numbers = Numbers(list(range(1, 8_001)))
    page = await filtered_page(numbers.read, PageArgs(first=64), lambda n: n > 7_990)
    assert page.nodes == list(range(7_991, 8_001))
    assert numbers.reads <= 25


async def test_arguments_are_checked_before_anything_is_left_out() -> None:
    numbers = Numbers([1, 2, 3])
    with pytest.raises(InvalidCursor):
        await filtered_page(numbers.read, PageArgs(first=1, after="forged"), lambda _: False)
