"""The keys of items, in the words of the design that pricebook began from."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from book import Book, open_book
from pricebook.errors import InvalidField
from pricebook.model import Head, Price, PriceKey, Setting, Store, UnsettledEdition, Value, key_of, past_of
from tickler import ManualClock
from tickler.table import Entity, Transaction

IDES = datetime(2026, 3, 15, tzinfo=UTC)
BASE = PriceKey("12345", "ALL", "Base", "PROD123")
SWAP = PriceKey("12345", "ALL", "Swap", "COMBO1", "DEFAULT")
VALUE = Value(amount=1999, currency="EUR")

# Of each kind of item: its key, and its keys in the indexes.
KEYS: list[tuple[Entity, tuple[str | None, ...]]] = [
    (BASE.new_row({IDES: VALUE}), ("STORE#12345", "ALL#Base#PROD123#", "TYPE#Base#PROD123", "ALL#STORE#12345", None, None)),
    (
        SWAP.new_row({IDES: VALUE}),
        ("STORE#12345", "ALL#Swap#COMBO1#DEFAULT#", "TYPE#Swap#COMBO1", "ALL#STORE#12345#DEFAULT", None, None),
    ),
    (Head(store="12345"), ("STORE#12345", "!HEAD", None, None, None, None)),
    (Store(store="12345"), ("STORE#12345", "!STORE", "STORES", "12345", None, None)),
    (past_of(BASE, IDES, VALUE), ("PAST#STORE#12345", "ALL#Base#PROD123#2026-03-15T00:00:00", None, None, None, None)),
    (past_of(SWAP, IDES, VALUE), ("PAST#STORE#12345", "ALL#Swap#COMBO1#DEFAULT#2026-03-15T00:00:00", None, None, None, None)),
    (
        UnsettledEdition(store="12345", number=7, from_at=IDES, day=date(2026, 3, 15)),
        (
            "STORE#12345",
            "!EDITION#A7",
            "CHANGES#2026-03-15",
            "STORE#12345#A7",
            "UNSETTLED",
            "2026-03-15T00:00:00#12345#A7",
        ),
    ),
    (Setting(name="cursors", value=b"secret"), ("SETTING#cursors", "SETTING", None, None, None, None)),
]


@pytest.mark.parametrize(("item", "keys"), KEYS, ids=[type(item).__name__ for item, _ in KEYS])
async def test_items_are_stored_under_the_literal_keys_of_the_seed(
    item: Entity, keys: tuple[str | None, ...], tmp_path: Path, clock: ManualClock
) -> None:
    async with open_book(f"sqlite:///{tmp_path / 'prices.db'}", clock) as book:
        await book.db.put(item)
    with sqlite3.connect(tmp_path / "prices.db") as database:
        found = database.execute("SELECT pk, sk, gsi1pk, gsi1sk, gsi2pk, gsi2sk FROM pricebook").fetchall()
    database.close()
    assert found == [keys]


async def test_a_change_of_a_price_touches_one_index_and_reads_nothing_first(book: Book) -> None:
    def stage(tx: Transaction) -> None:
        tx.update(
            Price.key.id("12345", "ALL", "Base", "PROD123"), Price.values[IDES].set(VALUE), when=Price.values[IDES].missing()
        )

    await book.db.put(BASE.new_row({}))
    (explanation,) = await book.db.explain(stage)
    assert str(explanation).startswith("update Price('STORE#12345', 'ALL#Base#PROD123#')")
    assert "reads    nothing first" in str(explanation)


async def test_a_transition_writes_the_head_and_no_index(book: Book) -> None:
    await book.a_store()

    def seal(tx: Transaction) -> None:
        tx.update(Head.key.id("1"), Head.sealed_at.set(IDES), when=Head.next_edition == 1)

    (explanation,) = await book.db.explain(seal)
    assert explanation.write_units == {"table": 1, "gsi1": 0, "gsi2": 0}


@pytest.mark.parametrize("key", [BASE, SWAP])
def test_a_row_tells_what_it_is_a_price_of(key: PriceKey) -> None:
    assert key_of(key.new_row({})) == key
    assert key.row.pk == "STORE#12345"


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (("1", "ALL", "Bundle", "P1", None), "type: 'Bundle' is unknown: use one of Base, Swap"),
        (("1", "ALL", "Swap", "P1", None), "combination: is missing: prices of type Swap have one"),
        (("1", "ALL", "Base", "P1", "DEFAULT"), "combination: is not for prices of type Base: leave it out"),
        (("1", "ALL", "Base", "", None), "product: is empty: name one"),
    ],
)
def test_what_is_no_key_of_a_price_is_refused(key: tuple[str, str, str, str, str | None], reason: str) -> None:
    with pytest.raises(InvalidField) as refused:
        PriceKey(*key)
    assert str(refused.value) == reason


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (PriceKey("10005", "ALL", "Base", "PROD1"), "PROD1 in store 10005"),
        (PriceKey("1", "WEB", "Base", "P1"), "P1 (channel WEB) in store 1"),
        (PriceKey("1", "WEB", "Swap", "P1", "MENU"), "P1 (Swap, combination MENU, channel WEB) in store 1"),
    ],
)
def test_a_price_is_named_as_people_do(key: PriceKey, words: str) -> None:
    assert key.words == words
