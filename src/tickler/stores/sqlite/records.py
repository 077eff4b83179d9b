"""Records in SQLite."""

from __future__ import annotations

import sqlite3

from tickler.database.sqlite.connection import Connection
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict, VersionConflict
from tickler.records.contract import as_it_was_read, label_of
from tickler.stores.sql.records import SqlRecordReads

_VERSION = "SELECT version FROM tickler_records WHERE kind = ? AND name = ? AND (expires_at IS NULL OR expires_at > ?)"
_ANY_VERSION = "SELECT version FROM tickler_records WHERE kind = ? AND name = ?"  # expired or not
_PUT = """
    INSERT INTO tickler_records (kind, name, value, version, expires_at) VALUES (:kind, :name, :value, :version, :expires_at)
    ON CONFLICT (kind, name) DO UPDATE SET
        value = excluded.value, version = excluded.version, expires_at = excluded.expires_at
"""
_DELETE = "DELETE FROM tickler_records WHERE kind = ? AND name = ?"
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
        self,
        kind: str,
        name: str,
        value: bytes,
        *,
        now_ms: int,
        expires_at: int | None = None,
        expected: int | None = None,
        using: object = None,
    ) -> int:
        def version(connection: sqlite3.Connection, expected: int | None = expected) -> int:
            (found,) = connection.execute(_VERSION, (kind, name, now_ms)).fetchone() or (0,)
            if expected is not None and expected != found:
                raise VersionConflict(f"record {kind}/{name}", expected, found)
            return int(found)

        def work(connection: sqlite3.Connection) -> int:
            found = version(connection)
            write(connection, kind, name, value, expires_at, found + 1)
            return found + 1

        if not isinstance(using, UnitOfWork):
            return await self._connection.write(work, using)
        found = await self._connection.read(version)

        def part(connection: sqlite3.Connection) -> None:
            with as_it_was_read(kind, name):
                version(connection, found)
            write(connection, kind, name, value, expires_at, found + 1)

        await using.join(self._connection, [label_of(kind, name)])
        using.add(part)
        return found + 1

    async def delete(self, kind: str, name: str, *, using: object = None) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute(_DELETE, (kind, name)).rowcount > 0

        def version(connection: sqlite3.Connection) -> list[tuple[int]]:
            return connection.execute(_ANY_VERSION, (kind, name)).fetchall()

        if not isinstance(using, UnitOfWork):
            return await self._connection.write(work, using)
        found = await self._connection.read(version)

        def part(connection: sqlite3.Connection) -> None:
            if version(connection) != found:
                raise TransactionConflict(label_of(kind, name))
            work(connection)

        await using.join(self._connection, [label_of(kind, name)])
        using.add(part)
        return bool(found)

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
