"""Numbered migrations, and the schema versions that a worker accepts."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import NamedTuple

from tickler.errors import SchemaMissing, SchemaOutdated, SchemaTooNew


class Migration(NamedTuple):
    number: int
    name: str
    sql: str

    def statements(self) -> list[str]:
        """Split the script, without comments, since they may contain semicolons."""
        code = "\n".join(line.partition("--")[0].rstrip() for line in self.sql.splitlines())
        return [statement.strip() for statement in code.split(";") if statement.strip()]


def read_migrations(folder: Traversable) -> list[Migration]:
    """Read the `NNNN_name.sql` files of a folder, in order."""
    found = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    ]
    return sorted(found)


def check_version(store: str, found: int | None, newest: int) -> None:
    """Refuse a schema that this version cannot use. Workers of version N run on schemas N and N + 1."""
    if found is None:
        raise SchemaMissing(store)
    if found < newest:
        raise SchemaOutdated(store, found, newest)
    if found > newest + 1:
        raise SchemaTooNew(store, found, newest)


def pending(store: str, done: int | None, migrations: list[Migration]) -> list[Migration]:
    """Return the migrations that a schema of version `done` still needs. `SchemaTooNew` if it is newer than all."""
    newest = migrations[-1].number
    if done is not None and done > newest:
        raise SchemaTooNew(store, done, newest)
    return [migration for migration in migrations if migration.number > (done or 0)]


def script(migrations: list[Migration], records_table: str = "tickler_records") -> str:
    """Return all migrations as one script in one transaction, which also records the resulting version."""
    parts = [f"-- {migration.name}\n{migration.sql.strip()}\n" for migration in migrations]
    fact = f"""\
INSERT INTO {records_table} (kind, name, value, version) VALUES ('store', 'schema', '{{"version":{migrations[-1].number}}}', 1)
ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value;
"""
    return "\n".join(["BEGIN;\n", *parts, fact, "COMMIT;\n"])
