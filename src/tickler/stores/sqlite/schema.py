"""Creates and migrates the tables."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

import msgspec

from tickler.database.migrations import Migration, pending, read_migrations
from tickler.when import tzdata_version

MIGRATIONS = read_migrations(files(__package__) / "migrations")
NEWEST = MIGRATIONS[-1].number

_PUT_FACT = """
    INSERT INTO tickler_records (kind, name, value, version) VALUES ('store', ?, ?, 1)
    ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value, version = version + 1
"""


def migrate(connection: sqlite3.Connection, name: str, migrations: list[Migration] = MIGRATIONS) -> list[str]:
    """Run pending migrations inside the caller's transaction."""
    to_run = pending(name, version(connection), migrations)
    for migration in to_run:
        for statement in migration.statements():
            connection.execute(statement)
        put_fact(connection, "schema", {"version": migration.number})
    if to_run:
        put_fact(connection, "tzdata", {"version": tzdata_version()})
    return [migration.name for migration in to_run]


def version(connection: sqlite3.Connection) -> int | None:
    """Return the schema's version, or None when there are no tables."""
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tickler_records'").fetchone()
    if there is None:
        return None
    row = connection.execute("SELECT value FROM tickler_records WHERE kind = 'store' AND name = 'schema'").fetchone()
    return None if row is None else int(msgspec.json.decode(row[0])["version"])


def put_fact(connection: sqlite3.Connection, name: str, fact: dict[str, object]) -> None:
    connection.execute(_PUT_FACT, (name, msgspec.json.encode(fact).decode()))
