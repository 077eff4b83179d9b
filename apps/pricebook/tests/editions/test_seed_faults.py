"""What went wrong in the design that pricebook began from, and does not here."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from book import Book, staged
from pricebook.editions.pages import PageArgs
from pricebook.editions.timing import midnight
from pricebook.model import Price

DAY = timedelta(days=1)
MILLISECOND = timedelta(milliseconds=1)


async def test_prices_are_not_applied_one_by_one(book: Book) -> None:
    """A reader sees all 500 old prices until the instant, and from then on all 500 new ones."""
    before = {f"P{n:03}": n for n in range(500)}
    after = {f"P{n:03}": 1_000 + n for n in range(500)}
    await book.a_store(prices=before)
    await book.change(after, at=date(2026, 3, 2))
    book.clock.set(datetime(2026, 3, 2, tzinfo=UTC) - MILLISECOND)
    begun_before = await book.prices.of_store("1", page=PageArgs(first=100))
    book.pass_(MILLISECOND)
    assert await book.shown() == after
    rest = await book.prices.of_store("1", page=PageArgs(first=400, after=begun_before.end_cursor))
    assert {node.product: node.amount.minor for node in [*begun_before.nodes, *rest.nodes]} == before


async def test_the_row_of_the_old_price_does_not_stay_beside_the_new_one(book: Book) -> None:
    await book.a_store(prices={"P1": 100, "P2": 200})
    for minor in (101, 102, 103):
        await book.change({"P1": minor}, at=book.now() + DAY)
        book.pass_(DAY)
        assert [(node.product, node.amount.minor) for node in await book.nodes()] == [("P1", minor), ("P2", 200)]
        await book.switch.settle("1")
        assert [(node.product, node.amount.minor) for node in await book.nodes()] == [("P1", minor), ("P2", 200)]
    assert await book.db.count(Price.key("1").under("ALL").under("Base").under("P1")) == 1
    assert await book.across("P1") == {"1": 103}


async def test_the_changes_of_all_channels_of_a_store_and_a_date_are_applied(book: Book) -> None:
    await book.a_store(prices={"P1": 100})
    for channel, minor in (("ALL", 101), ("WEB", 91), ("APP", 81)):
        await book.change({"P1": minor}, at=date(2026, 3, 2), channel=channel)
    book.clock.set(datetime(2026, 3, 2, tzinfo=UTC))
    for _ in range(2):
        assert [await book.shown(channel=channel) for channel in ("ALL", "WEB", "APP", "POS")] == [
            {"P1": 101},
            {"P1": 91},
            {"P1": 81},
            {"P1": 101},
        ]
        await book.switch.settle("1")
    assert (await book.head()).editions == {}


async def test_a_change_that_comes_while_the_store_is_settled_is_not_lost(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sealed after the settling process has read which editions there are, before it writes each of its rows."""
    await book.a_store(prices={"P1": 100, "P2": 200})
    await book.change({"P1": 101, "P2": 201}, at=book.now() + DAY)
    book.pass_(DAY)
    write = book.db.engine.write
    late: list[int] = []

    async def interrupted(*args: object, **options: object) -> object:
        monkeypatch.setattr(book.db.engine, "write", write)
        late.append(await book.change({"P1": 102}))
        return await write(*args, **options)  # type: ignore[arg-type]  # the same as it got

    begun = await book.stage({"P3": 300})
    monkeypatch.setattr(book.db.engine, "write", interrupted)
    settled = await book.switch.settle("1")
    assert (settled.editions, late) == ((2,), [begun + 1])
    book.pass_()
    assert await book.shown() == {"P1": 102, "P2": 201}
    await book.switch.settle("1")
    assert await book.shown() == {"P1": 102, "P2": 201}


@pytest.mark.parametrize(
    ("zone", "day", "instant"),
    [
        ("Europe/Berlin", date(2026, 3, 15), datetime(2026, 3, 14, 23, tzinfo=UTC)),
        ("Europe/Berlin", date(2026, 3, 30), datetime(2026, 3, 29, 22, tzinfo=UTC)),  # the day after clocks went forward
        ("America/Los_Angeles", date(2026, 3, 15), datetime(2026, 3, 15, 7, tzinfo=UTC)),
        ("Asia/Kolkata", date(2026, 3, 15), datetime(2026, 3, 14, 18, 30, tzinfo=UTC)),
        ("Pacific/Kiritimati", date(2026, 3, 15), datetime(2026, 3, 14, 10, tzinfo=UTC)),
        ("Asia/Beirut", date(2026, 3, 29), datetime(2026, 3, 28, 22, tzinfo=UTC)),  # a day that begins at one o'clock
        ("America/Havana", date(2026, 11, 1), datetime(2026, 11, 1, 4, tzinfo=UTC)),  # a midnight that comes twice
    ],
)
async def test_midnight_is_that_of_the_store(book: Book, zone: str, day: date, instant: datetime) -> None:
    assert midnight(day, zone) == instant
    await book.a_store(prices={"P1": 100}, tz=zone)
    await book.change({"P1": 101}, at=day)
    book.clock.set(instant - MILLISECOND)
    assert await book.shown() == {"P1": 100}
    book.clock.set(instant)
    assert await book.shown() == {"P1": 101}


async def test_stores_in_other_zones_change_at_their_own_midnights(book: Book) -> None:
    zones = {"1": "Asia/Tokyo", "2": "Europe/Berlin", "3": "America/New_York"}
    for store, zone in zones.items():
        await book.a_store(store, {"P1": 100}, tz=zone)
        await book.change({"P1": 101}, store=store, at=date(2026, 3, 15))
    seen = []
    for hour in (0, 16, 23, 29):
        book.clock.set(datetime(2026, 3, 14, tzinfo=UTC) + timedelta(hours=hour))
        seen.append(list((await book.across("P1")).values()))
    assert seen == [[100, 100, 100], [101, 100, 100], [101, 101, 100], [101, 101, 101]]


async def test_a_full_last_page_does_not_say_that_there_is_more(book: Book) -> None:
    """A page that is asked for as `limit + 1` rows guesses in one direction, and never knows of the other."""
    await book.a_store(prices={f"P{n}": n for n in range(4)})
    number = await book.switch.open_edition("1")
    await book.switch.stage("1", number, staged({"P4": 4}))  # a row that has no price yet
    first = await book.prices.of_store("1", page=PageArgs(first=2))
    assert (first.has_previous, first.has_next) == (False, True)
    last = await book.prices.of_store("1", page=PageArgs(first=2, after=first.end_cursor))
    assert (last.has_previous, last.has_next, len(last.edges)) == (True, False, 2)
    back = await book.prices.of_store("1", page=PageArgs(last=2, before=last.start_cursor))
    assert (back.has_previous, back.has_next, back.nodes) == (False, True, first.nodes)
