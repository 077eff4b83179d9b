"""What changes next, across all stores."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from book import Book
from change_desk import ChangeDesk
from pricebook.access.caller import Caller
from pricebook.errors import LacksRole
from pricebook.timelines import coming
from pricebook.timelines.coming import ComingChanges

READER = Caller("rea", frozenset({"read"}))
FIFTH, SIXTH = datetime(2026, 3, 5, tzinfo=UTC), datetime(2026, 3, 6, tzinfo=UTC)


async def next_of(book: Book, caller: Caller = READER) -> list[tuple[datetime, str | None, tuple[str, ...]]]:
    found = await ComingChanges(book.db, book.now).next(caller)
    return [(each.at, each.change_set, each.stores) for each in found.changes]


async def change(book: Book, store: str, at: datetime | date, change_set: str | None = None) -> int:
    number = await book.switch.open_edition(store, at, change_set=change_set)
    await book.switch.seal(store, number)
    return number


async def test_stores_that_change_together_are_one_entry_for_each_change_set(book: Book) -> None:
    for store in "123":
        await book.a_store(store)
        await change(book, store, SIXTH, "summer")
    await change(book, "2", SIXTH, "tea")
    await change(book, "3", FIFTH)
    assert await next_of(book) == [(FIFTH, None, ("3",)), (SIXTH, "summer", ("1", "2", "3")), (SIXTH, "tea", ("2",))]


async def test_midnight_comes_to_each_zone_at_its_own_instant(book: Book) -> None:
    await book.a_store("berlin", tz="Europe/Berlin")
    await book.a_store("tokyo", tz="Asia/Tokyo")
    for store in ("berlin", "tokyo"):
        await change(book, store, date(2026, 3, 6), "spring")
    assert [at.isoformat() for at, _, _ in await next_of(book)] == ["2026-03-05T15:00:00+00:00", "2026-03-05T23:00:00+00:00"]


async def test_what_is_open_cancelled_or_past_does_not_come(book: Book) -> None:
    await book.a_store("1")
    await book.switch.open_edition("1", SIXTH)
    await book.switch.cancel("1", await change(book, "1", FIFTH))
    await change(book, "1", book.now())
    book.pass_(FIFTH - book.now())
    assert await next_of(book) == []


async def test_only_stores_of_the_caller_are_counted(book: Book) -> None:
    for store in ("10", "11", "20"):
        await book.a_store(store)
        await change(book, store, SIXTH, "summer")
    assert await next_of(book, Caller("rea", frozenset({"read"}), ("1",))) == [(SIXTH, "summer", ("10", "11"))]
    with pytest.raises(LacksRole):
        await next_of(book, Caller("edi", frozenset({"edit"})))


async def test_a_list_that_is_cut_off_says_so(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coming, "MAX_ENTRIES", 2)
    for store in "123":
        await book.a_store(store)
        await change(book, store, SIXTH, "summer")
    found = await ComingChanges(book.db, book.now).next(READER)
    assert (found.has_more, found.changes[0].stores) == (True, ("1", "2"))


async def ends_of(desk: ChangeDesk) -> list[tuple[datetime, str | None, tuple[str, ...], bool]]:
    found = await desk.book.coming.next(READER)
    return [(each.at, each.change_set, each.stores, each.ends) for each in found.changes]


async def test_prices_for_a_time_come_to_an_end_before_and_after_they_are_settled(desk_anywhere: ChangeDesk) -> None:
    desk = desk_anywhere
    await desk.stores("1", "2", prices={"TEA": 100})
    sale = await desk.approved({"1": {"TEA": 80}, "2": {"TEA": 80}}, at=FIFTH, until_at=SIXTH)
    the_end = (SIXTH, sale.id, ("1", "2"), True)
    assert await ends_of(desk) == [(FIFTH, sale.id, ("1", "2"), False), the_end]
    desk.pass_(FIFTH - desk.book.now())
    await desk.settle("1", "2")
    assert await ends_of(desk) == [the_end]
    desk.pass_(SIXTH - desk.book.now())
    assert await ends_of(desk) == []


async def test_prices_that_are_taken_back_before_do_not_end(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"TEA": 100})
    sale = await desk.approved({"1": {"TEA": 80}}, at=FIFTH, until_at=SIXTH)
    desk.pass_(FIFTH - desk.book.now())
    await desk.settle("1")
    back = await desk.rolled_back(sale.id)
    assert [each[1] for each in await ends_of(desk) if each[3]] == []
    desk.pass_()
    await desk.settle("1")
    assert back.id != sale.id
    assert await ends_of(desk) == []


async def test_what_is_behind_the_end_of_a_list_that_is_cut_off_is_left_out(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.stores("1", "2", "3", prices={"TEA": 100})
    sale = await desk.approved({"1": {"TEA": 80}}, until_at=datetime(2026, 3, 9, tzinfo=UTC))
    desk.pass_()
    await desk.settle("1")
    await desk.approved({"2": {"TEA": 90}, "3": {"TEA": 90}}, at=FIFTH)
    assert (await ends_of(desk))[-1][1] == sale.id
    monkeypatch.setattr(coming, "MAX_ENTRIES", 1)
    found = await desk.book.coming.next(READER)
    assert ([each.at for each in found.changes], found.has_more) == ([FIFTH], True)
