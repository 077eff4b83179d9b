"""The time zones of stores, remembered while a job is worked on. A store that has none does not exist."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pricebook.model import Head
from tickler.table import OpenTable

MAX_REMEMBERED = 20_000


class StoreZones:
    def __init__(self, db: OpenTable) -> None:
        self._db = db
        self._known: dict[str, str] = {}

    async def of(self, stores: Collection[str]) -> Mapping[str, str]:
        """Return the zones of those stores that exist."""
        missing = sorted(set(stores) - self._known.keys())
        if missing:
            if len(self._known) > MAX_REMEMBERED:
                self._known = {}
                missing = sorted(set(stores))
            for head in await self._db.get_many([Head.key.id(store) for store in missing]):
                if head is not None:
                    self._known[head.store] = head.tz
        return self._known
