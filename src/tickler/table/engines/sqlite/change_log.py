"""The changes of a table in SQLite. There is one writer at a time, so that the order of numbers is that of commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tickler.database.sqlite.connection import Connection
from tickler.table.definition import TableDefinition
from tickler.table.engines.change_log import ALL_SHARDS, Shard, ShardRead
from tickler.table.engines.rows import decode
from tickler.table.engines.sql.change_log import (
    MAX_READ_BYTES,
    ChangeLogStatements,
    ChangeRow,
    aged,
    count_waiting,
    first_of,
    read_by_all,
    shard_reads,
)
from tickler.table.engines.sql.layout import Dialect
from tickler.table.engines.sqlite.reading import Read

NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

Positions = Mapping[str, str | None]


class SqliteChangeLog:
    """Reads with `read`. `Connection` is for counting and deleting, which may take long."""

    poll_s = (0.005, 0.1)

    def __init__(self, table: TableDefinition, dialect: Dialect, connection: Connection, read: Read) -> None:
        self._table = table
        self._connection = connection
        self._read = read
        self._statements = ChangeLogStatements(dialect, table.name, seq="INTEGER PRIMARY KEY AUTOINCREMENT", now=NOW)
        log = self._statements
        self._select = f"SELECT seq, at_ms, entity, pk, sk, old, new FROM {log.table} WHERE seq > ? ORDER BY seq LIMIT ?"
        self._last = f"SELECT seq FROM sqlite_sequence WHERE name = '{log.name}'"

    def exists(self, database: sqlite3.Connection) -> bool:
        names = [f"{self._statements.name}.{event}" for event in ("insert", "update", "delete")]
        found = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name IN (?, ?, ?)"
        return bool(database.execute(found, names).fetchone()[0] == len(names))

    def create(self, database: sqlite3.Connection) -> None:
        log, table = self._statements, f'"{self._table.name}"'
        database.execute(log.create)
        rows = {
            "insert": ("AFTER INSERT", "", "NEW.entity, NEW.pk, NEW.sk, NULL, NEW.body"),
            "update": ("AFTER UPDATE OF body", "WHEN OLD.body IS NOT NEW.body", "NEW.entity, NEW.pk, NEW.sk, OLD.body, NEW.body"),
            "delete": ("AFTER DELETE", "", "OLD.entity, OLD.pk, OLD.sk, OLD.body, NULL"),
        }
        for event, (timing, condition, values) in rows.items():
            database.execute(
                f"""
                CREATE TRIGGER IF NOT EXISTS "{log.name}.{event}" {timing} ON {table} {condition}
                BEGIN {log.insert} VALUES ({NOW}, {values}); END
                """
            )

    def keep_no_inserts(self, database: sqlite3.Connection) -> None:
        """Leave inserts out of the log until `create` is called in the same transaction."""
        database.execute(f'DROP TRIGGER IF EXISTS "{self._statements.name}.insert"')

    async def shards(self) -> list[Shard]:
        return list(ALL_SHARDS)

    async def end(self) -> dict[str, str]:
        last = await self._read(lambda database: database.execute(self._last).fetchone())
        return {shard.id: str(0 if last is None else last[0]) for shard in ALL_SHARDS}

    async def read(self, positions: Positions, *, limit: int) -> list[ShardRead]:
        first = first_of(positions)
        rows = await self._read(lambda database: _bounded(database.execute(self._select, (first, limit))))
        return shard_reads(rows, positions, rows[-1].seq if rows else first)

    def decode(self, entity: str, image: bytes) -> Any:
        return decode(self._table, entity, image)

    async def waiting(self, positions: Positions, *, limit: int) -> int:
        parameters = first_of(positions), limit
        keys = await self._connection.read(lambda database: database.execute(self._statements.keys, parameters).fetchall())
        return count_waiting(keys, positions)

    async def prune(self, positions: Sequence[Positions], *, keep_ms: int, limit: int) -> int:
        return await self._connection.write(lambda database: self._prune(database, read_by_all(positions), keep_ms, limit))

    def _prune(self, database: sqlite3.Connection, behind: int, keep_ms: int, limit: int) -> int:
        log = self._statements
        deleted = database.execute(log.delete_read, (behind, limit)).rowcount
        last, old = aged(database.execute(log.oldest, (keep_ms, behind, limit)))
        if old:
            database.execute(log.delete_before, (last,))
            database.execute(log.mark_deleted, (last,))
        return deleted + old


def _bounded(rows: Iterable[tuple[Any, ...]]) -> list[ChangeRow]:
    """Return rows until their images have many bytes, since they are read on the thread of the event loop."""
    taken: list[ChangeRow] = []
    size = 0
    for row in rows:
        taken.append(ChangeRow(*row))
        size += len(taken[-1].old or b"") + len(taken[-1].new or b"")
        if size > MAX_READ_BYTES:
            break
    return taken
