"""Statements that several parts of the store share: moves rows in and out of the index, records history, cancels fires."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from tickler.errors import ManagedRow
from tickler.fires.lease import SCHEDULE_GONE
from tickler.index.advance import ROW_FORMAT, AsideRow
from tickler.model.fire import Entry, cancelled
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Id
from tickler.stores.sql.fires import FIRE, read_fire

INSERT = """
    INSERT INTO tickler_index (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, has_target)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_OR_REPLACE = """
    ON CONFLICT (owner, key) DO UPDATE SET
        when_text = excluded.when_text, tz = excluded.tz, next_fire_at = excluded.next_fire_at, ends_at = excluded.ends_at,
        offset_ms = excluded.offset_ms, managed = excluded.managed, format = excluded.format,
        has_target = excluded.has_target
"""
_PUT_ASIDE = f"""
    INSERT OR REPLACE INTO tickler_aside
        (owner, key, state, reason, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {ROW_FORMAT})
"""
# Many ids in one statement, since a call from Python costs more than a look-up.
WANTED = "json_each(?) AS wanted"
WANTED_ID = "s.owner = json_extract(wanted.value, '$[0]') AND s.key = json_extract(wanted.value, '$[1]')"
_MANAGED = f"SELECT s.owner, s.key FROM {WANTED} CROSS JOIN tickler_schedules s ON {WANTED_ID} LIMIT 1"
_RECORD_ZONE = "INSERT INTO tickler_records (kind, name, value, version) VALUES ('zone', ?, '{}', 1) ON CONFLICT DO NOTHING"
_RECORD = """
    INSERT INTO tickler_history (owner, key, at, happened, expires_at, entry)
    SELECT json_extract(value, '$.owner'), json_extract(value, '$.key'), json_extract(value, '$.at'),
           json_extract(value, '$.happened'), ?, value
    FROM json_each(?)
"""


def as_json(values: Sequence[object]) -> str:
    """Encode many rows as one parameter of `json_each`. One statement for all of them releases the interpreter lock while it
    runs; one for each row would have to take it again after every row.
    """
    return msgspec.json.encode(values).decode()


def from_json(columns: int) -> str:
    """Return SQL for the columns of rows that `json_each` yields as arrays."""
    return ", ".join(f"json_extract(value, '$[{column}]')" for column in range(columns))


Entering = Sequence[tuple[IndexRow, bool]]  # each with whether workers deliver it


def enter(connection: sqlite3.Connection, rows: Entering, *, new: bool = False) -> None:
    """Put rows into the index, wherever they were before, and record their zones as readable.

    `new` rows are likely absent.
    """
    if not rows:
        return
    if not new or not _inserted(connection, rows):
        connection.executemany(f"{INSERT} {_OR_REPLACE}", map(_columns, rows))
    take_back(connection, [Id(row.owner, row.key) for row, _ in rows])
    connection.executemany(_RECORD_ZONE, [(zone,) for zone in {row.when.tz for row, _ in rows}])


def leave(connection: sqlite3.Connection, ids: Iterable[Id]) -> None:
    """Remove rows from the index and from the set-aside rows."""
    listed = list(ids)
    connection.executemany("DELETE FROM tickler_index WHERE owner = ? AND key = ?", listed)
    take_back(connection, listed)


def take_back(connection: sqlite3.Connection, ids: Sequence[Id]) -> None:
    """Remove rows from the set-aside rows."""
    if connection.execute("SELECT 1 FROM tickler_aside LIMIT 1").fetchone():
        connection.executemany("DELETE FROM tickler_aside WHERE owner = ? AND key = ?", ids)


def refuse_managed(connection: sqlite3.Connection, ids: Sequence[Id]) -> None:
    managed = connection.execute(_MANAGED, (as_json(ids),)).fetchone()
    if managed:
        raise ManagedRow(*managed)


def put_aside(connection: sqlite3.Connection, rows: Iterable[AsideRow]) -> None:
    """Keep rows outside the index."""
    connection.executemany(_PUT_ASIDE, rows)


def record(connection: sqlite3.Connection, entries: Sequence[Entry], expires_at: int) -> None:
    if entries:
        connection.execute(_RECORD, (expires_at, as_json(entries)))


def cancel(connection: sqlite3.Connection, id: Id, at: int, expires_at: int) -> None:
    """Cancel the fires of a schedule that is deleted."""
    query = f"SELECT {FIRE} FROM tickler_fires f WHERE f.owner = ? AND f.key = ?"
    fires = [read_fire(row) for row in connection.execute(query, id).fetchall()]
    if fires:
        connection.execute("DELETE FROM tickler_fires WHERE owner = ? AND key = ?", id)
        record(connection, [cancelled(fire, at, SCHEDULE_GONE) for fire in fires], expires_at)


def _inserted(connection: sqlite3.Connection, rows: Entering) -> bool:
    """Insert rows, which is faster than an upsert. Return False, with nothing written, if one exists."""
    connection.execute("SAVEPOINT entering")
    try:
        connection.executemany(INSERT, map(_columns, rows))
        inserted = True
    except sqlite3.IntegrityError:
        connection.execute("ROLLBACK TO entering")
        inserted = False
    connection.execute("RELEASE entering")  # any other error ends the enclosing transaction
    return inserted


def _columns(entering: tuple[IndexRow, bool]) -> tuple[object, ...]:
    row, has_target = entering
    when = row.when
    place = (row.next_fire_at, row.ends_at, row.offset_ms, row.managed)
    return (row.owner, row.key, str(when), when.tz, *place, ROW_FORMAT, has_target)
