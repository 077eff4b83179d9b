"""The kit over tables in SQLite, and what only SQLite has to do."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tickler.clock import ManualClock
from tickler.database.sqlite.connection import Connection
from tickler.errors import SchemaMismatch, SchemaMissing, StoreUnavailable
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.engines.engine import Engine
from tickler.table.engines.sqlite.engine import SqliteEngine
from tickler.table.open_table import OpenTable
from tickler.testing.table_contract import TableContract
from tickler.testing.table_engine_contract import OTHER
from tickler.testing.table_fixtures import NOW, TABLE, Order, order


def connection_to(path: Path | str) -> Connection:
    return Connection(str(path), f"sqlite:///{path}", 5)


class OnSqlite(TableContract):
    def as_another_program(self, engine: Engine) -> OpenTable:
        assert isinstance(engine, SqliteEngine)
        return OpenTable(OTHER, SqliteEngine(OTHER, engine._connection, owned=False), ManualClock(NOW), create=True)


class TestFile(OnSqlite):
    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        engine = SqliteEngine(TABLE, connection_to(tmp_path / "tables.db"))
        await engine.open(create=True)
        yield engine
        await engine.close()


class TestInMemory(OnSqlite):
    has_snapshots = False

    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = SqliteEngine(TABLE, connection_to(":memory:"))
        await engine.open(create=True)
        yield engine
        await engine.close()


small = Table(TABLE.name)


class Small(Entity, table=small):
    id: Attr[str] = attr()
    key = Key("SMALL" / id, "SMALL")
    one = Index("gsi1", "SMALL", id)


async def test_a_table_that_does_not_exist_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    with pytest.raises(SchemaMissing, match=r"no table 'kit_shop'.*tickler table create"):
        await SqliteEngine(TABLE, connection_to(path)).open(create=False)
    assert not path.exists()
    sqlite3.connect(path).execute("CREATE TABLE other (x)").connection.close()
    with pytest.raises(SchemaMissing, match=r"no table 'kit_shop'.*tickler table create"):
        await SqliteEngine(TABLE, connection_to(path)).open(create=False)


async def test_indexes_that_a_table_lacks_are_named_and_can_be_made(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    async with OpenTable(small, SqliteEngine(small, connection_to(path)), ManualClock(NOW), create=True) as before:
        await before.put(Small(id="s1"))
    with pytest.raises(SchemaMismatch, match="lacks gsi2, gsi3, gsi4: run") as lacking:
        await SqliteEngine(TABLE, connection_to(path)).open(create=False)
    assert lacking.value.attribute == "gsi2"
    async with OpenTable(TABLE, SqliteEngine(TABLE, connection_to(path)), ManualClock(NOW), create=True) as db:
        await db.put(order(1, rating=3))
        assert await db.count(Order.rated()) == 1
        with sqlite3.connect(path) as outside, pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            outside.execute("UPDATE kit_shop SET gsi3sk = NULL")
        outside.execute('DROP INDEX "kit_shop.gsi.gsi3"').connection.close()
    with pytest.raises(SchemaMismatch, match="lacks gsi3"):
        await SqliteEngine(TABLE, connection_to(path)).open(create=False)
    await (engine := SqliteEngine(TABLE, connection_to(path))).open(create=True)
    await engine.close()
    await (engine := SqliteEngine(TABLE, connection_to(path))).open(create=False)
    await engine.close()


async def test_a_put_of_the_same_content_changes_no_row(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    async with OpenTable(TABLE, SqliteEngine(TABLE, connection_to(path)), ManualClock(NOW), create=True) as db:
        await db.put(order(1, rating=2))
        outside = sqlite3.connect(path, isolation_level=None)
        outside.execute("CREATE TABLE written (id)")
        outside.execute("CREATE TRIGGER t AFTER UPDATE ON kit_shop BEGIN INSERT INTO written VALUES (old.id); END")
        (id,) = outside.execute("SELECT id FROM kit_shop").fetchone()
        await db.put(order(1, rating=2))
        await db.replace(order(1, rating=2))
        await db.put_many([order(1, rating=2)])
        await db.update(order(1).key, Order.rating.set(2))
        assert outside.execute("SELECT count(*) FROM written").fetchone() == (0,)
        await db.put(order(1, rating=3))
        await db.update(order(1).key, Order.rating.remove())
        assert outside.execute("SELECT count(*) FROM written").fetchone() == (2,)
        assert outside.execute("SELECT id FROM kit_shop").fetchone() == (id,)
        outside.close()


async def test_a_replaced_file_is_noticed_by_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tables.db"
    async with OpenTable(TABLE, SqliteEngine(TABLE, connection_to(path)), ManualClock(NOW), create=True) as db:
        await db.put(order(1))
        assert await db.get(order(1).key) == order(1)
        monkeypatch.setattr("tickler.database.sqlite.open_files.CHECK_INTERVAL_S", 0)
        path.rename(tmp_path / "away.db")
        with pytest.raises(StoreUnavailable, match="moved away"):
            await db.get(order(1).key)
        (tmp_path / "away.db").rename(path)
        assert await db.get(order(1).key) == order(1)


async def test_a_closed_table_says_so(tmp_path: Path) -> None:
    db = OpenTable(TABLE, SqliteEngine(TABLE, connection_to(tmp_path / "tables.db")), ManualClock(NOW), create=True)
    async with db:
        await db.put(order(1))
        await db.get(order(1).key)
    for call in (db.get(order(1).key), db.put(order(1))):
        with pytest.raises(StoreUnavailable, match="is closed"):
            await call


async def test_a_shared_connection_stays_open(tmp_path: Path) -> None:
    connection = connection_to(tmp_path / "tables.db")
    await connection.open()
    async with OpenTable(TABLE, SqliteEngine(TABLE, connection, owned=False), ManualClock(NOW), create=True) as db:
        await db.put(order(1))
    assert await connection.read(lambda database: database.execute("SELECT count(*) FROM kit_shop").fetchone()) == (1,)
    await connection.close()


_OPEN = """
import asyncio, sys
from tickler.table.cursor import read_secret
from tickler.database.sqlite.connection import Connection
from tickler.table.engines.sqlite.engine import SqliteEngine
from tickler.testing.table_fixtures import TABLE

async def main():
    engine = SqliteEngine(TABLE, Connection(sys.argv[1], "it", 30))
    sys.stdin.readline()
    await engine.open(create=True)
    print((await read_secret(engine.metadata)).hex())
    await engine.close()

asyncio.run(main())
"""


async def test_processes_that_create_a_table_at_once_agree(tmp_path: Path) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _OPEN, str(tmp_path / "tables.db")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=dict(os.environ),
        )
        for _ in range(3)
    ]
    outputs = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len({output for output, _ in outputs}) == 1
