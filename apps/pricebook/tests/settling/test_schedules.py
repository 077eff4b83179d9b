"""From write to schedule: a change in the table makes one schedule for each store and instant, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Any

import pytest

from book import MARCH, staged
from pricebook.app import Settings, open_pricebook
from pricebook.editions.timing import Timing
from pricebook.model import UnsettledEdition
from settled_book import MINUTE, SettledBook, open_settled_book
from tickler import ManualClock

TOMORROW = MARCH + timedelta(days=1)
LATER = MARCH + timedelta(days=2)
BEFORE, AFTER = {"P1": 100, "P2": 110}, {"P1": 200, "P2": 210}


@pytest.fixture
async def book(clock: ManualClock) -> AsyncIterator[SettledBook]:
    async with open_settled_book("memory://", clock) as opened:
        yield opened


@pytest.fixture
async def book_anywhere(any_url: str, clock: ManualClock) -> AsyncIterator[SettledBook]:
    async with open_settled_book(any_url, clock) as opened:
        yield opened


async def test_a_sealed_edition_gets_a_schedule_that_settles_it_at_its_instant(book_anywhere: SettledBook) -> None:
    book = book_anywhere
    store = await book.a_store(prices=BEFORE)
    number = await book.change(AFTER, at=TOMORROW)
    await book.follow()
    assert await book.due() == {"2026-03-02T00:00:00.000Z": TOMORROW}
    played = await book.play(TOMORROW + MINUTE)
    (entry,) = played.delivered
    assert (entry.owner, entry.nominal) == (f"store/{store}", TOMORROW)
    assert number not in (await book.head()).editions
    assert await book.shown() == AFTER
    assert await book.schedules() == {}
    assert await book.notices() == []


async def test_what_is_not_sealed_has_no_schedule(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    await book.stage(AFTER, at=TOMORROW)
    await book.follow()
    assert await book.schedules() == {}


async def test_editions_of_one_instant_share_a_schedule_whatever_their_channels(book: SettledBook) -> None:
    """In the seed, the schedule carried the channel of the first change only: those of other channels were never applied."""
    await book.a_store(prices=BEFORE)
    await book.change({"P1": 200}, at=TOMORROW)
    await book.change({"P1": 300}, at=TOMORROW, channel="WEB")
    await book.follow()
    assert list(await book.schedules()) == ["2026-03-02T00:00:00.000Z"]
    assert len((await book.play(TOMORROW + MINUTE)).delivered) == 1
    assert (await book.head()).editions == {}
    assert [(await book.shown(channel=channel))["P1"] for channel in ("ALL", "WEB")] == [200, 300]


async def test_each_store_has_a_schedule_for_its_own_midnight(book: SettledBook) -> None:
    for store, tz in (("1", "Europe/Berlin"), ("2", "America/New_York")):
        await book.a_store(store, BEFORE, tz=tz)
        await book.change(AFTER, store=store, at=date(2026, 3, 15))
    await book.follow()
    assert (list(await book.schedules("1")), list(await book.schedules("2"))) == (
        ["2026-03-14T23:00:00.000Z"],
        ["2026-03-15T04:00:00.000Z"],
    )


async def test_a_replay_of_all_changes_makes_nothing_new(clock: ManualClock, sqlite_url: str) -> None:
    async with open_settled_book(sqlite_url, clock) as book:
        await book.a_store(prices=BEFORE)
        await book.change(AFTER, at=TOMORROW)
        await book.follow()
        before = await book.schedules()
        for _ in range(2):
            clock.advance(30)
            await book.db.consumer("settling").forget()
            assert await book.follow() > 0
            assert await book.schedules() == before
        await book.play(TOMORROW + MINUTE)
        settled = await book.head()
        await book.db.consumer("settling").forget()
        assert await book.follow() > 0
        assert await book.schedules() == {}
        assert await book.head() == settled


@pytest.mark.parametrize("before", [timedelta(seconds=59), timedelta(seconds=60), timedelta(0), timedelta(hours=-1)])
async def test_an_instant_that_is_past_or_near_when_the_change_arrives_fires_a_minute_later(
    book: SettledBook, before: timedelta
) -> None:
    await book.a_store(prices=BEFORE)
    await book.change(AFTER, at=TOMORROW)
    book.clock.set(TOMORROW - before)
    await book.follow()
    assert await book.due() == {"2026-03-02T00:00:00.000Z": book.now() + MINUTE}
    await book.play(2 * MINUTE)
    assert (await book.head()).editions == {}


async def test_a_change_at_once_counts_at_once_and_is_settled_a_minute_later(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    await book.change(AFTER)
    await book.follow()
    book.pass_()
    assert await book.shown() == AFTER
    (at,) = (await book.due()).values()
    assert at == book.now() - book.timing.margin + MINUTE


async def test_a_cancelled_change_takes_its_schedule_along(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change(AFTER, at=TOMORROW)
    await book.follow()
    await book.switch.cancel("1", number)
    await book.follow()
    assert await book.due() == {"soon": book.now() + MINUTE}
    await book.play(2 * MINUTE)
    assert (await book.head()).editions == {}
    assert await book.schedules() == {}
    row = await book.row("P1")
    assert row is not None
    assert len(row.values) == 1, "what was staged is cleared away long before its instant"


async def test_a_cancelled_change_leaves_the_schedule_of_another_at_the_same_instant(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change({"P1": 200}, at=TOMORROW)
    await book.change({"P2": 210}, at=TOMORROW)
    await book.follow()
    await book.switch.cancel("1", number)
    await book.follow()
    assert (await book.due())["2026-03-02T00:00:00.000Z"] == TOMORROW
    await book.play(TOMORROW + MINUTE)
    assert (await book.head()).editions == {}
    assert await book.shown() == {"P1": 100, "P2": 210}


async def test_a_change_that_is_cancelled_while_it_counts_is_settled_once_it_counts_no_more(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change(AFTER)
    await book.follow()
    book.pass_()
    await book.switch.cancel("1", number)
    await book.follow()
    await book.play(3 * MINUTE)
    assert (await book.head()).editions == {}
    assert await book.shown() == BEFORE


async def test_a_moved_change_takes_its_schedule_along(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change(AFTER, at=TOMORROW)
    await book.follow()
    await book.switch.move("1", number, LATER)
    await book.follow()
    assert await book.due() == {"2026-03-03T00:00:00.000Z": LATER}
    await book.play(LATER + MINUTE)
    assert (await book.head()).editions == {}


async def test_a_change_that_is_cancelled_while_its_schedule_is_written_gets_none(
    book: SettledBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    await book.a_store(prices=BEFORE)
    await book.follow()
    number = await book.change(AFTER, at=TOMORROW)
    write, is_cancelled = book.db.engine.write, False

    async def overtaken(*args: Any, parts: Any = (), **kwargs: Any) -> Any:
        nonlocal is_cancelled
        if parts and not is_cancelled:
            is_cancelled = True
            await book.switch.cancel("1", number)
        return await write(*args, parts=parts, **kwargs)

    monkeypatch.setattr(book.db.engine, "write", overtaken)
    await book.settling.reconcile()
    assert is_cancelled
    assert await book.schedules() == {}


async def test_two_processes_that_follow_the_same_change_make_one_schedule(clock: ManualClock, sqlite_url: str) -> None:
    async with open_settled_book(sqlite_url, clock) as one, open_settled_book(sqlite_url, clock) as other:
        await one.a_store(prices=BEFORE)
        await one.change(AFTER, at=TOMORROW)
        await asyncio.gather(*(book.settling.reconcile() for book in (one, other) for _ in range(3)))
        assert await other.due() == {"2026-03-02T00:00:00.000Z": TOMORROW}
        assert (await other.schedules())["2026-03-02T00:00:00.000Z"].version == 1


async def test_a_change_that_is_written_while_a_worker_and_the_consumer_run_is_settled() -> None:
    """In real time: a change counts in 60 ms here, and its schedule fires 200 ms after it arrives."""
    told = asyncio.Event()

    async def at_point(point: str) -> None:
        if point == "settling.told" and await opened.db.get(UnsettledEdition.key.id("1", 1)) is None:
            told.set()

    timing = Timing(margin=timedelta(milliseconds=60), buffer=timedelta(milliseconds=200))
    settings = Settings(store="memory://")
    async with open_pricebook(settings, timing=timing, at_point=at_point) as opened:
        await opened.switch.open_store("1")
        async with opened.settling.running(), opened.t.running(), asyncio.timeout(20):
            number = await opened.switch.open_edition("1")
            await opened.switch.stage("1", number, staged(AFTER))
            await opened.switch.seal("1", number)
            await told.wait()
        assert number == 1
        assert await opened.settling.overdue() == 0


async def test_a_schedule_that_somebody_has_paused_stays_paused(book: SettledBook) -> None:
    await book.a_store(prices=BEFORE)
    await book.change({"P1": 200}, at=TOMORROW)
    await book.follow()
    (key,) = await book.schedules()
    await book.t.schedules.pause("store/1", key)
    await book.change({"P2": 210}, at=TOMORROW)
    await book.follow()
    assert (await book.schedules())[key].state == "paused"
    book.clock.set(TOMORROW + timedelta(hours=1))
    assert await book.shown() == AFTER, "prices do not wait for schedules"
    assert await book.settling.overdue() == 2
