"""Records in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import asyncpg

from tickler.database.postgres.pool import Connection, Pool
from tickler.database.postgres.request_batcher import RequestBatcher
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict, VersionConflict
from tickler.records.contract import as_it_was_read, label_of
from tickler.stores.postgres.rows import transposed
from tickler.stores.sql.records import GET, SqlRecordReads, read_record

_ALIVE = "(r.expires_at IS NULL OR r.expires_at > $3)"
# An expired record counts as absent: its next version is 1 again. $6 is the expected version, 0 for none, null for any.
_PUT = f"""
    INSERT INTO {{schema}}.tickler_records AS r (kind, name, value, version, expires_at) VALUES ($1, $2, $4, 1, $5)
    ON CONFLICT (kind, name) DO UPDATE SET
        value = excluded.value,
        version = CASE WHEN {_ALIVE} THEN r.version + 1 ELSE 1 END,
        expires_at = excluded.expires_at
    WHERE $6::bigint IS NULL OR NOT {_ALIVE}
    RETURNING version
"""
# Puts many records unconditionally. $1 to $4 are arrays, $5 is the time.
_PUT_ALL = """
    INSERT INTO {schema}.tickler_records AS r (kind, name, value, version, expires_at)
    SELECT kind, name, value, 1, expires_at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS new (kind, name, value, expires_at)
    ON CONFLICT (kind, name) DO UPDATE SET
        value = excluded.value,
        version = CASE WHEN r.expires_at IS NULL OR r.expires_at > $5 THEN r.version + 1 ELSE 1 END,
        expires_at = excluded.expires_at
    RETURNING kind, name, version
"""
_UPDATE = f"""
    UPDATE {{schema}}.tickler_records r SET value = $4, version = r.version + 1, expires_at = $5
    WHERE kind = $1 AND name = $2 AND {_ALIVE} AND r.version = $6
    RETURNING version
"""
_VERSION = "SELECT version FROM {schema}.tickler_records WHERE kind = $1 AND name = $2"  # expired or not
_DELETE = "DELETE FROM {schema}.tickler_records WHERE kind = $1 AND name = $2 RETURNING version"
_PRUNE = """
    WITH expired AS MATERIALIZED (
        SELECT kind, name FROM {schema}.tickler_records WHERE expires_at <= $1
        ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM {schema}.tickler_records r USING expired e WHERE r.kind = e.kind AND r.name = e.name
"""


_Put = tuple[str, str, str, int | None, int]  # kind, name, value, expires_at, now_ms


class PostgresRecords(SqlRecordReads):
    def __init__(self, database: Pool) -> None:
        super().__init__(database)
        self._database = database
        self._puts: RequestBatcher[_Put, int] = RequestBatcher(self._put_together, apart=itemgetter(0, 1))

    async def put(
        self,
        kind: str,
        name: str,
        value: bytes,
        *,
        now_ms: int,
        expires_at: int | None = None,
        expected: int | None = None,
        using: object = None,
    ) -> int:
        async def work(connection: Connection, expected: int | None = expected) -> int:
            return await write(connection, self._database, kind, name, value, expires_at, now_ms, expected)

        if isinstance(using, UnitOfWork):
            found = await self._expected(kind, name, now_ms, expected)

            async def part(connection: Connection) -> None:
                with as_it_was_read(kind, name):
                    await work(connection, found)

            await using.join(self._database, [label_of(kind, name)])
            using.add(part)
            return found + 1
        if expected is None and using is None:
            return await self._puts.ask((kind, name, value.decode(), expires_at, now_ms))
        return await self._database.write(work, using)

    async def _expected(self, kind: str, name: str, now_ms: int, expected: int | None) -> int:
        """Return the version that is stored. `VersionConflict` if another one is expected."""
        record = await self.get(kind, name, now_ms=now_ms)
        found = 0 if record is None else record.version
        if expected is not None and expected != found:
            raise VersionConflict(f"record {kind}/{name}", expected, found)
        return found

    async def _put_together(self, asked: Sequence[_Put]) -> list[int]:
        """Put records in the order of their names, so that two such transactions cannot deadlock."""
        *columns, _ = transposed(sorted(asked, key=itemgetter(0, 1)))
        sql, now_ms = self._database.sql(_PUT_ALL), max(now_ms for *_, now_ms in asked)
        put = await self._database.once(lambda connection: connection.fetch(sql, *columns, now_ms))
        versions = {(kind, name): version for kind, name, version in put}
        return [versions[kind, name] for kind, name, *_ in asked]

    async def delete(self, kind: str, name: str, *, using: object = None) -> bool:
        async def work(connection: Connection) -> list[asyncpg.Record]:
            return await connection.fetch(self._database.sql(_DELETE), kind, name)

        if not isinstance(using, UnitOfWork):
            return bool(await self._database.write(work, using))
        found = await self._database.fetch(_VERSION, kind, name)

        async def part(connection: Connection) -> None:
            if await work(connection) != found:
                raise TransactionConflict(label_of(kind, name))

        await using.join(self._database, [label_of(kind, name)])
        using.add(part)
        return bool(found)

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        sql = self._database.sql(_PRUNE)
        status: str = await self._database.write(lambda connection: connection.execute(sql, now_ms, limit))
        return int(status.removeprefix("DELETE "))


async def write(
    connection: Connection,
    database: Pool,
    kind: str,
    name: str,
    value: bytes,
    expires_at: int | None,
    now_ms: int,
    expected: int | None = None,
) -> int:
    statement = _UPDATE if expected else _PUT
    version: int | None = await connection.fetchval(
        database.sql(statement), kind, name, now_ms, value.decode(), expires_at, expected
    )
    if version is None:
        found = await connection.fetchrow(database.sql(GET), kind, name, now_ms)
        raise VersionConflict(f"record {kind}/{name}", expected or 0, 0 if found is None else read_record(found).version)
    return version


async def known_zones(connection: Connection, database: Pool, zones: set[str]) -> set[str]:
    """Return those of `zones` that some machine has written a row with."""
    sql = database.sql("SELECT name FROM {schema}.tickler_records WHERE kind = 'zone' AND name = ANY($1::text[])")
    return {name for (name,) in await connection.fetch(sql, list(zones))} if zones else set()
