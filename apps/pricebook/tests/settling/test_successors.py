"""A change that arrives while its schedule fires, or after it has finished, gets a successor. In the seed it was lost.

The seed created a schedule by name, and took "schedule already exists" for success: also while that one was firing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from book import MARCH
from settled_book import MINUTE, SettledBook, open_settled_book
from tickler import ManualClock

TOMORROW = MARCH + timedelta(days=1)
KEY = "2026-03-02T00:00:00.000Z"
BEFORE, AFTER = {"P1": 100, "P2": 110}, {"P1": 200, "P2": 210}


class WhileFiring:
    """Does something once, at a point of a schedule that fires."""

    def __init__(self, point: str) -> None:
        self._point = point
        self.happened = False
        self.book: SettledBook | None = None

    async def __call__(self, point: str) -> None:
        if self.book is not None and point == self._point and not self.happened:
            self.happened = True
            await self.happen(self.book)

    async def happen(self, book: SettledBook) -> None:
        """Seal a change that counts at once, and let its change arrive, with another of the same instant."""
        await book.change({"P2": 999})
        assert (await book.schedules())[KEY].state == "finished"
        await book.settling.consume()


@pytest.fixture
def firing() -> WhileFiring:
    return WhileFiring("settling.settled")


@pytest.fixture
async def book_anywhere(any_url: str, clock: ManualClock, firing: WhileFiring) -> AsyncIterator[SettledBook]:
    async with open_settled_book(any_url, clock, at_point=firing) as opened:
        yield opened


async def test_a_change_that_arrives_while_the_schedule_of_its_store_fires_is_settled(
    book_anywhere: SettledBook, firing: WhileFiring
) -> None:
    book = book_anywhere
    await book.a_store(prices=BEFORE)
    await book.change(AFTER, at=TOMORROW)
    await book.follow()
    firing.book = book
    await book.play(TOMORROW + 10 * MINUTE)
    assert firing.happened
    assert (await book.head()).editions == {}
    assert await book.shown() == {"P1": 200, "P2": 999}
    assert await book.schedules() == {}
    assert await book.settling.overdue() == 0


class LateArrival(WhileFiring):
    """The stream is slow: a change of the very instant that fires arrives once its schedule has settled the store."""

    number = 0

    async def happen(self, book: SettledBook) -> None:
        await book.settling.consume()
        assert (await book.due())[KEY] > book.now()


async def test_a_change_of_the_same_instant_that_arrives_while_its_schedule_fires_gets_a_successor(clock: ManualClock) -> None:
    firing = LateArrival("settling.begun")
    async with open_settled_book("memory://", clock, at_point=firing) as book:
        await book.a_store(prices=BEFORE)
        await book.change({"P1": 200}, at=TOMORROW)
        await book.follow()
        clock.set(TOMORROW - 10 * MINUTE)
        await book.change({"P2": 210}, at=TOMORROW)  # its change has not arrived
        firing.book = book
        await book.play(TOMORROW)
        assert firing.happened
        assert await book.shown() == AFTER
        await book.play(2 * MINUTE)
        assert (await book.head()).editions == {}
        assert await book.schedules() == {}, "the successor has fired, and found nothing to do"


async def test_a_change_of_the_same_instant_that_arrives_after_its_schedule_has_finished_gets_a_successor(
    clock: ManualClock,
) -> None:
    async with open_settled_book("memory://", clock) as book:
        await book.a_store(prices=BEFORE)
        number = await book.change({"P1": 200}, at=TOMORROW)
        await book.follow()
        await book.play(TOMORROW)
        assert number not in (await book.head()).editions
        late = await book.change({"P2": 210}, at=TOMORROW)
        await book.follow()
        assert len(await book.schedules()) == 1
        await book.play(5 * MINUTE)
        assert late not in (await book.head()).editions
        assert await book.shown() == AFTER


async def test_a_schedule_whose_attempts_have_all_failed_gets_a_successor_when_something_changes(clock: ManualClock) -> None:
    firing = Failing("settling.begun")
    async with open_settled_book("memory://", clock, at_point=firing) as book:
        await book.a_store(prices=BEFORE)
        await book.change({"P1": 200})
        await book.follow()
        firing.book = book
        played = await book.play(timedelta(days=1))
        assert played.dead
        assert await book.settling.overdue() > 0
        firing.is_failing = False
        await book.settling.sweep()
        await book.play(2 * MINUTE)
        assert await book.settling.overdue() == 0
        assert await book.notices() == []


class Failing(WhileFiring):
    is_failing = True

    async def __call__(self, point: str) -> None:
        if self.book is not None and self.is_failing and point == self._point:
            raise RuntimeError("the disk is full")
