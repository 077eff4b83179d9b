"""Sends in SQLite. The record and the schedule of a send are written in the same transaction."""

from __future__ import annotations

import sqlite3

from tickler.database.sqlite.connection import Connection
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict
from tickler.model.schedule import Id
from tickler.records.kinds import SEND
from tickler.sends.contract import Decide, NewSend, SeenSend, label_of, record_name
from tickler.stores.sql.records import ANY, read_record
from tickler.stores.sqlite import records, schedules

_RECORD = ANY.replace("{schema}.", "").replace("$", "?")


class SqliteSends:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, id: Id, decide: Decide, *, using: object = None) -> None:
        def work(connection: sqlite3.Connection) -> None:
            new = decide(_seen(connection, id))
            if new is not None:
                _apply(connection, id, new)

        if not isinstance(using, UnitOfWork):
            await self._connection.write(work, using)
            return
        seen = await self._connection.read(lambda connection: _seen(connection, id))
        new = decide(seen)
        if new is None:
            return

        def part(connection: sqlite3.Connection) -> None:
            if _seen(connection, id) != seen:
                raise TransactionConflict(label_of(id))
            _apply(connection, id, new)

        await using.join(self._connection, [id])
        using.add(part)


def _seen(connection: sqlite3.Connection, id: Id) -> SeenSend:
    stored = schedules.read(connection, [id]).get(id)
    row = connection.execute(_RECORD, (SEND, record_name(id))).fetchone()
    return SeenSend(None if row is None else read_record(row), stored)


def _apply(connection: sqlite3.Connection, id: Id, new: NewSend) -> None:
    records.write(connection, SEND, record_name(id), new.value, new.expires_at)
    schedules.apply(connection, [new.schedule])
