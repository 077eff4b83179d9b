"""Statements on fires and their history that schedules use too, when they cancel fires."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from tickler.fires.lease import SCHEDULE_GONE
from tickler.model.fire import Entry, cancelled
from tickler.model.schedule import Id
from tickler.stores.sql.fires import FIRE, read_fire
from tickler.stores.sqlite import rows

_RECORD = """
    INSERT INTO tickler_history (owner, key, at, happened, expires_at, entry)
    SELECT json_extract(value, '$.owner'), json_extract(value, '$.key'), json_extract(value, '$.at'),
           json_extract(value, '$.happened'), ?, value
    FROM json_each(?)
"""


def record(connection: sqlite3.Connection, entries: Sequence[Entry], expires_at: int) -> None:
    if entries:
        connection.execute(_RECORD, (expires_at, rows.as_json(entries)))


def cancel(connection: sqlite3.Connection, id: Id, at: int, expires_at: int) -> None:
    """Cancel the fires of a schedule that is deleted."""
    query = f"SELECT {FIRE} FROM tickler_fires f WHERE f.owner = ? AND f.key = ?"
    owed = [read_fire(row) for row in connection.execute(query, id).fetchall()]
    if owed:
        connection.execute("DELETE FROM tickler_fires WHERE owner = ? AND key = ?", id)
        record(connection, [cancelled(fire, at, SCHEDULE_GONE) for fire in owed], expires_at)
