"""The changes of a table in PostgreSQL, where the order of numbers is not that of commits: see `horizon.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tickler.database.postgres.pool import Connection, Pool
from tickler.errors import StoreUnavailable
from tickler.table.definition import TableDefinition
from tickler.table.engines.change_log import ALL_SHARDS, SHARDS, Shard, ShardRead
from tickler.table.engines.postgres.horizon import PREPARED, Horizon
from tickler.table.engines.rows import decode
from tickler.table.engines.sql.change_log import (
    DELETED,
    MAX_READ_BYTES,
    ChangeLogStatements,
    ChangeRow,
    aged,
    first_of,
    read_by_all,
    shard_reads,
)
from tickler.table.engines.sql.layout import Dialect

NOW = "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000)::bigint"

MAX_OBSERVATIONS = 5  # of one read, while changes wait that are not settled
OBSERVED_EVERY_S = 0.002
SETTLE_TIMEOUT_S = 30.0

GUARD = ""  # the entity of rows that are inserted and deleted at once, and are no items

Positions = Mapping[str, str | None]

# The triggers of inserts and deletes are called once for all rows of a statement, since it may be a load. That of updates is
# called for each row: it would have to join old and new rows, which PostgreSQL plans for as many rows as the first statement has.
_TRIGGERS = {
    "insert": "AFTER INSERT ON {table} REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT",
    "update": "AFTER UPDATE ON {table} FOR EACH ROW WHEN (OLD.body IS DISTINCT FROM NEW.body)",
    "delete": "AFTER DELETE ON {table} REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT",
}
_COUNT_TRIGGERS = "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = ANY($2) AND tgenabled <> 'D'"


class PostgresChangeLog:
    poll_s = (0.01, 0.25)

    def __init__(self, table: TableDefinition, dialect: Dialect, pool: Pool) -> None:
        self._table = table
        self._pool = pool
        seq = "bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY"  # a session may not keep numbers for later
        self._statements = log = ChangeLogStatements(dialect, table.name, seq=seq, now=NOW)
        self._items = pool.sql(f'{dialect.place}"{table.name}"')
        self._triggers = {event: f"{log.name}.{event}" for event in _TRIGGERS}
        self._horizon = Horizon()
        self._one_observer = asyncio.Lock()
        self._sequence = pool.sql(f'{dialect.place}"{log.name}_seq_seq"')
        self._observe = pool.sql(_observe_text(log.table, self._sequence))
        in_shards = f"seq > ($3::bigint[])[get_byte(sha256(convert_to(pk, 'UTF8')), 0) % {SHARDS} + 1]"
        settled = "seq > $1 AND seq <= $2"
        self._select = pool.sql(_select_text(log.table, f"{settled} ORDER BY seq LIMIT $3"))
        in_these = f"(entity = '{DELETED}' OR {in_shards})"
        self._select_shards = pool.sql(_select_text(log.table, f"{settled} AND {in_these} ORDER BY seq LIMIT $4"))
        self._count = pool.sql(
            f"""
            SELECT count(*) FROM (
                SELECT 1 FROM {log.table} WHERE seq > $1 AND entity <> $2 AND {in_shards} LIMIT $4
            ) AS waiting
            """
        )

    async def exists(self, connection: Connection) -> bool:
        names = list(self._triggers.values())
        return bool(await connection.fetchval(_COUNT_TRIGGERS, self._items, names) == len(names))

    async def create(self, connection: Connection) -> None:
        """Create the log. This waits for transactions that write to the table, and they for it."""
        function = self._pool.sql(self._statements.table)
        await connection.execute(self._statements.create)
        await connection.execute(_function_text(function, self._statements.insert))
        for event, trigger in _TRIGGERS.items():
            name = f'"{self._triggers[event]}"'
            await connection.execute(f"DROP TRIGGER IF EXISTS {name} ON {self._items}")
            definition = trigger.format(table=self._items)
            await connection.execute(f"CREATE TRIGGER {name} {definition} EXECUTE FUNCTION {function}()")

    async def keep_inserts(self, connection: Connection, are_kept: bool) -> None:
        """Leave inserts out of the log, or keep them again: both in one transaction, for which other writers wait."""
        what = "ENABLE" if are_kept else "DISABLE"
        await connection.execute(f'ALTER TABLE {self._items} {what} TRIGGER "{self._triggers["insert"]}"')

    async def shards(self) -> list[Shard]:
        return list(ALL_SHARDS)

    async def end(self) -> dict[str, str]:
        """Return the last number, once it is settled: then what is committed from now on has a higher one."""
        try:
            async with asyncio.timeout(SETTLE_TIMEOUT_S):
                horizon = await self._observed()
                last = horizon.last
                while horizon.settled < last:
                    await asyncio.sleep(OBSERVED_EVERY_S)
                    horizon = await self._observed()
        except TimeoutError:
            raise StoreUnavailable(
                f"{self._pool.name}: a transaction that writes to {self._table.name!r} has not ended for {SETTLE_TIMEOUT_S:g} s: "
                "commit it or roll it back; pg_locks and pg_prepared_xacts show it"
            ) from None
        return {shard.id: str(last) for shard in ALL_SHARDS}

    async def read(self, positions: Positions, *, limit: int) -> list[ShardRead]:
        first = first_of(positions)
        horizon = await self._observed()
        for _ in range(1, MAX_OBSERVATIONS):
            if horizon.settled > first or horizon.last <= first:
                break
            await asyncio.sleep(OBSERVED_EVERY_S)
            horizon = await self._observed()
        last, settled = horizon.last, horizon.settled
        if any(int(position or 0) > last for position in positions.values()):
            return [_set_back(shard, int(position or 0), last) for shard, position in positions.items()]
        if settled <= first:
            return shard_reads((), positions, first)
        if len(positions) == SHARDS and len(set(positions.values())) == 1:
            rows = await self._pool.fetch(self._select, first, settled, limit)
        else:
            rows = await self._pool.fetch(self._select_shards, first, settled, _by_shard(positions), limit)
        return shard_reads((ChangeRow(*row) for row in rows), positions, rows[-1][0] if rows else settled)

    def decode(self, entity: str, image: bytes) -> Any:
        return decode(self._table, entity, image)

    async def waiting(self, positions: Positions, *, limit: int) -> int:
        ((found,),) = await self._pool.fetch(self._count, first_of(positions), DELETED, _by_shard(positions), limit)
        return int(found)

    async def prune(self, positions: Sequence[Positions], *, keep_ms: int, limit: int) -> int:
        return await self._pool.write(lambda connection: self._prune(connection, read_by_all(positions), keep_ms, limit))

    async def _prune(self, connection: Connection, behind: int, keep_ms: int, limit: int) -> int:
        log = self._statements
        deleted = int((await connection.execute(log.delete_read, behind, limit)).rpartition(" ")[2])
        last, old = aged((row[0], row[1], row[2]) for row in await connection.fetch(log.oldest, keep_ms, behind, limit))
        if old:
            await connection.execute(log.delete_before, last)
            await connection.execute(log.mark_deleted, last)
        return deleted + old

    async def _observed(self) -> Horizon:
        """Return the horizon after one more observation, which lists no writers if no number was taken and none is pending."""
        async with self._one_observer:
            horizon = self._horizon
            known = horizon.last if horizon.settled == horizon.last else -1
            ((last, writers),) = await self._pool.fetch(self._observe, known)
            if last is None:
                raise StoreUnavailable(
                    f"{self._pool.name}: permission denied: GRANT SELECT ON SEQUENCE {self._sequence} TO this role"
                )
            horizon.observe(last, writers)
            return horizon


def _select_text(log: str, chosen: str) -> str:
    """Return the statement of a read, which ends with the change whose images make it too large."""
    return f"""
        SELECT seq, at_ms, entity, pk, sk, old, new FROM (
            SELECT *, sum(coalesce(length(old), 0) + coalesce(length(new), 0)) OVER (
                ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS size_before
            FROM (SELECT * FROM {log} WHERE {chosen}) AS chosen
        ) AS measured
        WHERE size_before IS NULL OR size_before <= {MAX_READ_BYTES} ORDER BY seq
    """


def _observe_text(log: str, sequence: str) -> str:
    """Return the statement of an observation: the last number, null if its role may not read it, and who writes to the log.

    The number has to be read before the locks, so the subquery for the locks depends on it. `pg_sequence_last_value` reads under
    the lock of the sequence's page. A SELECT from the sequence does not, and sometimes sees a number that nobody has taken yet.
    """
    return f"""
        SELECT last, CASE WHEN last <> $1 THEN ARRAY(
            SELECT CASE WHEN pid IS NULL THEN '{PREPARED}' ELSE '' END || virtualtransaction FROM pg_locks
            WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted AND last IS NOT NULL
                AND relation = '{log}'::regclass
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        ) ELSE '{{}}' END
        FROM (
            SELECT coalesce(
                pg_sequence_last_value('{sequence}'::regclass),
                CASE WHEN has_sequence_privilege('{sequence}'::regclass, 'SELECT, USAGE') THEN 0 END
            ) AS last
            OFFSET 0
        ) AS taken
    """


def _function_text(name: str, insert: str) -> str:
    """Return the statement for the function of the triggers."""
    return f"""
        CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $function$
        BEGIN
            IF TG_OP = 'INSERT' THEN
                {insert} SELECT {NOW}, entity, pk, sk, NULL, body FROM new_rows WHERE entity <> '{GUARD}';
            ELSIF TG_OP = 'UPDATE' THEN
                {insert} VALUES ({NOW}, NEW.entity, NEW.pk, NEW.sk, OLD.body, NEW.body);
            ELSE
                {insert} SELECT {NOW}, entity, pk, sk, body, NULL FROM old_rows WHERE entity <> '{GUARD}';
            END IF;
            RETURN NULL;
        END
        $function$
    """


def _by_shard(positions: Positions) -> list[int | None]:
    """Return the position in each shard, None for one that is not asked for."""
    return [int(positions[shard.id] or 0) if shard.id in positions else None for shard in ALL_SHARDS]


def _set_back(shard: str, position: int, last: int) -> ShardRead:
    """Answer to positions behind the last number, which a database has that was restored, or a replica that lagged behind."""
    return ShardRead(shard, (), str(min(position, last)), lost=position > last)
