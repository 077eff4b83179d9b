"""Sends in PostgreSQL. The record and the schedule of a send are written in the same transaction.

Nothing is locked while a send is decided: both are new, so of two sends with the same id one cannot insert, and reads again.
"""

from __future__ import annotations

from tickler.database.postgres.pool import Connection, LostRace, Pool
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict, VersionConflict
from tickler.model.schedule import Id
from tickler.records.kinds import SEND
from tickler.sends.contract import Decide, NewSend, SeenSend, label_of, record_name
from tickler.stores.postgres import records, schedules
from tickler.stores.postgres.schedules import PostgresSchedules
from tickler.stores.sql.records import ANY, read_record


class PostgresSends:
    def __init__(self, database: Pool, schedules: PostgresSchedules) -> None:
        self._database = database
        self._schedules = schedules

    async def send(self, id: Id, decide: Decide, *, using: object = None) -> None:
        async def work(connection: Connection) -> None:
            new = decide(await self._seen(connection, id))
            if new is not None:
                await self._apply(connection, id, new)

        if not isinstance(using, UnitOfWork):
            await self._database.write(work, using)
            return
        seen = await self._database.read(lambda connection: self._seen(connection, id))
        new = decide(seen)
        if new is None:
            return

        async def part(connection: Connection) -> None:
            if await self._seen(connection, id) != seen:
                raise TransactionConflict(label_of(id))
            await self._apply(connection, id, new)

        await using.join(self._database, [id])
        using.add(part)

    async def _seen(self, connection: Connection, id: Id) -> SeenSend:
        stored = await schedules.read(connection, self._database, [id])
        row = await connection.fetchrow(self._database.sql(ANY), SEND, record_name(id))
        return SeenSend(None if row is None else read_record(row), stored.get(id))

    async def _apply(self, connection: Connection, id: Id, new: NewSend) -> None:
        """Write a send. `LostRace` if there is another of this id by now, or a schedule."""
        name, now_ms = record_name(id), new.schedule.updated_at
        try:
            await records.write(connection, self._database, SEND, name, new.value, new.expires_at, now_ms, expected=0)
        except VersionConflict as error:
            raise LostRace from error
        await self._schedules.apply(connection, [new.schedule])
