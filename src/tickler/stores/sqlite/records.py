"""Records in SQLite."""

from __future__ import annotations

import sqlite3

from tickler.database.sqlite.connection import Connection
from tickler.errors import VersionConflict
from tickler.stores.sql.records import SqlRecordReads

_VERSION = "SELECT version FROM tickler_records WHERE kind = ? AND name = ? AND (expires_at IS NULL OR expires_at > ?)"
_PUT = """
    INSERT INTO tickler_records (kind, name, value, version, expires_at) VALUES (:kind, :name, :value, :version, :expires_at)
    ON CONFLICT (kind, name) DO UPDATE SET
        value = excluded.value, version = excluded.version, expires_at = excluded.expires_at
"""
_PRUNE = """
    DELETE FROM tickler_records WHERE (kind, name) IN (
        SELECT kind, name FROM tickler_records WHERE expires_at <= :now_ms ORDER BY expires_at LIMIT :limit
    )
"""


class SqliteRecords(SqlRecordReads):
    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._connection = connection

    async def put(
        self, kind: str, name: str, value: bytes, *, now_ms: int, expires_at: int | None = None, expected: int | None = None
    ) -> int:
        def work(connection: sqlite3.Connection) -> int:
            (found,) = connection.execute(_VERSION, (kind, name, now_ms)).fetchone() or (0,)
            if expected is not None and expected != found:
                raise VersionConflict(f"record {kind}/{name}", expected, found)
            write(connection, kind, name, value, expires_at, found + 1)
            return found + 1

        return await self._connection.write(work)

    async def delete(self, kind: str, name: str) -> bool:
        gone = await self._connection.write(
            lambda connection: (
                connection.execute("DELETE FROM tickler_records WHERE kind = ? AND name = ?", (kind, name)).rowcount
            )
        )
        return gone > 0

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        return await self._connection.write(
            lambda connection: connection.execute(_PRUNE, {"now_ms": now_ms, "limit": limit}).rowcount
        )


def write(connection: sqlite3.Connection, kind: str, name: str, value: bytes, expires_at: int | None, version: int = 1) -> None:
    fields = {"kind": kind, "name": name, "value": value.decode(), "version": version, "expires_at": expires_at}
    connection.execute(_PUT, fields)


def known_zones(connection: sqlite3.Connection, zones: set[str]) -> set[str]:
    """Return those of `zones` that some machine has written a row with."""
    return {
        zone
        for zone in zones
        if connection.execute("SELECT 1 FROM tickler_records WHERE kind = 'zone' AND name = ?", (zone,)).fetchone()
    }
