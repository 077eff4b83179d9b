"""The reference implementation, in dictionaries: for tests, and the one to read first."""

from __future__ import annotations

from tickler.database.store_url import StoreUrl
from tickler.stores.memory.contents import contents
from tickler.stores.memory.fires import MemoryFires
from tickler.stores.memory.index import MemoryIndex
from tickler.stores.memory.records import MemoryRecords
from tickler.stores.memory.schedules import MemorySchedules
from tickler.stores.memory.sends import MemorySends
from tickler.stores.memory.tables import Tables
from tickler.stores.store import Capabilities


class MemoryStore:
    """Forgets everything when it is closed. It runs in one event loop, so code without `await` is atomic."""

    capabilities = Capabilities(
        shared=False,
        joins_transactions=False,
        order="total",
        poll_ms=500,
        backup_tool="it ends with its process; use sqlite:///tickler.db",
    )

    def __init__(self) -> None:
        self._tables = tables = Tables()
        self.database = tables.database
        self.schedules = MemorySchedules(tables)
        self.index = MemoryIndex(tables)
        self.records = MemoryRecords(tables)
        self.fires = MemoryFires(tables, self.schedules, self.index)
        self.sends = MemorySends(tables, self.schedules)
        self.contents = contents(tables)

    async def open(self, *, create: bool) -> None:
        """There are no tables to create."""

    async def close(self) -> None:
        self._tables.clear()

    async def migrate(self) -> list[str]:
        return []


def open_store(url: StoreUrl) -> MemoryStore:
    url.refuse_unknown()
    return MemoryStore()
