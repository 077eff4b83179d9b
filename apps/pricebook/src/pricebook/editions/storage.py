"""What an engine can do for readers and writers of editions, found out once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tickler.errors import InvalidInput
from tickler.table import OpenTable


class Storage:
    """A table, and whether its engine has snapshots. One that has them also makes many changes at once cheaper in a transaction.

    DynamoDB has neither: there, readers rely on the order in which heads and rows are written.
    """

    def __init__(self, db: OpenTable) -> None:
        self.db = db
        self._has_snapshots: bool | None = None

    async def has_snapshots(self) -> bool:
        if self._has_snapshots is None:
            try:
                async with self.db.snapshot():
                    self._has_snapshots = True
            except InvalidInput:
                self._has_snapshots = False
        return self._has_snapshots

    @asynccontextmanager
    async def one_state(self) -> AsyncIterator[Any]:
        """Yield reads of one state of the table where that is possible, and otherwise of the table as it is at each read."""
        if await self.has_snapshots():
            async with self.db.snapshot() as reads:
                yield reads
        else:
            yield self.db
