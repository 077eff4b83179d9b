"""Schedules in PostgreSQL. A schedule and its index row change in the same transaction.

A writer locks the schedule's row first and its index row second, and decides when it has both; a claim locks index rows only, and
skips locked ones. So writers and claims cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter, itemgetter

import asyncpg

from tickler.database.postgres.pool import BROKEN, Connection, LostRace, Pool
from tickler.database.postgres.request_batcher import RequestBatcher
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import InvalidInput
from tickler.model.schedule import Id, StoredSchedule
from tickler.schedules.contract import Decide, Stored, check_unchanged
from tickler.schedules.write import ScheduleChange, ScheduleRemoval, id_of
from tickler.stores.postgres import rows
from tickler.stores.sql.schedules import JOINED, SqlScheduleReads, read_schedule

Select = Callable[[Connection], Awaitable[Stored]]  # locks schedules, and reads them

_DIALECT = {"body": "s.body", "enabled": "s.enabled", "paused": "NOT s.enabled"}
_WANTED = """
    JOIN unnest($1::text[], $2::text[]) AS wanted (owner, key) ON s.owner = wanted.owner AND s.key = wanted.key
"""
_LOCK_IDS = f"""
    SELECT s.owner, s.key FROM {{schema}}.tickler_schedules s {_WANTED} ORDER BY s.owner, s.key FOR UPDATE OF s
"""
_READ = f"{JOINED} {_WANTED} ORDER BY s.owner, s.key".replace("{body}", _DIALECT["body"])
_LOCK_OWNER = "SELECT owner, key FROM {schema}.tickler_schedules WHERE owner = $1 ORDER BY key FOR UPDATE"
_LOCK_INDEX = f"""
    SELECT FROM {{schema}}.tickler_index s {_WANTED} ORDER BY s.owner, s.key FOR UPDATE OF s
"""
TABLE_COLUMNS = ("owner", "key", "when_text", "tz", "enabled", "version", "created_at", "updated_at", "body")
_ARRAYS = """
    unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]
    ) AS new (owner, key, when_text, tz, enabled, version, created_at, updated_at, body)
"""
_INSERT = f"INSERT INTO {{schema}}.tickler_schedules SELECT * FROM {_ARRAYS} ON CONFLICT DO NOTHING"
_UPDATE = f"""
    UPDATE {{schema}}.tickler_schedules s SET
        when_text = new.when_text, tz = new.tz, enabled = new.enabled, version = new.version, updated_at = new.updated_at,
        body = new.body
    FROM {_ARRAYS}
    WHERE s.owner = new.owner AND s.key = new.key
"""
_DELETE = """
    DELETE FROM {schema}.tickler_schedules s USING unnest($1::text[], $2::text[]) AS gone (owner, key)
    WHERE s.owner = gone.owner AND s.key = gone.key
"""


# A row that another transaction keeps locked must not delay the changes batched with it.
_IMPATIENT = "SET LOCAL lock_timeout = '100ms'"

SOON_MS = 60_000  # notify workers of schedules that are due before their next poll

_ID = attrgetter("schedule.owner", "schedule.key")


async def read(connection: Connection, database: Pool, ids: Sequence[Id]) -> Stored:
    """Return those of `ids` that exist."""
    found = await connection.fetch(database.sql(_READ), *rows.transposed(ids))
    return {schedule.id: schedule for schedule in map(read_schedule, found)}


class _SeparateWrite(Exception):
    """A batched change failed or was blocked by one of its members. Nothing changed: each is repeated alone."""


class PostgresSchedules(SqlScheduleReads):
    def __init__(self, database: Pool) -> None:
        super().__init__(database, _DIALECT)
        self._database = database
        self._gets = RequestBatcher(self._get_together)
        self._changes: RequestBatcher[tuple[Id, Decide], Exception | None] = RequestBatcher(
            self._change_together, apart=itemgetter(0)
        )

    async def change(self, ids: Sequence[Id], decide: Decide, *, using: object = None) -> None:
        if len(ids) == 1 and using is None:
            with suppress(_SeparateWrite):
                refused = await self._changes.ask((ids[0], decide))
                if refused is not None:
                    raise refused
                return
        if isinstance(using, UnitOfWork):
            await self._join(using, partial(self._select, ids), decide)
        else:
            await self._change_alone(ids, decide, using)

    async def _change_together(self, asked: Sequence[tuple[Id, Decide]]) -> list[Exception | None]:
        """Apply a batch. Return what each `decide` raised, which concerns only its own caller."""
        refused: list[Exception | None] = []

        def decide_all(stored: Stored) -> list[ScheduleChange | ScheduleRemoval]:
            refused.clear()
            decided: list[ScheduleChange | ScheduleRemoval] = []
            for id, decide in asked:
                try:
                    decided += decide({id: stored[id]} if id in stored else {})
                except Exception as error:
                    refused.append(error)
                else:
                    refused.append(None)
            return decided

        async def work(connection: Connection) -> None:
            try:
                if len(asked) > 1:
                    await connection.execute(_IMPATIENT)
                await self._read_decide_apply(connection, [id for id, _ in asked], decide_all)
            except BROKEN:
                raise
            except (LostRace, asyncpg.PostgresError) as error:
                if len(asked) > 1:
                    raise _SeparateWrite from error
                raise

        await self._database.write(work)
        return refused

    async def _join(self, unit: UnitOfWork, select: Select, decide: Decide) -> None:
        """Decide from what is stored now, and add a part to a unit of work that locks it, compares, and applies the changes."""
        seen = await self._database.read(select)
        changes = decide(seen)
        await unit.join(self._database, map(id_of, changes))

        async def part(connection: Connection) -> None:
            check_unchanged(seen, await select(connection))
            await self.apply(connection, changes)

        unit.add(part)

    async def _change_alone(self, ids: Sequence[Id], decide: Decide, using: object) -> None:
        likely_new = len(ids) >= rows.COPY_FROM_ROWS

        async def work(connection: Connection) -> None:
            nonlocal likely_new
            if likely_new:
                likely_new = False  # if one exists after all, the next attempt reads and locks them
                if await self._all_were_new(connection, ids, decide):
                    return
            await self._read_decide_apply(connection, ids, decide)

        await self._database.write(work, using)

    async def _read_decide_apply(self, connection: Connection, ids: Sequence[Id], decide: Decide) -> None:
        await self.apply(connection, decide(await self._select(ids, connection)))

    async def _select(self, ids: Sequence[Id], connection: Connection) -> Stored:
        return await self._read_locked(connection, await connection.fetch(self._database.sql(_LOCK_IDS), *rows.transposed(ids)))

    async def change_owner(self, owner: str, decide: Decide, *, using: object = None) -> None:
        async def of_owner(connection: Connection) -> Stored:
            return await self._read_locked(connection, await connection.fetch(self._database.sql(_LOCK_OWNER), owner))

        async def work(connection: Connection) -> None:
            await self.apply(connection, decide(await of_owner(connection)))

        if isinstance(using, UnitOfWork):
            await self._join(using, of_owner, decide)
        else:
            await self._database.write(work, using)

    async def get(self, id: Id, *, using: object = None) -> StoredSchedule | None:
        if using is None or isinstance(using, UnitOfWork):
            return await self._gets.ask(id)
        return (await self._database.write(lambda connection: read(connection, self._database, [id]), using)).get(id)

    async def _get_together(self, ids: Sequence[Id]) -> list[StoredSchedule | None]:
        found = await self._database.read(lambda connection: read(connection, self._database, list(dict.fromkeys(ids))))
        return [found.get(id) for id in ids]

    async def _all_were_new(self, connection: Connection, ids: Sequence[Id], decide: Decide) -> bool:
        """Write many without reading them first, if the first and the last do not exist. `LostRace` if another one does."""
        if await connection.fetch(self._database.sql(_LOCK_IDS), *rows.transposed([ids[0], ids[-1]])):
            return False
        try:
            changes = decide({})
        except InvalidInput:
            return False  # it may be valid given what is stored; otherwise it is raised again
        await self.apply(connection, changes)
        return True

    async def _read_locked(self, connection: Connection, locked: Sequence[asyncpg.Record]) -> Stored:
        """Read schedules whose rows are locked, and lock their index rows, which waits for claims in progress."""
        if not locked:
            return {}
        ids = [Id(*row) for row in locked]
        await connection.execute(self._database.sql(_LOCK_INDEX), *rows.transposed(ids))
        return await read(connection, self._database, ids)

    async def apply(self, connection: Connection, changes: Sequence[ScheduleChange | ScheduleRemoval]) -> None:
        removals = [change for change in changes if isinstance(change, ScheduleRemoval)]
        removed = [removal.id for removal in removals]
        written = sorted((change for change in changes if type(change) is ScheduleChange), key=_ID)
        if removed:
            await connection.execute(self._database.sql(_DELETE), *rows.transposed(removed))
        await self._insert(connection, [change for change in written if change.version == 1])
        updated = [change.columns() for change in written if change.version > 1]
        if updated:
            await connection.execute(self._database.sql(_UPDATE), *rows.transposed(updated))
        left = [change.schedule.id for change in written if change.move in ("leave", "finish")]
        await rows.leave(connection, self._database, [*removed, *left])
        for new in (True, False):
            entering = [
                (change.row, change.has_target) for change in written if change.row is not None and (change.version == 1) is new
            ]
            await rows.enter(connection, self._database, entering, new=new)
        finished = [change.finished() for change in written if change.move == "finish"]
        await rows.put_aside(connection, self._database, finished)
        if removals:
            await rows.cancel(connection, self._database, removals)
        if any(change.row is not None and change.row.next_fire_at < change.updated_at + SOON_MS for change in written):
            await self._database.notify(connection)

    async def _insert(self, connection: Connection, new: Sequence[ScheduleChange]) -> None:
        """Insert schedules. `LostRace` if one exists after all: there was no row to lock when they were read."""
        database = self._database
        if not new or await rows.copied(
            connection, database, "tickler_schedules", TABLE_COLUMNS, (change.columns() for change in new), len(new)
        ):
            return
        status = await connection.execute(database.sql(_INSERT), *rows.transposed([change.columns() for change in new]))
        if status != f"INSERT 0 {len(new)}":
            raise LostRace
