"""Readers that go through a store in separate statements while all its prices switch never see a mixture."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any, NoReturn

import pytest
from reading_traversal import Traversals, versioned

from book import Book, open_book
from pricebook.editions.timing import Timing
from tickler import InvalidInput, ManualClock
from tickler.table import MISSING

PRODUCTS = 18
PAGES = (5, 7, 18)  # of each reader


class Interleaved:
    """Lets readers read pages, and time pass, before and after each write of the table."""

    def __init__(self, book: Book, random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self._book = book
        self._random = random
        self._one_at_a_time = asyncio.Lock()
        self.readers = [Traversals(book.prices, "1", PRODUCTS, page=size) for size in PAGES]
        for name in ("write", "write_each"):
            monkeypatch.setattr(book.db.engine, name, self._around(getattr(book.db.engine, name)))

    async def read(self, times: int = 3) -> None:
        async with self._one_at_a_time:  # rows are written at the same time where there are no snapshots
            for _ in range(self._random.randint(1, times)):
                await self._random.choice(self.readers).step()
                self._book.pass_(timedelta(milliseconds=self._random.choice((0, 1, 50, 400))))

    @property
    def mixtures(self) -> list[str]:
        return [mixture for reader in self.readers for mixture in reader.mixtures]

    def _around(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def interleaved(*args: Any, **kwargs: Any) -> Any:
            await self.read()
            written = await write(*args, **kwargs)
            await self.read()
            return written

        return interleaved


async def switch_often(book: Book, interleaved: Interleaved, random: Random, switches: int) -> None:
    """Switch all prices again and again: seal, move, cancel before and after they count, settle soon or late, and roll back."""
    for version in range(2, switches + 2):
        at = random.choice((None, book.now() + timedelta(seconds=5)))
        number = await book.change(versioned(version, PRODUCTS), at=at)
        from_at = (await book.head()).editions[number].from_at
        assert from_at is not MISSING
        if at is not None and random.random() < 0.3 and from_at > book.now() + 2 * book.timing.margin:
            from_at = from_at + timedelta(seconds=3)
            await book.switch.move("1", number, from_at)
        while book.now() <= from_at + timedelta(seconds=random.choice((-1, 0, 1))):
            await interleaved.read(10)
        choice = random.random()
        if choice < 0.4:
            await book.switch.roll_back("1", number)
        if choice < 0.8:
            await book.switch.settle("1")
        if 0.7 < choice < 0.9:
            await book.switch.roll_back("1", number)
    for reader in interleaved.readers:
        await reader.finish()


@pytest.fixture(params=["memory", "sqlite", "without snapshots"])
async def any_book(
    request: pytest.FixtureRequest, sqlite_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Book]:
    """A book with snapshots, and one whose readers and writers have none, as on DynamoDB."""

    def snapshot() -> NoReturn:
        raise InvalidInput("there are no snapshots")

    async with open_book(sqlite_url if request.param == "sqlite" else "memory://", clock) as book:
        if request.param == "without snapshots":
            monkeypatch.setattr(book.db.engine, "snapshot", snapshot)
        yield book


async def test_no_traversal_sees_a_mixture_whatever_is_written_between_any_two_statements(
    any_book: Book, monkeypatch: pytest.MonkeyPatch, soak: bool, seed: int
) -> None:
    random = Random(seed)
    await any_book.a_store(prices=versioned(1, PRODUCTS))
    await any_book.shown()  # makes the key of cursors
    interleaved = Interleaved(any_book, random, monkeypatch)
    await switch_often(any_book, interleaved, random, 1_000 if soak else 10)
    assert interleaved.mixtures == []
    assert sum(reader.done for reader in interleaved.readers) > 60
    assert len(set.union(*(reader.versions for reader in interleaved.readers))) > 6


async def test_with_a_margin_that_is_shorter_than_writes_take_traversals_do_see_mixtures(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: these readers would notice."""
    random = Random(1)
    async with open_book("memory://", clock, Timing(margin=timedelta(milliseconds=1))) as book:
        await book.a_store(prices=versioned(1, PRODUCTS))
        await book.shown()
        interleaved = Interleaved(book, random, monkeypatch)
        await switch_often(book, interleaved, random, 10)
        assert interleaved.mixtures
