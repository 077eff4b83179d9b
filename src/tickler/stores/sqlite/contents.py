"""Everything that SQLite holds, for `tickler copy`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from tickler.database.sqlite.connection import Connection
from tickler.model.fire import Fire
from tickler.model.record import Record
from tickler.stores.contents import Contents, HistoryItem, RawSchedule
from tickler.stores.sql import contents as sql
from tickler.stores.sql.fires import fire_columns
from tickler.stores.sqlite import rows

T = TypeVar("T")

_PUT_RECORD = "INSERT OR REPLACE INTO tickler_records (kind, name, value, version, expires_at) VALUES (?, ?, ?, ?, ?)"
_PUT_SCHEDULE = """
    INSERT INTO tickler_schedules (owner, key, when_text, tz, enabled, version, created_at, updated_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, key) DO UPDATE SET
        when_text = excluded.when_text, tz = excluded.tz, enabled = excluded.enabled, version = excluded.version,
        created_at = excluded.created_at, updated_at = excluded.updated_at, body = excluded.body
"""
_SET_ASIDE = """
    INSERT INTO tickler_aside (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format, state, reason)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_PUT_FIRE = """
    INSERT INTO tickler_fires (id, owner, key, nominal_at, opened_at, attempt, state, deliver_after, worker, reason)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_PUT_ENTRY = """
    INSERT INTO tickler_history (owner, key, at, happened, expires_at, entry)
    SELECT * FROM (SELECT ? AS owner, ? AS key, ? AS at, ?, ?, ? AS entry) AS new
    WHERE NOT EXISTS (
        SELECT 1 FROM tickler_history WHERE owner = new.owner AND key = new.key AND at = new.at AND entry = new.entry
    )
"""


def contents(connection: Connection) -> Contents:
    def restoring(put: Callable[[sqlite3.Connection, Sequence[T]], None]) -> sql.Restore[T]:
        return lambda things: connection.write(lambda raw: put(raw, things))

    return sql.contents(
        connection,
        records=restoring(_put_records),
        schedules=restoring(_put_schedules),
        rows=restoring(_put_rows),
        fires=restoring(_put_fires),
        history=restoring(_put_history),
    )


def _put_records(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    connection.executemany(_PUT_RECORD, map(sql.record_columns, records))


def _put_schedules(connection: sqlite3.Connection, schedules: Sequence[RawSchedule]) -> None:
    connection.executemany(_PUT_SCHEDULE, map(sql.schedule_columns, schedules))
    _put_places(connection, schedules)


def _put_rows(connection: sqlite3.Connection, index_rows: Sequence[RawSchedule]) -> None:
    rows.refuse_managed(connection, [raw.id for raw in index_rows])
    _put_places(connection, index_rows)


def _put_places(connection: sqlite3.Connection, schedules: Sequence[RawSchedule]) -> None:
    rows.leave(connection, [raw.id for raw in schedules])
    indexed = [(*sql.row_columns(raw), raw.has_target) for raw in schedules if raw.standing == "indexed"]
    connection.executemany(rows.INSERT, indexed)
    aside = [(*sql.row_columns(raw), raw.standing, raw.reason) for raw in schedules if raw.standing in ("unreadable", "finished")]
    connection.executemany(_SET_ASIDE, aside)


def _put_fires(connection: sqlite3.Connection, fires: Sequence[Fire]) -> None:
    connection.executemany(_PUT_FIRE, map(fire_columns, fires))


def _put_history(connection: sqlite3.Connection, history: Sequence[HistoryItem]) -> None:
    connection.executemany(_PUT_ENTRY, map(sql.history_columns, history))
