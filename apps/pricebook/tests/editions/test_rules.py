"""The rules of editions, one to twelve, on each store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from book import MARCH, Book, euros, staged
from pricebook.editions.pages import PageArgs
from pricebook.editions.switch import Switch
from pricebook.errors import InvalidCursor, NotAllowed, PriceConflict
from pricebook.model import PastPrice, Store, UnsettledEdition
from tickler.errors import ConditionFailed
from tickler.table import MISSING, Transaction

DAY = timedelta(days=1)
BEFORE = {"P1": 100, "P2": 200}


@pytest.fixture
def book(book_anywhere: Book) -> Book:
    return book_anywhere


@pytest.fixture
def writes(book: Book, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The writes from now on: what each of them writes."""
    written: list[list[str]] = []
    write = book.db.engine.write

    async def recorded(operations: Sequence[Any], **options: Any) -> Any:
        written.append([f"{type(each).__name__} {each.id.pk} {each.id.sk}" for each in operations])
        return await write(operations, **options)

    monkeypatch.setattr(book.db.engine, "write", recorded)
    return written


async def test_rule_1_the_value_of_the_greatest_instant_counts_if_it_is_settled_or_of_a_sealed_edition(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    await book.change({"P1": 101}, at=book.now() + DAY)
    open_ = await book.stage({"P2": 999}, at=book.now() + DAY)
    await book.change({"P1": 102}, at=book.now() + 2 * DAY, until=book.now() + 3 * DAY)
    cancelled = await book.change({"P2": 998}, at=book.now() + 2 * DAY)
    await book.switch.cancel("1", cancelled)
    seen = []
    for _ in range(4):
        seen.append(await book.shown())
        book.pass_(DAY)
    assert seen == [{"P1": 100, "P2": 200}, {"P1": 101, "P2": 200}, {"P1": 102, "P2": 200}, {"P1": 101, "P2": 200}]
    assert (await book.head()).editions[open_].state == "open"


async def test_rule_1_cursors_carry_the_instant_of_their_traversal_until_former_prices_are_gone(book: Book) -> None:
    await book.a_store(prices={f"P{n}": n for n in range(6)})
    first = await book.prices.of_store("1", page=PageArgs(first=2))
    await book.change({f"P{n}": 100 + n for n in range(6)})
    book.pass_(DAY)
    second = await book.prices.of_store("1", page=PageArgs(first=2, after=first.end_cursor))
    assert [node.amount.minor for node in second.nodes] == [2, 3]
    assert second.at == first.at
    book.pass_(timedelta(milliseconds=1))
    with pytest.raises(InvalidCursor, match="too old: former prices are gone"):
        await book.prices.of_store("1", page=PageArgs(first=2, after=first.end_cursor))


async def test_rule_2_nothing_of_an_edition_is_seen_before_it_is_sealed_and_the_margin_has_passed(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.switch.open_edition("1")
    await book.switch.stage("1", number, staged({"P1": 101}))
    book.pass_(DAY)  # the process has stopped, and another one goes on
    assert await book.shown() == BEFORE
    assert await book.switch.stage("1", number, staged({"P1": 101, "P2": 201})) == 1
    edition = await book.switch.seal("1", number)
    assert edition.from_at == book.now() + book.timing.margin
    assert await book.shown() == BEFORE
    book.pass_(book.timing.margin)
    assert await book.shown() == {"P1": 101, "P2": 201}


async def test_rule_3_an_edition_is_moved_to_a_later_instant_by_one_write_of_the_head(
    book: Book, writes: list[list[str]]
) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change({"P1": 101, "P2": 201}, at=book.now() + DAY)
    writes.clear()
    await book.switch.move("1", number, book.now() + 2 * DAY)
    assert writes == [["Update STORE#1 !HEAD", "Put STORE#1 !EDITION#A2"]]  # and of its entry in the index by time
    book.pass_(DAY)
    assert await book.shown() == BEFORE
    book.pass_(DAY)
    assert await book.shown() == {"P1": 101, "P2": 201}


async def test_rule_3_an_edition_cannot_be_moved_before_the_instant_that_its_rows_name(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change({"P1": 101}, at=book.now() + DAY)
    with pytest.raises(NotAllowed, match="edition 2 of store 1: its prices are staged for 2026-03-02"):
        await book.switch.move("1", number, book.now() + DAY / 2)


async def test_rule_4_an_edition_that_is_sealed_too_late_counts_a_minute_from_now(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    wanted = book.now() + timedelta(seconds=1)
    number = await book.stage({"P1": 101}, at=wanted)
    book.pass_(DAY)
    edition = await book.switch.seal("1", number, wanted)
    assert edition.from_at == book.now() + timedelta(minutes=1)
    book.pass_(timedelta(minutes=1))
    assert await book.shown() == {"P1": 101, "P2": 200}


async def test_rule_5_a_second_price_for_the_same_product_and_instant_is_refused_and_names_the_other_edition(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    at = book.now() + DAY
    one = await book.change({"P1": 101}, at=at)
    other = await book.switch.open_edition("1", at)
    with pytest.raises(PriceConflict, match=f"P1 in store 1 is in edition {one}, too, at the same instant: cancel that one"):
        await book.switch.stage("1", other, staged({"P2": 201, "P1": 102}))
    await book.switch.cancel("1", other)
    await book.change({"P2": 202}, at=at)  # another product
    await book.change({"P1": 101}, at=at, channel="WEB")  # another channel
    book.pass_(DAY)
    assert await book.shown() == {"P1": 101, "P2": 202}


async def test_rule_5_the_price_of_an_edition_that_was_cancelled_before_it_counted_gives_way(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    at = book.now() + DAY
    for number in (await book.change({"P1": 101}, at=at), await book.stage({"P2": 201}, at=at)):
        await book.switch.cancel("1", number)
    await book.change({"P1": 102, "P2": 202}, at=at)
    book.pass_(DAY)
    assert await book.shown() == {"P1": 102, "P2": 202}


async def test_rule_6_an_edition_is_cancelled_before_it_counts_by_one_write_of_the_head(
    book: Book, writes: list[list[str]]
) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change({"P1": 101, "P2": 201}, at=book.now() + DAY)
    writes.clear()
    await book.switch.cancel("1", number)
    assert writes == [["Update STORE#1 !HEAD"]]
    book.pass_(DAY)
    assert await book.shown() == BEFORE
    with pytest.raises(NotAllowed, match="edition 2 of store 1: it was cancelled: open another edition"):
        await book.switch.cancel("1", number)


async def test_rule_6_an_edition_that_counts_is_cancelled_until_it_is_settled(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change({"P1": 101, "P2": 201})
    book.pass_()
    assert await book.shown() == {"P1": 101, "P2": 201}
    edition = await book.switch.cancel("1", number)
    assert edition.to_at == book.now() + book.timing.margin
    assert await book.shown() == {"P1": 101, "P2": 201}
    book.pass_()
    assert await book.shown() == BEFORE
    await book.switch.settle("1")
    assert await book.shown() == BEFORE
    assert await book.prices.as_of("1", "P1", book.now() - timedelta(seconds=1)) is not None


async def test_rule_6_a_settled_edition_is_rolled_back_by_a_new_one(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.change({"P1": 101, "P3": 301})
    book.pass_()
    await book.switch.settle("1")
    later = await book.change({"P2": 202})
    assert await book.switch.roll_back("1", number) == later + 1
    assert await book.shown() == {"P1": 101, "P2": 200, "P3": 301}
    book.pass_()
    assert await book.shown() == {"P1": 100, "P2": 202}
    await book.switch.settle("1")
    assert await book.shown() == {"P1": 100, "P2": 202}


async def test_rule_6_a_price_that_is_rolled_back_when_it_is_past_counts_never_again(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    first = await book.change({"P1": 90})
    book.pass_()
    second = await book.change({"P1": 80})
    book.pass_(2 * DAY)
    await book.switch.settle("1")
    row = await book.row("P1")
    assert row is not None
    assert [value.settled for value in row.values.values()] == [second]  # the others are past
    for number, expected in ((first, {"P1": 80, "P2": 200}), (second, BEFORE)):
        await book.switch.roll_back("1", number)
        book.pass_(2 * DAY)
        assert await book.shown() == expected
        await book.switch.settle("1")
        assert await book.shown() == expected


async def test_rule_7_after_its_end_the_former_price_counts_again_without_a_write_and_when_it_is_settled(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    await book.change({"P1": 90}, at=book.now() + DAY, until=book.now() + 2 * DAY)
    book.pass_(DAY)
    (node, _) = await book.nodes()
    assert (node.amount, node.until) == (euros(90), book.now() + DAY)
    await book.switch.settle("1")
    assert await book.shown() == {"P1": 90, "P2": 200}
    book.pass_(DAY)
    assert await book.shown() == BEFORE


async def test_rule_8_a_channel_shows_its_own_prices_and_for_other_products_those_of_all(book: Book) -> None:
    await book.a_store(prices={f"P{n}": n for n in range(5)})
    await book.change({"P1": 91, "P3": 93, "P7": 97}, channel="WEB")
    await book.change({"P4": None}, channel="WEB")
    book.pass_()
    expected = {"P0": 0, "P1": 91, "P2": 2, "P3": 93, "P4": 4, "P7": 97}
    assert await book.shown(channel="WEB") == expected
    assert await book.shown(channel="WEB", first=1) == expected
    assert await book.shown(channel="APP") == await book.shown() == {f"P{n}": n for n in range(5)}


async def test_rule_8_a_store_without_prices_of_a_channel_is_not_asked_for_them(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await book.a_store(prices=BEFORE)
    asked: list[str] = []
    slice_ = book.db.engine.slice

    async def recorded(ask: Any, **options: Any) -> Any:
        asked.append(ask.span.low)
        return await slice_(ask, **options)

    monkeypatch.setattr(book.db.engine, "slice", recorded)
    assert await book.shown(channel="WEB") == BEFORE
    assert asked == ["ALL#Base#"]


async def test_rule_9_the_lowest_price_of_the_30_days_before_a_reduction_is_stored_with_it(book: Book) -> None:
    await book.a_store(prices={"P1": 100, "P2": 200})
    for days, minor in ((5, 70), (10, 120), (20, 110)):
        await book.change({"P1": minor}, at=MARCH + days * DAY)
        book.clock.set(MARCH + days * DAY)
        await book.switch.settle("1")
    book.clock.set(MARCH + 34 * DAY)
    assert await book.db.count(PastPrice.key("1").under("ALL").under("Base").under("P1")) > 0
    at = MARCH + 36 * DAY
    number = await book.switch.open_edition("1", at)
    lowest = await book.lowest({"P1": 99, "P2": 201}, at)
    assert lowest == {"P1": euros(70)}  # P2 is not reduced
    reduced = [replace(each, lowest_30_days=lowest.get(each.product)) for each in staged({"P1": 99, "P2": 201})]
    await book.switch.stage("1", number, reduced)
    await book.switch.seal("1", number)
    book.clock.set(at)
    assert [node.lowest_30_days for node in await book.nodes()] == [euros(70), None]
    assert await book.lowest({"P1": 50}, MARCH + 41 * DAY) == {
        "P1": euros(99)
    }  # the 70 ended on the tenth day, more than 30 days before


async def test_rule_10_settling_marks_values_as_settled_moves_old_ones_and_lets_the_head_forget(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    loaded_at = book.now()
    for minor in (101, 102):
        book.pass_(2 * DAY)
        await book.change({"P1": minor})
        book.pass_()
        await book.switch.settle("1")
    row = await book.row("P1")
    assert row is not None
    assert [(value.amount, value.edition, value.settled) for _, value in sorted(row.values.items())] == [
        (101, MISSING, 2),
        (102, MISSING, 3),
    ]
    (past,) = (await book.db.query(PastPrice.key("1"), first=9)).items
    assert (past.product, past.from_at, past.value.amount) == ("P1", loaded_at, 100)
    assert (await book.head()).editions == {}
    assert (await book.db.query(UnsettledEdition.by_instant(), first=9)).items == []
    node = await book.prices.as_of("1", "P1", loaded_at)
    assert node is not None
    assert node.amount == euros(100)


async def test_rule_11_what_is_kept_of_a_transition_is_written_in_its_transaction(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    entries: list[tuple[str, str | None, str | None]] = []

    def record(tx: Transaction, transition: Any) -> None:
        tx.create(Store(store=f"{transition.action} {transition.edition}"))  # stands for an entry of the audit
        entries.append(
            (
                transition.action,
                None if transition.before is None else transition.before.state,
                None if transition.after is None else transition.after.state,
            )
        )

    switch = Switch(book.db, book.now, record=record)
    number = await switch.open_edition("1")
    await switch.stage("1", number, staged({"P1": 101}))
    await switch.seal("1", number)
    book.pass_()
    await switch.settle("1")
    assert entries == [
        ("open", None, "open"),
        ("seal", "open", "sealed"),
        ("settle", "sealed", "settling"),
        ("drop", "settling", None),
    ]
    assert await book.db.count(Store.all()) == 1 + len(entries)

    def refuse(tx: Transaction, transition: Any) -> None:
        tx.create(Store(store="1"))  # it is there

    with pytest.raises(ConditionFailed):
        await Switch(book.db, book.now, record=refuse).open_edition("1")
    assert (await book.head()).editions == {}


async def test_rule_12_prices_are_right_at_midnight_without_any_write_however_late_they_are_settled(
    book: Book, writes: list[list[str]]
) -> None:
    await book.a_store(prices={f"P{n}": n for n in range(20)})
    await book.change({f"P{n}": 100 + n for n in range(20)}, at=date(2026, 3, 2))
    assert await book.shown() == {f"P{n}": n for n in range(20)}
    writes.clear()
    book.clock.set(datetime(2026, 3, 2, tzinfo=UTC) - timedelta(milliseconds=1))
    assert await book.shown() == {f"P{n}": n for n in range(20)}
    book.pass_(timedelta(milliseconds=1))
    assert await book.shown() == {f"P{n}": 100 + n for n in range(20)}
    assert await book.across("P7") == {"1": 107}
    book.pass_(10 * DAY)
    assert await book.shown() == {f"P{n}": 100 + n for n in range(20)}
    assert writes == []


async def test_sealing_any_number_of_prices_is_one_conditional_write_of_the_head(book: Book, writes: list[list[str]]) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.stage({f"P{n}": n for n in range(150)}, at=book.now() + DAY)
    writes.clear()
    await book.switch.seal("1", number)
    assert writes == [["Update STORE#1 !HEAD"]]


async def test_a_transition_joins_the_transaction_of_a_caller(book: Book) -> None:
    await book.a_store(prices=BEFORE)
    number = await book.stage({"P1": 101})
    with pytest.raises(ConditionFailed):
        await book.db.transact(lambda tx: _seal_and_create(book, tx, number, "1"))  # that store is there
    assert (await book.head()).editions[number].state == "open"
    await book.db.transact(lambda tx: _seal_and_create(book, tx, number, "2"))
    assert (await book.head()).editions[number].state == "sealed"


async def _seal_and_create(book: Book, tx: Transaction, number: int, store: str) -> None:
    await book.switch.seal("1", number, using=tx)
    tx.create(Store(store=store))
