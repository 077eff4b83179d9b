"""Reads of the schedule index, as both SQL stores make them."""

from __future__ import annotations

from msgspec.structs import replace

from tickler.model.index_row import SetAside
from tickler.stores.sql.database import NO_LIMIT, Database

_NEXT_DUE = "SELECT min(next_fire_at) FROM {schema}.tickler_index"
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM {schema}.tickler_index WHERE next_fire_at <= $1 LIMIT $2) AS counted"
_NEXT_FIRES = "SELECT next_fire_at FROM {schema}.tickler_index WHERE owner = $1 LIMIT $2"
_SET_ASIDE = """
    SELECT owner, key, when_text, tz, next_fire_at, reason, managed
    FROM {schema}.tickler_aside WHERE state = 'unreadable' ORDER BY owner, key LIMIT $1
"""
_COUNT_SET_ASIDE = "SELECT count(*) FROM {schema}.tickler_aside WHERE state = 'unreadable'"


class SqlIndexReads:
    def __init__(self, database: Database) -> None:
        self._fetch = database.fetch

    async def next_due(self) -> int | None:
        ((earliest,),) = await self._fetch(_NEXT_DUE)
        return None if earliest is None else int(earliest)

    async def count(self, *, due_by: int | None = None, most: int | None = None) -> int:
        ((count,),) = await self._fetch(_COUNT, NO_LIMIT if due_by is None else due_by, NO_LIMIT if most is None else most)
        return int(count)

    async def next_fires(self, owner: str, limit: int) -> tuple[list[int], bool]:
        found = [at for (at,) in await self._fetch(_NEXT_FIRES, owner, limit + 1)]
        return found[:limit], len(found) > limit

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        found = [SetAside(*row) for row in await self._fetch(_SET_ASIDE, limit)]
        return [replace(each, managed=bool(each.managed)) for each in found]  # SQLite has numbers

    async def count_set_aside(self) -> int:
        ((count,),) = await self._fetch(_COUNT_SET_ASIDE)
        return int(count)
