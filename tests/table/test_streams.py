"""The kit of streams over tables in memory and in SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tickler.database.memory import MemoryDatabase
from tickler.database.sqlite.connection import Connection
from tickler.table.engines.engine import Engine
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.engines.sqlite.engine import SqliteEngine
from tickler.testing.stream_contract import StreamContract
from tickler.testing.stream_fixtures import STREAMED


class TestMemory(StreamContract):
    bounds_reads = False

    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = MemoryEngine(STREAMED, MemoryDatabase())
        await engine.open(create=True)
        yield engine
        await engine.close()


class TestSqlite(StreamContract):
    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        engine = SqliteEngine(STREAMED, Connection(str(tmp_path / "stream.db"), "sqlite:///stream.db", 5))
        await engine.open(create=True)
        yield engine
        await engine.close()


class TestSqliteInMemory(StreamContract):
    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = SqliteEngine(STREAMED, Connection(":memory:", "sqlite://", 5))
        await engine.open(create=True)
        yield engine
        await engine.close()
