"""A table as a program declares it, and the way to where its items are."""

from __future__ import annotations

from tickler.clock import Clock, SystemClock
from tickler.errors import InvalidInput
from tickler.table.definition import TableDefinition
from tickler.table.engines.memory import MemoryEngine
from tickler.table.open_table import OpenTable


class Table(TableDefinition):
    """Declare it once and pass it to entities as `table=`; then `async with shop.connect("sqlite:///app.db") as db:`."""

    def connect(self, url: str, *, create: bool = True, clock: Clock | None = None) -> OpenTable:
        """Return the table at a URL. Nothing is opened before `async with`."""
        if url != "memory://":
            raise InvalidInput(f"{url!r} has an unknown scheme: use memory://")
        return OpenTable(self, MemoryEngine(self, {}), clock or SystemClock(), create=create)
