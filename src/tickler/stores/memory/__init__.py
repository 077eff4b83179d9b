"""The reference: the smallest reading of the contracts, in dictionaries. For tests, and for reading first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from tickler.database.progress import OnProgress, no_progress
from tickler.database.store_url import StoreUrl
from tickler.stores.memory.contents import contents
from tickler.stores.memory.fires import MemoryFires
from tickler.stores.memory.index import MemoryIndex
from tickler.stores.memory.records import MemoryRecords
from tickler.stores.memory.schedules import MemorySchedules
from tickler.stores.memory.tables import Tables
from tickler.stores.store import NO_OPTIONS, Capabilities, Form, MalformedItem, MigrationOptions, no_file, no_malformed_items


class MemoryStore:
    """Forgets everything when it is closed. One process, one event loop: what does not await is atomic."""

    capabilities = Capabilities(shared=False, joins_transactions=False, order="total", poll_ms=500)

    def __init__(self) -> None:
        self._tables = tables = Tables()
        self.schedules = MemorySchedules(tables)
        self.index = MemoryIndex(tables)
        self.records = MemoryRecords(tables)
        self.fires = MemoryFires(tables, self.schedules, self.index)
        self.contents = contents(tables)

    async def open(self, *, create: bool) -> None:
        """Nothing to make."""

    async def close(self) -> None:
        self._tables.clear()

    async def now_ms(self) -> int | None:
        return None

    async def watch(self, wake: Callable[[], None]) -> bool:
        return False

    async def migrate(self, wanted: MigrationOptions = NO_OPTIONS, on_progress: OnProgress = no_progress) -> list[str]:
        wanted.refuse("memory://")
        return []

    def misfits(self) -> AsyncIterator[MalformedItem]:
        return no_malformed_items()

    async def backup(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        raise no_file("memory://", "it ends with its process: use sqlite:///tickler.db")

    async def restore(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        raise no_file("memory://", "it ends with its process: use sqlite:///tickler.db")

    def definition(self, form: Form) -> str:
        return ""


def open_store(url: StoreUrl) -> MemoryStore:
    url.refuse_unknown()
    return MemoryStore()
