"""Schedules in SQLite. A schedule and its index row change in the same transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing

from tickler.database.sqlite.connection import Connection
from tickler.database.unit_of_work import UnitOfWork
from tickler.fires.byte_budget import ByteBudget
from tickler.model.schedule import Id, StoredSchedule
from tickler.schedules.contract import Decide, Stored, check_unchanged
from tickler.schedules.write import ScheduleChange, ScheduleRemoval, id_of
from tickler.stores.sql.schedules import COLUMNS, INDEX_AND_ASIDE, SqlScheduleReads, read_schedule
from tickler.stores.sqlite import rows

_DIALECT = {"body": "CAST(s.body AS BLOB) AS body", "enabled": "s.enabled = 1", "paused": "s.enabled = 0"}
_COLUMNS = COLUMNS.replace("{body}", _DIALECT["body"])
_SIZED = f"{_COLUMNS}, length(CAST(s.body AS BLOB))"
_INDEX_AND_ASIDE = INDEX_AND_ASIDE.replace("{schema}.", "")
_OF_IDS = f"FROM {rows.WANTED} CROSS JOIN tickler_schedules s ON {rows.WANTED_ID} {_INDEX_AND_ASIDE}"
_OF_OWNER = f"{_COLUMNS} FROM tickler_schedules s {_INDEX_AND_ASIDE} WHERE s.owner = ? ORDER BY s.key"

# New schedules are known to be absent, since the transaction has the write lock from its start.
_INSERT = """
    INSERT INTO tickler_schedules (owner, key, when_text, tz, enabled, version, created_at, updated_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_UPDATE = """
    UPDATE tickler_schedules SET
        when_text = ?, tz = ?, enabled = ?, version = ?, created_at = ?, updated_at = ?, body = ?
    WHERE owner = ? AND key = ?
"""


class SqliteSchedules(SqlScheduleReads):
    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, _DIALECT)
        self._connection = connection

    async def change(self, ids: Sequence[Id], decide: Decide, *, using: object = None) -> None:
        await self._change(lambda connection: read(connection, ids), decide, using)

    async def change_owner(self, owner: str, decide: Decide, *, using: object = None) -> None:
        def of_owner(connection: sqlite3.Connection) -> Stored:
            found = connection.execute(_OF_OWNER, (owner,)).fetchall()
            return {schedule.id: schedule for schedule in map(read_schedule, found)}

        await self._change(of_owner, decide, using)

    async def _change(self, select: Callable[[sqlite3.Connection], Stored], decide: Decide, using: object) -> None:
        if not isinstance(using, UnitOfWork):
            await self._connection.write(lambda connection: apply(connection, decide(select(connection))), using)
            return
        seen = await self._connection.read(select)
        changes = decide(seen)
        await using.join(self._connection, map(id_of, changes))

        def part(connection: sqlite3.Connection) -> None:
            check_unchanged(seen, select(connection))
            apply(connection, changes)

        using.add(part)

    async def get(self, id: Id, *, using: object = None) -> StoredSchedule | None:
        if using is None or isinstance(using, UnitOfWork):
            return (await self._connection.read(lambda connection: read(connection, [id]))).get(id)
        return (await self._connection.write(lambda connection: read(connection, [id]), using)).get(id)


def read(connection: sqlite3.Connection, ids: Sequence[Id]) -> Stored:
    found = connection.execute(f"{_COLUMNS} {_OF_IDS}", (rows.as_json(ids),)).fetchall()
    return {schedule.id: schedule for schedule in map(read_schedule, found)}


def read_within(budget: ByteBudget, connection: sqlite3.Connection, ids: Sequence[Id]) -> tuple[Stored, Collection[Id]]:
    """Return schedules in the order of their ids until their bodies do not fit, and the ids that were not read."""
    with closing(connection.execute(f"{_SIZED} {_OF_IDS}", (rows.as_json(ids),))) as cursor:
        found = [read_schedule(row) for *row, _ in budget.fitting(cursor, lambda row: int(row[-1]))]
    left = ids[ids.index(found[-1].id) + 1 :] if budget.is_spent else ()
    return {schedule.id: schedule for schedule in found}, set(left)


def apply(connection: sqlite3.Connection, changes: Sequence[ScheduleChange | ScheduleRemoval]) -> None:
    removals = [change for change in changes if isinstance(change, ScheduleRemoval)]
    removed = [removal.id for removal in removals]
    written = [change for change in changes if isinstance(change, ScheduleChange)]
    connection.executemany("DELETE FROM tickler_schedules WHERE owner = ? AND key = ?", removed)
    connection.executemany(_INSERT, (change.columns() for change in written if change.version == 1))
    connection.executemany(_UPDATE, (_id_last(*change.columns()) for change in written if change.version > 1))
    rows.leave(connection, [*removed, *(change.schedule.id for change in written if change.move in ("leave", "finish"))])
    for new in (True, False):
        entering = [
            (change.row, change.has_target) for change in written if change.row is not None and (change.version == 1) is new
        ]
        rows.enter(connection, entering, new=new)
    for removal in removals:
        rows.cancel(connection, *removal)
    rows.put_aside(connection, [change.finished() for change in written if change.move == "finish"])


def _id_last(owner: str, key: str, *columns: object) -> tuple[object, ...]:
    return (*columns, owner, key)
