"""Transactions of a table on the engines that need no server: what they have read, and what they join."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

import tickler
from tickler import InvalidInput, Schedule, VersionConflict
from tickler.errors import ConditionFailed, TransactionConflict
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.index_texts import index_texts
from tickler.table.open_table import OpenTable

bank = Table("bank")


class Account(Entity, table=bank):
    id: Attr[str] = attr()
    cents: Attr[int] = attr(default=0)
    key = Key("ACCOUNT" / id, "ACCOUNT")


class Contract(Entity, table=bank):
    id: Attr[str] = attr()
    text: Attr[str]
    revision: Attr[int] = attr(default=0, version=True)
    key = Key("CONTRACT" / id, "CONTRACT")


@pytest.fixture(params=["memory", "sqlite"])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenTable]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'bank.db'}"
    async with bank.connect(url) as opened:
        yield opened


async def test_an_item_that_changed_between_two_reads_is_a_conflict(db: OpenTable) -> None:
    await db.put(Account(id="1", cents=1))

    async def attempt() -> None:
        async with db.transaction() as tx:
            await tx.get(Account.key.id("1"))
            await db.put(Account(id="1", cents=50))
            await tx.get(Account.key.id("1"))

    with pytest.raises(TransactionConflict):
        await attempt()


async def test_an_item_that_was_deleted_after_it_was_read_is_a_conflict(db: OpenTable) -> None:
    await db.put(Account(id="1", cents=1))

    async def attempt() -> None:
        async with db.transaction() as tx:
            await tx.get(Account.key.id("1"))
            await db.delete(Account.key.id("1"))
            tx.update(Account.key.id("1"), Account.cents.add(1))

    with pytest.raises(TransactionConflict):
        await attempt()


async def test_an_item_that_was_deleted_and_created_again_is_a_conflict(db: OpenTable) -> None:
    await db.put(Contract(id="1", text="old"))

    async def attempt() -> None:
        async with db.transaction() as tx:
            read = await tx.get(Contract.key.id("1"))
            assert read is not None
            await db.delete(read.key)
            await db.put(Contract(id="1", text="new"))
            tx.update(read.key, Contract.text.set("mine"))

    with pytest.raises(TransactionConflict):
        await attempt()


async def test_a_transaction_that_only_checks_fails_unless_its_condition_holds(db: OpenTable) -> None:
    await db.put(Account(id="1", cents=1))

    async def attempt(cents: int) -> None:
        async with db.transaction() as tx:
            tx.check(Account.key.id("1"), Account.cents == cents)

    await attempt(1)
    with pytest.raises(ConditionFailed):
        await attempt(2)


async def test_what_is_loaded_has_its_first_version(db: OpenTable) -> None:
    await db.load([Contract(id="1", text="loaded")])
    found = await db.get(Contract.key.id("1"))
    assert found is not None
    assert found.revision == 1
    with pytest.raises(VersionConflict):
        await db.put(Contract(id="1", text="new"))


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
async def test_a_schedule_changes_once_in_a_transaction(url: str) -> None:
    async with tickler.connect(url) as t, bank.connect(t) as db, db.transaction() as tx:
        await t.schedules.put(Schedule(owner="u", key="k", when="@daily"), using=tx)
        with pytest.raises(InvalidInput, match="u/k is in this transaction already"):
            await t.schedules.put(Schedule(owner="u", key="k", when="@hourly"), using=tx)


def test_the_text_of_an_index_is_the_same_in_every_process() -> None:
    table = Table("tagged")

    class Tagged(Entity, table=table):
        id: Attr[str] = attr()
        tags: Attr[frozenset[str]] = attr(default=frozenset())
        n: Attr[int] = attr(default=5)
        key = Key("TAGGED" / id, "TAGGED")
        chosen = Index("gsi1", "CHOSEN", n / id, when=tags == frozenset({"c", "a", "b"}))

    text = index_texts(table)["Tagged"]["gsi1"]
    assert "frozenset({'a', 'b', 'c'})" in text
    assert text.endswith("by default n=5, tags=frozenset({})")


def test_ranges_of_enums_that_overlap_are_not_taken_for_disjoint() -> None:
    class Size(Enum):
        S = 1
        M = 2
        L = 3

    with pytest.raises(InvalidInput, match="exclude each other"):

        class Shirt(Entity, table=Table("shirts")):
            id: Attr[str] = attr()
            size: Attr[Size] = attr()
            key = Key("SHIRT" / id, "SHIRT")
            small = Index("gsi1", "SMALL", id, when=size <= Size.L)
            large = Index("gsi1", "LARGE", id, when=size >= Size.S)


def test_constraints_that_an_engine_cannot_keep_are_refused() -> None:
    with pytest.raises(InvalidInput, match="leave Meta out"):

        class Bounded(Entity, table=Table("bounded")):
            id: Attr[str] = attr()
            n: Attr[Annotated[int, msgspec.Meta(ge=0)]] = attr()
            key = Key("BOUNDED" / id, "BOUNDED")


async def test_an_entity_that_is_defined_after_the_table_was_opened_needs_it_to_be_opened_again() -> None:
    table = Table("growing")

    class First(Entity, table=table):
        id: Attr[str] = attr()
        key = Key("FIRST" / id, "FIRST")

    async with table.connect("sqlite://") as db:
        await db.put(First(id="1"))

        class Second(Entity, table=table):
            id: Attr[str] = attr()
            key = Key("SECOND" / id, "SECOND")
            listed = Index("gsi1", "SECOND", id)

        with pytest.raises(InvalidInput, match="open it again"):
            await db.put(First(id="2"))
        with pytest.raises(InvalidInput, match="open it again"):
            await db.count(Second.listed())
