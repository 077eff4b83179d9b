"""Definitions of indexes that change after items were stored: opened, refused, reindexed, on every engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.dynamo.client import Client
from tickler.errors import SchemaMismatch
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.engines.metadata import EntryWrite
from tickler.table.open_table import OpenTable

NAME = "reindexed"
CLOCK = ManualClock(4_000_000_000_000)
# DynamoDB Local takes seconds to add an index, and minutes if it is asked for several at once.
ONE_AT_A_TIME = pytest.mark.adds_index
ENGINES = ["memory", "sqlite", "postgres", pytest.param("dynamodb", marks=ONE_AT_A_TIME)]
ON_DYNAMODB = {
    "test_a_new_index_is_filled_when_a_small_table_is_opened",
    "test_a_changed_condition_moves_items_when_a_small_table_is_opened",
    "test_a_large_table_is_refused_until_it_is_reindexed",
    "test_writers_during_a_reindex_end_with_the_right_keys",
}

Connect = Callable[..., OpenTable]


def first_version() -> tuple[Table, Any]:
    table = Table(NAME)

    class Doc(Entity, table=table):
        id: Attr[int] = attr()
        status: Attr[str] = attr(default="draft")
        size: Attr[int | Missing] = attr(default=MISSING)
        text: Attr[str] = attr(default="")
        key = Key("DOC" / id, "DOC")
        by_status = Index("gsi1", "STATUS" / status, id)

    return table, Doc


def with_a_new_index() -> tuple[Table, Any]:
    """The same in gsi1; gsi0, in front of it, and gsi2 are new."""
    table = Table(NAME)

    class Doc(Entity, table=table):
        id: Attr[int] = attr()
        status: Attr[str] = attr(default="draft")
        size: Attr[int | Missing] = attr(default=MISSING)
        text: Attr[str] = attr(default="")
        key = Key("DOC" / id, "DOC")
        with_status = Index("gsi1", "STATUS" / status, id)
        sized = Index("gsi0", "SIZED", size / id)
        drafts = Index("gsi2", "DRAFT", id, when=status == "draft")

    return table, Doc


def with_another_condition() -> tuple[Table, Any]:
    table = Table(NAME)

    class Doc(Entity, table=table):
        id: Attr[int] = attr()
        status: Attr[str] = attr(default="draft")
        size: Attr[int | Missing] = attr(default=MISSING)
        text: Attr[str] = attr(default="")
        key = Key("DOC" / id, "DOC")
        by_status = Index("gsi1", "STATUS" / status, id, when=status != "draft")

    return table, Doc


def with_an_index_less() -> tuple[Table, Any, Any]:
    """Another entity still uses gsi1."""
    table = Table(NAME)

    class Doc(Entity, table=table):
        id: Attr[int] = attr()
        status: Attr[str] = attr(default="draft")
        size: Attr[int | Missing] = attr(default=MISSING)
        text: Attr[str] = attr(default="")
        key = Key("DOC" / id, "DOC")

    class Folder(Entity, table=table):
        id: Attr[int] = attr()
        status: Attr[str] = attr(default="draft")
        key = Key("FOLDER" / id, "FOLDER")
        by_status = Index("gsi1", "STATUS" / status, id)

    return table, Doc, Folder


def of_another_program() -> tuple[Table, Any]:
    table = Table(NAME)

    class Stamp(Entity, table=table):
        id: Attr[int] = attr()
        country: Attr[str] = attr(default="NL")
        key = Key("STAMP" / id, "STAMP")
        by_country = Index("gsi1", "COUNTRY" / country, id)
        by_id = Index("gsi3", "STAMPS", id)

    return table, Stamp


@pytest.fixture(params=ENGINES)
def connect(request: pytest.FixtureRequest, tmp_path: Path, soak: bool) -> Connect:
    """A function that connects a table to the same place each time."""
    if request.param == "dynamodb" and request.node.originalname not in ON_DYNAMODB and not soak:
        pytest.skip("adds indexes on DynamoDB Local, which is slow: make soak")
    if request.param == "memory":
        database = MemoryDatabase()
        return lambda table, create=True: OpenTable(table, MemoryEngine(table, database), CLOCK, create=create)
    if request.param == "sqlite":
        return by_url(f"sqlite:///{tmp_path}/reindexed.db")
    return request.getfixturevalue(f"on_{request.param}")  # type: ignore[no-any-return]  # one of the next two


@pytest.fixture
def on_postgres(postgres_url: str) -> Connect:
    return by_url(postgres_url)


@pytest.fixture
def on_dynamodb(dynamodb_table: str, dynamodb_endpoint: str) -> Connect:
    return by_url(f"dynamodb://{dynamodb_table}?region=eu-west-1&endpoint={dynamodb_endpoint}")


def by_url(url: str) -> Connect:
    return lambda table, create=True: table.connect(url, create=create, clock=CLOCK)


async def fill(connect: Connect, items: int = 12) -> None:
    table, doc = first_version()
    async with connect(table) as db:
        await db.put_many([doc(id=n, status="draft" if n % 3 else "done") for n in range(0, items, 2)])
        await db.put_many([doc(id=n, size=n) for n in range(1, items, 2)])


async def ids(db: OpenTable, selection: Any) -> list[int]:
    return [each.id for each in (await db.query(selection, first=1000)).items]


async def reindex(db: OpenTable, on_progress: Any = lambda *_: None) -> int:
    """Do what `tickler table reindex` does."""
    await db.engine.open(create=True)
    try:
        return await db.reindex(on_progress=on_progress)
    finally:
        await db.close()


async def test_a_new_index_is_filled_when_a_small_table_is_opened(connect: Connect) -> None:
    await fill(connect)
    table, doc = with_a_new_index()
    async with connect(table) as db:
        assert await ids(db, doc.sized()) == [1, 3, 5, 7, 9, 11]
        assert await ids(db, doc.drafts()) == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11]
        assert await ids(db, doc.with_status("done")) == [0, 6]
        await db.update(doc.key.id(1), doc.status.set("done"))
        assert await ids(db, doc.drafts()) == [2, 3, 4, 5, 7, 8, 9, 10, 11]
        assert await ids(db, doc.with_status("done")) == [0, 1, 6]
    async with connect(table, create=False) as db:
        assert await db.count(doc.sized()) == 6
        assert await db.reindex() == 0


async def test_a_changed_condition_moves_items_when_a_small_table_is_opened(connect: Connect) -> None:
    await fill(connect)
    table, doc = with_another_condition()
    async with connect(table) as db:
        assert await ids(db, doc.by_status("done")) == [0, 6]
        assert await ids(db, doc.by_status("draft")) == []


async def test_an_index_that_an_entity_has_no_more_loses_its_items(connect: Connect) -> None:
    await fill(connect)
    table, doc, folder = with_an_index_less()
    async with connect(table) as db:
        await db.put(folder(id=1))
        assert await ids(db, folder.by_status("draft")) == [1]
        assert await db.count(folder.by_status("draft")) == 1
    table, doc = first_version()
    async with connect(table) as db:
        assert await ids(db, doc.by_status("done")) == [0, 6]


@pytest.mark.parametrize("version", [with_a_new_index, with_another_condition])
async def test_without_create_a_changed_index_is_refused_with_the_remedy(
    connect: Connect, version: Callable[[], tuple[Table, Any]]
) -> None:
    await fill(connect)
    table, _ = version()
    made = connect(table)
    await made.engine.open(create=True)  # as `tickler table create` does
    await made.close()
    with pytest.raises(SchemaMismatch, match=r"'reindexed' .* before .*Doc/gsi\d.*: run `tickler table reindex`") as refused:
        await connect(table, create=False).open()
    assert refused.value.attribute in ("Doc/gsi0", "Doc/gsi1")
    assert await reindex(connect(table)) > 0
    async with connect(table, create=False):
        pass


async def test_without_create_an_index_that_is_not_there_is_refused(connect: Connect) -> None:
    await fill(connect)
    table, _ = with_a_new_index()
    with pytest.raises(SchemaMismatch, match="gsi0"):
        await connect(table, create=False).open()


async def test_a_large_table_is_refused_until_it_is_reindexed(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(connect)
    table, doc = with_a_new_index()
    monkeypatch.setattr("tickler.table.open_table.REINDEXED_AT_ONCE", 11)
    with pytest.raises(SchemaMismatch, match=r"Doc/gsi0, Doc/gsi2.*run `tickler table reindex`"):
        await connect(table).open()
    told: list[tuple[str, int, int | None]] = []
    assert await reindex(connect(table), lambda *each: told.append(each)) == 10  # drafts; the others have no size
    assert told
    assert told[-1][0] == "indexing"
    assert told[-1][1] >= 12
    async with connect(table) as db:
        assert await db.count(doc.sized()) == 6
        assert await db.count(doc.drafts()) == 10


async def test_a_table_of_just_as_many_items_is_reindexed_at_once(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(connect)
    monkeypatch.setattr("tickler.table.open_table.REINDEXED_AT_ONCE", 12)
    table, doc = with_a_new_index()
    async with connect(table) as db:
        assert await db.count(doc.sized()) == 6


async def test_an_index_that_was_gone_for_a_while_is_filled_again(connect: Connect) -> None:
    table, doc = with_a_new_index()
    async with connect(table) as db:
        await db.put_many([doc(id=n, size=n) for n in range(4)])
    older, old_doc = first_version()
    async with connect(older) as db:
        await db.update(old_doc.key.id(1), old_doc.size.set(10))
        await db.update(old_doc.key.id(2), old_doc.status.set("done"))
        await db.delete(old_doc.key.id(3))
        await db.put(old_doc(id=4, size=4))
    async with connect(table) as db:
        assert await ids(db, doc.sized()) == [0, 2, 4, 1]
        assert await ids(db, doc.drafts()) == [0, 1, 4]


async def test_new_entities_and_new_names_need_nothing(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(connect)
    table = Table(NAME)

    class Doc(Entity, table=table):
        id: Attr[int] = attr()
        status: Attr[str] = attr(default="draft")
        size: Attr[int | Missing] = attr(default=MISSING)
        text: Attr[str] = attr(default="")
        key = Key("DOC" / id, "DOC")
        renamed = Index("gsi1", "STATUS" / status, id)

    class Folder(Entity, table=table):
        id: Attr[int] = attr()
        key = Key("FOLDER" / id, "FOLDER")
        all = Index("gsi0", "FOLDER", id)

    monkeypatch.setattr("tickler.table.open_table.REINDEXED_AT_ONCE", 1)
    async with connect(table) as db:
        assert await ids(db, Doc.renamed("done")) == [0, 6]
        assert await ids(db, Folder.all()) == []
        await db.put(Folder(id=1))
        assert await ids(db, Folder.all()) == [1]
        assert await db.reindex() == 0


async def test_entities_of_other_programs_are_left_alone(connect: Connect) -> None:
    await fill(connect)
    others, stamp = of_another_program()
    async with connect(others) as db:
        await db.put_many([stamp(id=n) for n in range(4)])
    table, doc = with_a_new_index()
    async with connect(table) as db:
        assert await ids(db, doc.sized()) == [1, 3, 5, 7, 9, 11]
        assert await db.reindex() == 0
    async with connect(others, create=False) as db:
        assert await ids(db, stamp.by_country("NL")) == [0, 1, 2, 3]
        assert await ids(db, stamp.by_id()) == [0, 1, 2, 3]
        assert await db.reindex() == 0
    async with connect(table, create=False) as db:
        assert await ids(db, doc.with_status("done")) == [0, 6]


async def test_writers_during_a_reindex_end_with_the_right_keys(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"tickler.table.engines.{engine}.engine.WRITTEN_AT_A_TIME", 7)
    await fill(connect, 60)
    table, doc = with_a_new_index()
    db = connect(table)
    await db.engine.open(create=True)

    async def write(n: int) -> None:
        await db.update(doc.key.id(n), doc.status.set("done"), doc.size.set(100 - n))
        if n % 3 == 0:
            await db.update(doc.key.id(n), doc.status.set("draft"))
        elif n % 3 == 1:
            await db.delete(doc.key.id(n))
        await db.put(doc(id=1000 + n, size=n))

    async def write_all() -> None:
        for n in range(0, 60, 2):
            await write(n)

    await asyncio.gather(db.reindex(), write_all(), *(write(n) for n in range(1, 60, 10)))
    stored = [each for each in await db.get_many([doc.key.id(n) for n in [*range(60), *range(1000, 1060)]]) if each is not None]
    for status in ("draft", "done"):
        assert await ids(db, doc.with_status(status)) == [each.id for each in stored if each.status == status]
    assert await ids(db, doc.drafts()) == [each.id for each in stored if each.status == "draft"]
    sized = [each for each in stored if each.size is not MISSING]
    assert await ids(db, doc.sized()) == [each.id for each in sorted(sized, key=lambda each: (each.size, each.id))]
    await db.close()
    async with connect(table, create=False) as opened:
        assert await opened.reindex() == 0


@ONE_AT_A_TIME
async def test_a_reindex_on_dynamodb_passes_by_items_that_no_table_wrote(
    dynamodb_client: Client, dynamodb_table: str, on_dynamodb: Connect
) -> None:
    await fill(on_dynamodb)
    strange = {"pk": {"S": "something"}, "sk": {"S": "else"}, "gsi1pk": {"S": "STATUS#draft"}, "gsi1sk": {"S": "x"}}
    await dynamodb_client.call("PutItem", {"TableName": dynamodb_table, "Item": strange})
    table, doc = with_a_new_index()
    async with on_dynamodb(table) as db:
        assert await ids(db, doc.sized()) == [1, 3, 5, 7, 9, 11]


@ONE_AT_A_TIME
async def test_on_dynamodb_few_large_items_are_reindexed_at_once(on_dynamodb: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answer of DynamoDB has at most 1 MB, however few items that is."""
    table, doc = first_version()
    async with on_dynamodb(table) as db:
        for n in range(5):
            await db.put(doc(id=n, text="x" * 350_000, size=1))
    table, doc = with_a_new_index()
    monkeypatch.setattr("tickler.table.open_table.REINDEXED_AT_ONCE", 4)
    with pytest.raises(SchemaMismatch, match="reindex"):
        await on_dynamodb(table).open()
    monkeypatch.setattr("tickler.table.open_table.REINDEXED_AT_ONCE", 5)
    async with on_dynamodb(table) as db:
        assert await db.count(doc.sized()) == 5


@pytest.mark.parametrize("connect", ["memory", "sqlite", "postgres"], indirect=True)
async def test_an_expiry_that_is_declared_later_counts_for_items_that_are_stored_already(connect: Connect) -> None:
    before, after = Table("expiring"), Table("expiring")

    class Note(Entity, table=before):
        id: Attr[str] = attr()
        until: Attr[datetime | Missing] = attr(default=MISSING)
        key = Key("NOTE" / id, "NOTE")

    past = Note(id="1", until=datetime(2020, 1, 1, tzinfo=UTC))
    async with connect(before) as db:
        await db.put(past)

    class Expiring(Entity, table=after, stored_as="Note"):
        id: Attr[str] = attr()
        until: Attr[datetime | Missing] = attr(default=MISSING, expires=True)
        key = Key("NOTE" / id, "NOTE")

    with pytest.raises(SchemaMismatch, match="Note/expires_at"):
        await connect(after, create=False).open()
    async with connect(after) as db:
        assert await db.get(Expiring.key.id("1")) is None
        assert await db.sweep() == 1


@pytest.mark.parametrize("connect", ["sqlite", "postgres"], indirect=True)
async def test_an_interrupted_reindex_goes_on_where_it_was(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"tickler.table.engines.{engine}.engine.WRITTEN_AT_A_TIME", 10)
    await fill(connect, 60)
    table, doc = with_a_new_index()
    db = connect(table)
    await db.engine.open(create=True)

    def interrupt(activity: str, done: int, total: int | None) -> None:
        if done >= 40:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await db.reindex(on_progress=interrupt)
    seen: list[int] = []
    changed = await db.reindex(on_progress=lambda activity, done, total: seen.append(done))
    assert seen == [50, 60, 60]
    assert changed == len({*await ids(db, doc.sized()), *await ids(db, doc.drafts())})
    assert await db.reindex() == 0
    await db.close()


async def test_a_reindex_for_other_definitions_begins_anew(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"tickler.table.engines.{engine}.engine.WRITTEN_AT_A_TIME", 10)
    await fill(connect, 60)
    table, _ = with_a_new_index()
    db = connect(table)
    await db.engine.open(create=True)
    await db.engine.metadata.write([EntryWrite("reindex", msgspec.json.encode({"definitions": "others", "position": "59"}))])
    assert await db.reindex() > 0
    assert await db.reindex() == 0
    await db.close()


async def test_writers_of_both_versions_may_run_and_a_last_reindex_leaves_the_right_keys(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"tickler.table.engines.{engine}.engine.WRITTEN_AT_A_TIME", 7)
    await fill(connect, 60)
    (old_table, old_doc), (table, doc) = first_version(), with_a_new_index()
    old, new = connect(old_table, create=False), connect(table)
    await old.open()
    await new.engine.open(create=True)

    async def write(db: OpenTable, made: Any, numbers: range) -> None:
        for n in numbers:
            await db.upsert(made.key.id(n), made.status.set("done" if n % 2 else "draft"), made.size.set(200 - n))
            await db.put(made(id=n + 2, size=n))
            await db.delete(made.key.id(n + 4))

    await asyncio.gather(new.reindex(), write(old, old_doc, range(0, 60, 6)), write(new, doc, range(3, 60, 6)))
    await write(old, old_doc, range(1, 60, 6))  # behind the reindex: these have no keys in the new indexes
    await old.close()
    await new.reindex()
    stored = [each for each in await new.get_many([doc.key.id(n) for n in range(70)]) if each is not None]
    for status in ("draft", "done"):
        assert await ids(new, doc.with_status(status)) == [each.id for each in stored if each.status == status]
    assert await ids(new, doc.drafts()) == [each.id for each in stored if each.status == "draft"]
    sized = [each for each in stored if each.size is not MISSING]
    assert await ids(new, doc.sized()) == [each.id for each in sorted(sized, key=lambda each: (each.size, each.id))]
    assert await new.reindex() == 0
    await new.close()
