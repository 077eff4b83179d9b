"""Statements on fires and their history that schedules use too, when they cancel fires."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tickler.database.postgres.pool import Connection, Pool
from tickler.fires.lease import SCHEDULE_GONE
from tickler.model.fire import Entry, cancelled
from tickler.schedules.write import ScheduleRemoval
from tickler.stores.postgres.rows import transposed
from tickler.stores.sql.fires import FIRE, read_fire

_RECORD = """
    INSERT INTO {schema}.tickler_history (owner, key, at, happened, expires_at, entry)
    SELECT owner, key, at, happened, $6::bigint, entry
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[]) AS new (owner, key, at, happened, entry)
"""
_CANCEL_ALL = f"""
    DELETE FROM {{schema}}.tickler_fires f USING unnest($1::text[], $2::text[]) AS gone (owner, key)
    WHERE f.owner = gone.owner AND f.key = gone.key
    RETURNING {FIRE}
"""

_encode = msgspec.json.Encoder().encode


async def record(connection: Connection, database: Pool, entries: Sequence[Entry], expires_at: int) -> None:
    if entries:
        columns = transposed([(each.owner, each.key, each.at, each.happened, _encode(each).decode()) for each in entries])
        await connection.execute(database.sql(_RECORD), *columns, expires_at)


async def cancel(connection: Connection, database: Pool, removals: Sequence[ScheduleRemoval]) -> None:
    """Cancel the fires of schedules that are deleted."""
    found = await connection.fetch(database.sql(_CANCEL_ALL), *transposed([removal.id for removal in removals]))
    if found:
        at, expires_at = removals[0].at, removals[0].expires_at
        await record(connection, database, [cancelled(read_fire(row), at, SCHEDULE_GONE) for row in found], expires_at)
