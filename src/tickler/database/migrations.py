"""Numbered migrations, and which schema versions a worker can live with."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import NamedTuple

from tickler.errors import SchemaMissing, SchemaOutdated, SchemaTooNew


class Migration(NamedTuple):
    number: int
    name: str
    sql: str

    def statements(self) -> list[str]:
        """Without comments, so that a semicolon in one cuts nothing."""
        code = "\n".join(line.partition("--")[0].rstrip() for line in self.sql.splitlines())
        return [statement.strip() for statement in code.split(";") if statement.strip()]


def read_migrations(folder: Traversable) -> list[Migration]:
    """The `NNNN_name.sql` files of a folder, in order."""
    found = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    ]
    return sorted(found)


def check_version(store: str, found: int | None, newest: int) -> None:
    """Refuse a schema that this version cannot work with. Workers of version N run on schema N and N + 1."""
    if found is None:
        raise SchemaMissing(store)
    if found < newest:
        raise SchemaOutdated(store, found, newest)
    if found > newest + 1:
        raise SchemaTooNew(store, found, newest)


def pending(store: str, done: int | None, migrations: list[Migration]) -> list[Migration]:
    """What is still to run on a schema of version `done`. `SchemaTooNew` when it is ahead of them."""
    newest = migrations[-1].number
    if done is not None and done > newest:
        raise SchemaTooNew(store, done, newest)
    return [migration for migration in migrations if migration.number > (done or 0)]


def script(migrations: list[Migration], records_table: str = "tickler_records") -> str:
    """All of them as one script in one transaction, which also records the version it leaves behind."""
    parts = [f"-- {migration.name}\n{migration.sql.strip()}\n" for migration in migrations]
    fact = f"""\
INSERT INTO {records_table} (kind, name, value, version) VALUES ('store', 'schema', '{{"version":{migrations[-1].number}}}', 1)
ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value;
"""
    return "\n".join(["BEGIN;\n", *parts, fact, "COMMIT;\n"])
