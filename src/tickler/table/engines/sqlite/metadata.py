"""Metadata of a table in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from tickler.database.sqlite.connection import Connection
from tickler.table.engines.metadata import Entry, EntryWrite
from tickler.table.engines.sql.metadata import BEHIND_ASCII, MetadataStatements


class SqliteMetadata:
    def __init__(self, connection: Connection, statements: MetadataStatements, table: str) -> None:
        self._connection = connection
        self._statements = statements
        self._table = table

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        text = self._statements.read_keys if keys_only else self._statements.read
        parameters = (self._table, prefix, prefix + BEHIND_ASCII, after, -1 if limit is None else limit)
        rows = await self._connection.read(lambda database: database.execute(text, parameters).fetchall())
        return [Entry(*row) for row in rows]

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        return await self._connection.write(lambda database: [self._write(database, each) for each in writes])

    def _write(self, database: sqlite3.Connection, write: EntryWrite) -> bool:
        text, key, expected = self._statements, (self._table, write.key), write.expected
        if write.value is None:
            if expected is None:
                database.execute(text.delete, key)
                return True
            return database.execute(text.delete_version, (*key, expected)).rowcount > 0
        if expected:
            done = database.execute(text.replace, (write.value, *key, expected))
        else:
            done = database.execute(text.put if expected is None else text.create_entry, (*key, write.value))
        return done.rowcount > 0
