"""Columns of a record, and reads of records, as both SQL stores make them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tickler.model.record import Record
from tickler.stores.sql.database import Database

_SELECT = "SELECT kind, name, value, version, expires_at FROM {schema}.tickler_records"
_ALIVE = f"{_SELECT} WHERE kind = $1 AND (expires_at IS NULL OR expires_at > $3)"
ANY = f"{_SELECT} WHERE kind = $1 AND name = $2"  # expired or not
GET = f"{_ALIVE} AND name = $2"
_LIST = f"{_ALIVE} AND name > $2 ORDER BY name LIMIT $4"


def read_record(row: Iterable[Any]) -> Record:
    """Return the record of a row with kind, name, value, version and expires_at."""
    kind, name, value, version, expires_at = row
    return Record(kind, name, msgspec.json.decode(value), version, expires_at)


class SqlRecordReads:
    def __init__(self, database: Database) -> None:
        self._fetch = database.fetch

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None:
        found = await self._fetch(GET, kind, name, now_ms)
        return read_record(found[0]) if found else None

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        return [read_record(row) for row in await self._fetch(_LIST, kind, after, now_ms, limit)]
