"""What was lost is found and mended by a sweep, which reads what is late and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from book import MARCH
from pricebook.settling import SettlingOptions
from settled_book import MINUTE, SettledBook, open_settled_book
from tickler import ManualClock

TOMORROW = MARCH + timedelta(days=1)
BEFORE, AFTER = {"P1": 100, "P2": 110}, {"P1": 200, "P2": 210}


@pytest.fixture
async def book_anywhere(any_url: str, clock: ManualClock) -> AsyncIterator[SettledBook]:
    async with open_settled_book(any_url, clock) as opened:
        yield opened


@pytest.fixture
async def book(clock: ManualClock) -> AsyncIterator[SettledBook]:
    async with open_settled_book("memory://", clock) as opened:
        yield opened


async def test_a_change_whose_schedule_was_lost_is_found_and_settled(book_anywhere: SettledBook) -> None:
    book = book_anywhere
    await book.a_store(prices=BEFORE)
    await book.change(AFTER, at=TOMORROW)
    book.clock.set(TOMORROW + 2 * MINUTE - timedelta(milliseconds=1))
    assert await book.shown() == AFTER, "prices do not wait for schedules"
    assert (await book.settling.overdue(), await book.settling.sweep()) == (1, 1)  # what was approved is not announced yet
    book.pass_(timedelta(milliseconds=1))
    assert (await book.settling.overdue(), await book.settling.sweep()) == (2, 1)
    assert await book.settling.sweep() == 0
    assert set(await book.schedules()) == {"2026-03-02T00:00:00.000Z", "soon"}
    await book.play(2 * MINUTE)
    assert (await book.head()).editions == {}
    assert await book.settling.overdue() == 0
    assert await book.notices() == []


def test_what_is_spread_is_late_only_after_that() -> None:
    assert SettlingOptions(spread=timedelta(seconds=20)).late_after == timedelta(seconds=140)


async def test_what_is_open_is_not_late(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    await book.stage(AFTER, at=TOMORROW)
    book.clock.set(TOMORROW + timedelta(days=9))
    assert (await book.settling.overdue(), await book.settling.sweep()) == (0, 0)


async def test_what_an_open_edition_that_was_cancelled_leaves_is_late(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.stage(AFTER, at=TOMORROW)
    await book.switch.cancel("1", number)
    book.clock.set(TOMORROW + timedelta(hours=1))
    assert (await book.settling.overdue(), await book.settling.sweep()) == (1, 1)
    await book.play(2 * MINUTE)
    assert (await book.head()).editions == {}


async def test_a_notice_that_was_left_is_sent(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    await book.change(AFTER, at=TOMORROW)
    assert await book.notices() == [(2, "approved")]
    book.pass_(timedelta(hours=1))
    assert (await book.settling.overdue(), await book.settling.sweep()) == (1, 1)
    await book.play(2 * MINUTE)
    assert await book.notices() == []


async def test_a_sweep_reads_what_is_late_and_no_more(book: SettledBook, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(40):
        await book.switch.open_store(f"{n:03}")
        await book.change({"P1": n}, store=f"{n:03}", at=TOMORROW if n % 20 == 0 else TOMORROW + timedelta(days=n))
    await book.follow()
    book.clock.set(TOMORROW + timedelta(hours=1))
    read: list[Any] = []
    for name in ("slice", "get"):
        original = getattr(book.db.engine, name)

        async def counted(*args: Any, original: Any = original, **kwargs: Any) -> Any:
            found = await original(*args, **kwargs)
            read.extend(found if isinstance(found, list) else found.items)
            return found

        monkeypatch.setattr(book.db.engine, name, counted)
    assert await book.settling.overdue() == 2
    assert len(read) == 4, "two entries and two heads"


async def test_everything_unsettled_gets_its_schedules_when_changes_were_lost(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    await book.change(AFTER, at=TOMORROW)
    await book.settling.reconcile()
    assert await book.due() == {"2026-03-02T00:00:00.000Z": TOMORROW}
    assert await book.notices() == []
    await book.play(TOMORROW + MINUTE)
    assert (await book.head()).editions == {}


async def test_a_thousand_stores_of_one_minute_are_spread_and_none_is_late(clock: ManualClock) -> None:
    async with open_settled_book("memory://", clock, options=SettlingOptions(spread=timedelta(seconds=20))) as book:
        stores = [f"{n:04}" for n in range(100)]
        for store in stores:
            await book.switch.open_store(store)
            await book.change({"P1": 200}, store=store, at=TOMORROW)
        await book.follow()
        played = await book.play(TOMORROW + timedelta(seconds=20))
        fired = [entry.at - entry.nominal_at for entry in played.delivered]
        assert (len(fired), min(fired) < 2_000, 18_000 < max(fired) <= 20_000) == (100, True, True)
        clock.set(TOMORROW + timedelta(minutes=2))
        assert await book.settling.overdue() == 0
        assert set((await book.across("P1")).values()) == {200}
