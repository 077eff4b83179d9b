"""Exports: all prices of one instant, as a stream, that change nothing if they are imported."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from book import Book, staged
from imports import ADA, Imports
from pricebook.access.caller import Caller
from pricebook.app import Pricebook
from pricebook.bulk import export as exporting
from pricebook.bulk.export import ExportOptions, Exports
from pricebook.errors import InvalidField, LacksRole, NotAllowed, NotFound
from pricebook.model import BulkCounts
from tickler import ManualClock

NAMES = ("P1", "=cmd|'/C calc'!A0", "+1", "-1", "@x", "\tt", "'=x", 'a,b;"c"', "two\r\nlines", "é%/#ü")


async def exported(opened: Pricebook, caller: Caller = ADA, **options: Any) -> bytes:
    exports = Exports(opened.db, opened.now, opened.timing)
    return b"".join([piece async for piece in (await exports.export(caller, ExportOptions(**options))).pieces])


async def lines(opened: Pricebook, caller: Caller = ADA, **options: Any) -> list[str]:
    """Return what an export has, as "1/ALL/Base/P1=1.00 EUR"."""
    found = [json.loads(line) for line in (await exported(opened, caller, **options)).splitlines()]
    return [
        "/".join([each["store"], each["channel"], each["type"], each["product"], *filter(None, [each.get("combination")])])
        + f"={each['amount']} {each['currency']}"
        for each in found
    ]


@pytest.fixture
async def book(opened: Pricebook, clock: ManualClock) -> Book:
    """Three stores with prices in channels, types and editions."""
    book = Book(opened.db, clock)
    await book.a_store("1", {"P1": 100, "P2": 200, "GONE": 5})
    await book.change({"P2": 210}, channel="WEB")
    await book.change({"C1/D": 50, "C1/E": 60}, type="Swap")
    await book.change({"GONE": None})
    await book.a_store("10", {"P1": 300})
    await book.a_store("2", {"P1": 400})
    return book


ALL = [
    "1/ALL/Base/P1=1.00 EUR",
    "1/ALL/Base/P2=2.00 EUR",
    "1/ALL/Swap/C1/D=0.50 EUR",
    "1/ALL/Swap/C1/E=0.60 EUR",
    "1/WEB/Base/P2=2.10 EUR",
    "10/ALL/Base/P1=3.00 EUR",
    "2/ALL/Base/P1=4.00 EUR",
]


async def test_an_export_has_the_prices_that_count_now_in_the_order_of_keys(opened: Pricebook, book: Book) -> None:
    assert await lines(opened) == ALL


async def test_an_export_is_of_one_instant_whatever_is_decided_meanwhile(
    opened: Pricebook, book: Book, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "ROWS_AT_A_TIME", 2)
    await book.change({"P1": 999}, store="2", at=book.now() + timedelta(seconds=5))
    exports = Exports(opened.db, opened.now, opened.timing)
    pieces = (await exports.export(ADA, ExportOptions())).pieces
    found = [await anext(pieces), await anext(pieces)]
    clock.advance(10)
    await book.switch.settle("2")
    await book.switch.settle("1")
    await book.change({"P2": 999, "P3": 1})
    clock.advance(10)
    found += [piece async for piece in pieces]
    assert len(b"".join(found).splitlines()) == len(ALL)
    assert b"9.99" not in b"".join(found)
    assert [each for each in await lines(opened) if "9.99" in each] == ["1/ALL/Base/P2=9.99 EUR", "2/ALL/Base/P1=9.99 EUR"]


async def test_stores_channels_and_types_are_chosen(opened: Pricebook, book: Book) -> None:
    assert await lines(opened, stores=("2", "10")) == ALL[5:]
    assert await lines(opened, channels=("WEB",)) == [ALL[4]]
    assert await lines(opened, types=("Swap",)) == ALL[2:4]
    assert await lines(opened, stores=("2",), channels=("WEB",)) == []


async def test_only_stores_of_the_caller_are_exported(opened: Pricebook, book: Book) -> None:
    assert await lines(opened, Caller("ten", frozenset({"read"}), ("10",))) == [ALL[5]]
    assert await lines(opened, Caller("one", frozenset({"read"}), ("1", "3"))) == ALL[:6]
    with pytest.raises(NotFound):
        await exported(opened, Caller("ten", frozenset({"read"}), ("10",)), stores=("2",))
    with pytest.raises(NotFound):
        await exported(opened, stores=("3",))
    with pytest.raises(LacksRole):
        await exported(opened, Caller("editor", frozenset({"edit"})))
    with pytest.raises(InvalidField, match="type: 'Sale' is unknown"):
        await exported(opened, types=("Sale",))


async def test_an_export_that_takes_longer_than_former_prices_are_kept_breaks_off(
    opened: Pricebook, book: Book, clock: ManualClock
) -> None:
    pieces = (await Exports(opened.db, opened.now, opened.timing).export(ADA, ExportOptions())).pieces
    await anext(pieces)
    clock.advance(2 * 86_400)
    with pytest.raises(NotAllowed, match="the export took too long"):
        await anext(pieces)


@pytest.mark.parametrize("options", [{}, {"format": "csv"}, {"format": "csv", "delimiter": ";"}])
async def test_importing_an_export_changes_nothing(opened: Pricebook, book: Book, options: dict[str, Any]) -> None:
    await book.a_store("x=1", {name: 100 + n for n, name in enumerate(NAMES)})
    await book.change({"P1": 5}, store="x=1", until=book.now() + timedelta(days=1))
    book.pass_()
    content = await exported(opened, **options)
    job = await Imports(opened).run(content, format=options.get("format", "ndjson"))
    assert (job.state, job.counts, job.change_set) == ("done", BulkCounts(unchanged=len(ALL) + len(NAMES)), "")


async def test_importing_an_export_on_each_store_changes_nothing(opened_anywhere: Pricebook, clock: ManualClock) -> None:
    book = Book(opened_anywhere.db, clock)
    await book.a_store("1", {name: 100 + n for n, name in enumerate(NAMES)})
    number = await book.switch.open_edition("1")
    await book.switch.stage("1", number, staged({"P1": 7}, "WEB"))
    await book.switch.seal("1", number)
    book.pass_()
    job = await Imports(opened_anywhere).run(await exported(opened_anywhere, format="csv"))
    assert (job.counts, job.error) == (BulkCounts(unchanged=len(NAMES) + 1), "")


async def test_a_csv_begins_with_a_mark_and_no_cell_of_it_is_a_formula(opened: Pricebook, clock: ManualClock) -> None:
    await Book(opened.db, clock).a_store("1", dict.fromkeys(NAMES, 100))
    content = await exported(opened, format="csv", delimiter=";")
    assert content.startswith(b"\xef\xbb\xbfstore;channel;type;product;combination;amount;currency\r\n")
    cells = [cell for row in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=";") for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]


async def test_an_export_of_nothing_is_one_that_can_be_imported(opened: Pricebook) -> None:
    assert await exported(opened) == b""
    assert (await exported(opened, format="csv")).count(b"\n") == 1


async def test_no_more_than_a_page_of_rows_is_held(
    opened: Pricebook, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "ROWS_AT_A_TIME", 10)
    await Book(opened.db, clock).a_store("1", {f"P{n:03}": 100 for n in range(95)})
    pieces: AsyncIterator[bytes] = (await Exports(opened.db, opened.now).export(ADA, ExportOptions())).pieces
    assert [piece.count(b"\n") async for piece in pieces] == [0, *[10] * 9, 5]
