"""Records in SQLite."""

from __future__ import annotations

import sqlite3

from tickler.database.sqlite.connection import Connection
from tickler.errors import VersionConflict
from tickler.model.record import Record
from tickler.stores.sql.records import read_record

_SELECT = """
    SELECT kind, name, value, version, expires_at FROM tickler_records
    WHERE kind = :kind AND name = :name AND (expires_at IS NULL OR expires_at > :now_ms)
"""
_LIST = """
    SELECT kind, name, value, version, expires_at FROM tickler_records
    WHERE kind = :kind AND name > :after AND (expires_at IS NULL OR expires_at > :now_ms)
    ORDER BY name LIMIT :limit
"""
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


class SqliteRecords:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None:
        row = await self._connection.read(
            lambda connection: connection.execute(_SELECT, {"kind": kind, "name": name, "now_ms": now_ms}).fetchone()
        )
        return None if row is None else read_record(row)

    async def put(
        self, kind: str, name: str, value: bytes, *, now_ms: int, expires_at: int | None = None, expected: int | None = None
    ) -> int:
        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(_SELECT, {"kind": kind, "name": name, "now_ms": now_ms}).fetchone()
            found = 0 if row is None else read_record(row).version
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

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        wanted = {"kind": kind, "after": after, "now_ms": now_ms, "limit": limit}
        return [
            read_record(row)
            for row in await self._connection.read(lambda connection: connection.execute(_LIST, wanted).fetchall())
        ]

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
