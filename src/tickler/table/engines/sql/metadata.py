"""The SQL table that has the metadata of all tables in a database, and the text of its statements."""

from __future__ import annotations

from tickler.table.engines.sql.layout import Dialect

BEHIND_ASCII = "\x7f"  # is behind every key with the same beginning


class MetadataStatements:
    """`put` takes a table, a key and a value; `replace` and `delete_version` take the expected version behind them."""

    def __init__(self, dialect: Dialect) -> None:
        finished = dialect.finished
        self.table = f"{dialect.place}tickler_table_metadata"
        self.create = finished(
            f"""
            CREATE TABLE IF NOT EXISTS {self.table} (
                table_name {dialect.text} NOT NULL,
                key {dialect.text} NOT NULL,
                version {dialect.integer} NOT NULL,
                value {dialect.bytes} NOT NULL,
                PRIMARY KEY (table_name, key)
            )
            """
        )
        self.read = finished(self._read("value"))
        self.read_keys = finished(self._read(dialect.no_bytes))
        insert = f"INSERT INTO {self.table} AS stored (table_name, key, version, value) VALUES ($1, $2, 1, $3) ON CONFLICT"
        self.put = finished(f"{insert} (table_name, key) DO UPDATE SET version = stored.version + 1, value = excluded.value")
        self.create_entry = finished(f"{insert} DO NOTHING")
        self.replace = finished(
            f"UPDATE {self.table} SET version = version + 1, value = $1 WHERE table_name = $2 AND key = $3 AND version = $4"
        )
        self.delete = finished(f"DELETE FROM {self.table} WHERE table_name = $1 AND key = $2")
        self.delete_version = f"{self.delete}{finished(' AND version = $3')}"

    def _read(self, value: str) -> str:
        return f"""
            SELECT key, version, {value} FROM {self.table}
            WHERE table_name = $1 AND key >= $2 AND key < $3 AND key > $4
            ORDER BY key LIMIT $5
        """
