"""Creates and migrates the tables."""

from __future__ import annotations

from importlib.resources import files

import msgspec

from tickler.database.migrations import Migration, pending, read_migrations
from tickler.database.postgres.pool import Connection, Pool
from tickler.when import tzdata_version

MIGRATIONS = read_migrations(files(__package__) / "migrations")
NEWEST = MIGRATIONS[-1].number

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('tickler migrate'))"
_PUT_FACT = """
    INSERT INTO {schema}.tickler_records AS r (kind, name, value, version) VALUES ('store', $1, $2, 1)
    ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value, version = r.version + 1
"""


async def migrate(database: Pool, migrations: list[Migration] = MIGRATIONS) -> list[str]:
    """Run pending migrations in one transaction. Processes that start together wait for each other."""

    async def work(connection: Connection) -> list[str]:
        await connection.execute(_LOCK)
        done = await _version(connection, database)
        to_run = pending(database.name, done, migrations)
        if done is None and not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", database.schema):
            await connection.execute(f"CREATE SCHEMA {database.schema}")
        for migration in to_run:
            await connection.execute(database.sql(migration.sql))
            await _put_fact(connection, database, "schema", {"version": migration.number})
        if to_run:
            await _put_fact(connection, database, "tzdata", {"version": tzdata_version()})
        return [migration.name for migration in to_run]

    return await database.write(work)


async def version(database: Pool) -> int | None:
    """Return the schema's version, or None when there are no tables."""
    return await database.read(lambda connection: _version(connection, database))


async def _version(connection: Connection, database: Pool) -> int | None:
    if not await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{database.schema}.tickler_records"):
        return None
    value = await connection.fetchval(
        database.sql("SELECT value FROM {schema}.tickler_records WHERE kind = 'store' AND name = 'schema'")
    )
    return None if value is None else int(msgspec.json.decode(value)["version"])


async def _put_fact(connection: Connection, database: Pool, name: str, fact: dict[str, object]) -> None:
    await connection.execute(database.sql(_PUT_FACT), name, msgspec.json.encode(fact).decode())
