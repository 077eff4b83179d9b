"""The kit over a table in memory."""

from collections.abc import AsyncIterator

import pytest

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.table.engines.engine import Engine
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.open_table import OpenTable
from tickler.testing.table_contract import TableContract
from tickler.testing.table_engine_contract import OTHER
from tickler.testing.table_fixtures import NOW, TABLE


class TestMemory(TableContract):
    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = MemoryEngine(TABLE, MemoryDatabase())
        await engine.open(create=True)
        yield engine
        await engine.close()

    def as_another_program(self, engine: Engine) -> OpenTable:
        assert isinstance(engine, MemoryEngine)
        return OpenTable(OTHER, MemoryEngine(OTHER, engine.database), ManualClock(NOW), create=True)
