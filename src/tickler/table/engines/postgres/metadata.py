"""Metadata of a table in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.database.postgres.pool import Connection, Pool
from tickler.table.engines.metadata import Entry, EntryWrite
from tickler.table.engines.sql.metadata import BEHIND_ASCII, MetadataStatements


class PostgresMetadata:
    def __init__(self, pool: Pool, statements: MetadataStatements, table: str) -> None:
        self._pool = pool
        self._statements = statements
        self._table = table
        self._replace_many = pool.sql(
            f"""
            UPDATE {statements.table} AS stored SET version = stored.version + 1, value = given.value
            FROM unnest($2::text[], $3::bigint[], $4::bytea[]) AS given (key, version, value)
            WHERE stored.table_name = $1 AND stored.key = given.key AND stored.version = given.version
            RETURNING stored.key
            """
        )

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        text = self._statements.read_keys if keys_only else self._statements.read
        rows = await self._pool.fetch(text, self._table, prefix, prefix + BEHIND_ASCII, after, limit)
        return [Entry(*row) for row in rows]

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        if len(writes) == 1:
            return [await self._pool.once(lambda connection: self._write(connection, writes[0]))]
        return await self._pool.write(lambda connection: self._write_all(connection, writes))

    async def _write_all(self, connection: Connection, writes: Sequence[EntryWrite]) -> list[bool]:
        replacing = [each for each in writes if each.expected and each.value is not None]
        replacements = sorted((each.key, each.expected, each.value) for each in replacing)
        replaced: set[str] = set()
        if replacements:
            rows = await connection.fetch(self._replace_many, self._table, *map(list, zip(*replacements, strict=True)))
            replaced = {row[0] for row in rows}
        return [each.key in replaced if each in replacing else await self._write(connection, each) for each in writes]

    async def _write(self, connection: Connection, write: EntryWrite) -> bool:
        text, key, expected = self._statements, (self._table, write.key), write.expected
        if write.value is None:
            if expected is None:
                await connection.execute(text.delete, *key)
                return True
            return await _affected(connection, text.delete_version, *key, expected)
        if expected:
            return await _affected(connection, text.replace, write.value, *key, expected)
        return await _affected(connection, text.put if expected is None else text.create_entry, *key, write.value)


async def _affected(connection: Connection, statement: str, *parameters: object) -> bool:
    """Run a statement, and tell whether it changed a row: PostgreSQL's answer ends in their number."""
    return not (await connection.execute(statement, *parameters)).endswith(" 0")
