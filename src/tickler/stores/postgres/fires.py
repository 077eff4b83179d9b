"""Fires and their history in PostgreSQL. FOR UPDATE SKIP LOCKED keeps workers apart; `index.py` advances the rows of a claim."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from tickler.database.postgres.pool import Connection, Pool
from tickler.database.postgres.request_batcher import RequestBatcher
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict
from tickler.fires.byte_budget import ByteBudget
from tickler.fires.claim import ClaimBatch, DueSchedule, OpenPlan
from tickler.fires.contract import ClaimRequest, LeaseRequest
from tickler.fires.lease import LeasePlan, lease
from tickler.fires.settle import change, ends_fire
from tickler.index.advance import ROW_FORMAT, AdvancePlan
from tickler.model.fire import MANUALLY, RELEASED, Claim, DueItem, Entry, Extension, Fire, Health, Settlement
from tickler.model.schedule import Id
from tickler.stores.postgres import schedules
from tickler.stores.postgres.index import ADVANCE, PostgresIndex
from tickler.stores.postgres.rows import record, transposed
from tickler.stores.sql import fires as sql_fires
from tickler.stores.sql.fires import (
    FIRE,
    IS_OVER,
    SAME_LEASE,
    SETTLED,
    Lease,
    fire_columns,
    grouped,
    lease_of,
    of_claim,
    of_fire,
    of_lease,
    of_place,
    read_fire,
    settled_lease,
)

# Like `SELECT_DUE` of the index, joined with the schedules. Rows whose bodies exceed the bytes of a claim are locked, but neither
# sent nor changed.
SELECT_DUE = """
    WITH due AS MATERIALIZED (
        SELECT ctid, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed
        FROM {schema}.tickler_index
        WHERE has_target AND next_fire_at <= $1 AND format <= $2 AND owner <> ALL($4::text[])
        ORDER BY next_fire_at
        LIMIT $3
        FOR UPDATE SKIP LOCKED
    )
    SELECT ctid, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, version, created_at, updated_at, body
    FROM (
        SELECT due.*, s.version, s.created_at, s.updated_at, s.body,
            sum(octet_length(s.body)) OVER (ORDER BY due.next_fire_at ROWS UNBOUNDED PRECEDING) AS bytes
        FROM due JOIN {schema}.tickler_schedules s ON s.owner = due.owner AND s.key = due.key
    ) AS sized
    WHERE bytes <= $5 OR ($6 AND bytes = octet_length(body))
"""
_NEWER_IS_DUE = "SELECT EXISTS (SELECT FROM {schema}.tickler_index WHERE has_target AND next_fire_at <= $1 AND format > $2)"

# Advances rows of the index too: a round trip less, for which a busy event loop would let a claim wait. Returns fires that were
# open already, usually none. What all have in common is no array: asyncpg takes 0.16 µs an element.
ADVANCE_AND_OPEN = f"""
    WITH new AS (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS new (id, owner, key, nominal_at)
    ), advanced AS (
        {ADVANCE.replace("$1", "$11").replace("$2", "$12")}
    ), opened AS (
        INSERT INTO {{schema}}.tickler_fires
            (id, owner, key, nominal_at, opened_at, attempt, state, deliver_after, worker, reason)
        SELECT *, $5::bigint, $6::integer, $7, $8::bigint, $9, $10 FROM new ON CONFLICT DO NOTHING RETURNING id
    )
    SELECT id FROM new WHERE id NOT IN (SELECT id FROM opened)
"""
# Locks these fires. A settlement commits either before, and the fire is gone, or afterwards, and finds the fire that waits.
_BUSY = """
    SELECT f.owner, f.key FROM {schema}.tickler_fires f
    JOIN unnest($1::text[], $2::text[]) AS wanted (owner, key) ON f.owner = wanted.owner AND f.key = wanted.key
    WHERE f.state <> 'dead'
    ORDER BY f.owner, f.key, f.id FOR SHARE OF f
"""
_OPEN_SINCE = f"""
    SELECT {FIRE}, (
        SELECT octet_length(s.body) FROM {{schema}}.tickler_schedules s WHERE s.owner = f.owner AND s.key = f.key
    ) AS bytes
    FROM {{schema}}.tickler_fires f
    WHERE f.deliver_after <= $1 AND ($3 OR f.worker IS NULL) AND f.owner <> ALL($4::text[])
        AND ($5 = 0 OR f.reason IS NULL OR f.reason NOT LIKE '{RELEASED}%' OR f.deliver_after <= $1 - $5::bigint)
    ORDER BY f.deliver_after LIMIT $2
    FOR UPDATE OF f SKIP LOCKED
"""
_LEASE = """
    UPDATE {schema}.tickler_fires f SET
        attempt = new.attempt, state = new.state, deliver_after = new.deliver_after, worker = new.worker, reason = new.reason
    FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::bigint[], $7::text[], $8::text[])
        AS new (owner, key, id, attempt, state, deliver_after, worker, reason)
    WHERE f.owner = new.owner AND f.key = new.key AND f.id = new.id
"""
_REOPEN = """
    UPDATE {schema}.tickler_fires SET
        opened_at = $4, attempt = 0, state = 'open', deliver_after = $4, worker = NULL, reason = NULL
    WHERE owner = $1 AND key = $2 AND id = $3
"""
_CANCEL = """
    DELETE FROM {schema}.tickler_fires f USING unnest($1::text[], $2::text[], $3::text[]) AS gone (owner, key, id)
    WHERE f.owner = gone.owner AND f.key = gone.key AND f.id = gone.id
"""
_LEASES = """
    WITH lease AS (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::text[])
            AS lease (owner, key, id, worker, attempt, deliver_after, reason)
    ), changed AS (
"""
_SAME_LEASE = re.sub(r"{(\w+)}", r"lease.\1", SAME_LEASE)
_UNCHANGED = "(id, worker, attempt) NOT IN (SELECT id, worker, attempt FROM changed)"
_OF_LEASE = f"""
        WHERE {_SAME_LEASE}
        RETURNING lease.id, lease.worker, lease.attempt
    )
    SELECT id, worker, attempt FROM lease WHERE {_UNCHANGED}
"""
# Each returns the leases that are no longer the caller's, usually none.
_SETTLE = {
    then: f"{_LEASES} UPDATE {{schema}}.tickler_fires f SET {changed} FROM lease {_OF_LEASE}".format(
        schema="{schema}", deliver_after="lease.deliver_after", reason="lease.reason"
    )
    for then, changed in SETTLED.items()
}
_DONE = """
    WITH done AS (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS done (owner, key, id)
    ), deleted AS (
        DELETE FROM {schema}.tickler_fires f USING done
        WHERE f.owner = done.owner AND f.key = done.key AND f.id = done.id AND f.worker = $4 AND f.attempt = $5
        RETURNING f.id
    )
    SELECT id FROM done WHERE id NOT IN (SELECT id FROM deleted)
"""
# Skips locked fires, which are being settled, taken over or read. Returns those that were not extended, and whether they were
# still the caller's when the statement began.
_EXTEND = f"""
    {_LEASES}
        UPDATE {{schema}}.tickler_fires f SET deliver_after = lease.deliver_after FROM lease
        WHERE f.ctid = ANY(ARRAY(
            SELECT held.ctid FROM {{schema}}.tickler_fires held
            JOIN lease ON held.owner = lease.owner AND held.key = lease.key AND held.id = lease.id
                AND held.worker = lease.worker AND held.attempt = lease.attempt
            ORDER BY held.owner, held.key, held.id
            FOR UPDATE OF held SKIP LOCKED
        )) AND {_SAME_LEASE}
        RETURNING lease.id, lease.worker, lease.attempt
    )
    SELECT id, worker, attempt, EXISTS (SELECT FROM {{schema}}.tickler_fires f WHERE {_SAME_LEASE})
    FROM lease WHERE {_UNCHANGED}
"""
_ANY_WAITS = "SELECT EXISTS (SELECT FROM {schema}.tickler_fires WHERE state = 'waiting')"
_WAKE = """
    UPDATE {schema}.tickler_fires f SET
        state = 'open', opened_at = greatest($3, f.nominal_at), deliver_after = greatest($3, f.nominal_at)
    FROM (
        SELECT DISTINCT ON (w.owner, w.key) w.owner, w.key, w.id
        FROM unnest($1::text[], $2::text[]) AS settled (owner, key)
        JOIN {schema}.tickler_fires w ON w.owner = settled.owner AND w.key = settled.key AND w.state = 'waiting'
        WHERE NOT EXISTS (
            SELECT FROM {schema}.tickler_fires o WHERE o.owner = w.owner AND o.key = w.key AND o.state = 'open'
        )
        ORDER BY w.owner, w.key, w.nominal_at
    ) AS first
    WHERE f.owner = first.owner AND f.key = first.key AND f.id = first.id
"""
# Locks schedules first, in the same order as deletions do.
_LOCK_SCHEDULES = """
    SELECT FROM {schema}.tickler_schedules s
    JOIN unnest($1::text[], $2::text[]) AS wanted (owner, key) ON s.owner = wanted.owner AND s.key = wanted.key
    ORDER BY s.owner, s.key FOR UPDATE OF s
"""
_DELETE_FINISHED = f"""
    WITH gone AS (
        DELETE FROM {{schema}}.tickler_schedules s USING unnest($1::text[], $2::text[]) AS wanted (owner, key)
        WHERE s.owner = wanted.owner AND s.key = wanted.key AND {IS_OVER}
        RETURNING s.owner, s.key
    )
    DELETE FROM {{schema}}.tickler_aside a USING gone WHERE a.owner = gone.owner AND a.key = gone.key
"""
_OPEN_ONE = """
    INSERT INTO {schema}.tickler_fires (id, owner, key, nominal_at, opened_at, attempt, state, deliver_after, worker, reason)
    SELECT $1, s.owner, s.key, $4, $5, $6, $7, $8, $9, $10
    FROM {schema}.tickler_schedules s WHERE s.owner = $2 AND s.key = $3 FOR SHARE
    ON CONFLICT DO NOTHING
"""
_CAN_OPEN = """
    SELECT EXISTS (SELECT FROM {schema}.tickler_schedules WHERE owner = $1 AND key = $2)
        AND NOT EXISTS (SELECT FROM {schema}.tickler_fires WHERE owner = $1 AND key = $2 AND id = $3)
"""
_HEALTH = """
    SELECT wanted.owner, wanted.key, last.entry, EXISTS (
        SELECT FROM {schema}.tickler_fires f WHERE f.owner = wanted.owner AND f.key = wanted.key AND f.state = 'dead'
    )
    FROM unnest($1::text[], $2::text[]) AS wanted (owner, key)
    LEFT JOIN LATERAL (
        SELECT h.entry FROM {schema}.tickler_history h
        WHERE h.owner = wanted.owner AND h.key = wanted.key ORDER BY h.at DESC, h.number DESC LIMIT 1
    ) AS last ON true
"""
_PEEK = """
    (SELECT owner, key, next_fire_at AS at, NULL::text AS id FROM {schema}.tickler_index
        WHERE has_target AND next_fire_at <= $1 ORDER BY next_fire_at LIMIT $2)
    UNION ALL
    (SELECT owner, key, deliver_after, id FROM {schema}.tickler_fires
        WHERE deliver_after <= $1 ORDER BY deliver_after LIMIT $2)
    ORDER BY at LIMIT $2
"""
_PRUNE = """
    DELETE FROM {schema}.tickler_history h USING (
        SELECT owner, key, at, number FROM {schema}.tickler_history
        WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ) AS over
    WHERE h.owner = over.owner AND h.key = over.key AND h.at = over.at AND h.number = over.number
"""
T = TypeVar("T")

EXTEND_TRIES = 3
LOCKED_PAUSE_S = 0.02


class PostgresFires(sql_fires.SqlFireReads):
    def __init__(self, database: Pool, index: PostgresIndex) -> None:
        super().__init__(database)
        self._database = database
        self._index = index
        self._healths = RequestBatcher(self._health_together)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        sql, now_ms = self._database.sql, request.now_ms
        others = list(request.except_owners)

        async def work(connection: Connection) -> list[Claim]:
            claimed: list[Claim] = []
            left, budget = request.limit, ByteBudget(request.max_bytes)
            while left > 0:
                order = (request.until_ms, ROW_FORMAT, left, others, budget.left, budget.is_unused)
                due = [DueSchedule(*row) for row in await connection.fetch(sql(SELECT_DUE), *order)]
                batch = ClaimBatch(due, request, left)
                opened = batch.open(await self._busy(connection, batch.exclusive))
                claimed += await self._advance_and_open(connection, batch.advance, opened)
                await record(connection, self._database, opened.entries, request.expires_at)
                left -= batch.size
                if not batch.advance.problems:
                    break
                budget.fitting(due, _body_bytes)
                budget = budget if claimed else ByteBudget(request.max_bytes)
            if left > 0 and await connection.fetchval(sql(_NEWER_IS_DUE), now_ms, ROW_FORMAT):
                await self._index.report_outdated(connection, now_ms)
            return claimed

        return await self._database.claim(work)

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        async def work(connection: Connection) -> list[Claim]:
            budget, others = ByteBudget(request.max_bytes), list(request.except_owners)
            order = (request.now_ms, request.limit, request.expired, others, request.head_start_ms)
            found = await connection.fetch(self._database.sql(_OPEN_SINCE), *order)
            sized = [(read_fire(row), size or 0) for *row, size in found]
            due = [fire for fire, _ in budget.fitting_by_name(sized, lambda each: each[1], lambda each: each[0].schedule_id)]
            if not due:
                return []
            stored = await schedules.read(connection, self._database, sorted({fire.schedule_id for fire in due}))
            result = lease(((fire, stored.get(fire.schedule_id)) for fire in due), request)
            await self._apply(connection, result, request.now_ms)
            await record(connection, self._database, result.entries, request.expires_at)
            return result.claims

        return await self._database.claim(work)

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        """Repeat for locked fires a few times: most locks last for milliseconds."""
        lost: list[Fire] = []
        left: Sequence[Fire] = fires
        for attempt in range(EXTEND_TRIES):
            if not left:
                break
            if attempt:
                await asyncio.sleep(LOCKED_PAUSE_S)
            gone, left = await self._extend(left, until_ms)
            lost += gone
        return Extension(lost, left)

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        entries = [each.entry for each in settlements if each.entry is not None]
        owed = _in_order([(each.fire, each) for each in settlements if each.fire is not None])
        deleted = sorted({each.id for each in settlements if each.delete_schedule})
        sql = self._database.sql

        async def work(connection: Connection) -> list[Fire]:
            if deleted:
                await connection.execute(sql(_LOCK_SCHEDULES), *transposed(deleted))
            await record(connection, self._database, entries, expires_at)
            lost = await self._delete_done(connection, [fire for fire, each in owed if each.then == "done"])
            for then in {each.then for _, each in owed} - {"done"}:
                leases = [_settled(each, fire, now_ms) for fire, each in owed if each.then == then]
                lost |= await self._settle(connection, then, leases)
            await self._wake(connection, (each.id for _, each in owed if ends_fire(each)), now_ms)
            if deleted:
                await connection.execute(sql(_DELETE_FINISHED), *transposed(deleted))
            return [fire for fire, _ in owed if (fire.id, fire.holder, fire.attempt) in lost]

        return await self._database.claim(work)

    async def open(self, fire: Fire, entry: Entry | None = None, *, expires_at: int = 0, using: object = None) -> bool:
        async def work(connection: Connection) -> bool:
            opened: bool = await connection.execute(self._database.sql(_OPEN_ONE), *fire_columns(fire)) == "INSERT 0 1"
            if opened:
                await record(connection, self._database, [] if entry is None else [entry], expires_at)
                await self._database.notify(connection)
            return opened

        if not isinstance(using, UnitOfWork):
            return await self._database.write(work, using)
        ((can_open,),) = await self._fetch(_CAN_OPEN, *fire.schedule_id, fire.id)
        if not can_open:
            return False
        await using.join(self._database, [fire.schedule_id])

        async def part(connection: Connection) -> None:
            if not await work(connection):
                raise TransactionConflict(f"the schedule {fire.schedule_id}")

        using.add(part)
        return True

    async def change(
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = MANUALLY
    ) -> Fire | None:
        async def work(connection: Connection) -> Fire | None:
            fire = await self._get(connection, fire_id, "FOR UPDATE")
            decided = change(fire, to, now_ms, why)
            if fire is None or decided is None:
                return None
            await self._database.notify(connection)
            if decided.after is None:
                await connection.execute(self._database.sql(_CANCEL), [fire.owner], [fire.key], [fire.id])
                await self._wake(connection, [fire.schedule_id], now_ms)
            else:
                await connection.execute(self._database.sql(_REOPEN), *fire.schedule_id, fire.id, now_ms)
            await record(connection, self._database, [decided.entry], expires_at)
            return fire

        return await self._database.write(work)

    async def get(self, fire_id: str) -> Fire | None:
        return await self._database.read(lambda connection: self._get(connection, fire_id))

    async def health(self, ids: Sequence[Id]) -> dict[Id, Health]:
        if len(ids) == 1:
            return {ids[0]: await self._healths.ask(ids[0])}
        return await self._health_of(ids)

    async def _health_together(self, ids: Sequence[Id]) -> list[Health]:
        found = await self._health_of(list(dict.fromkeys(ids)))
        return [found[id] for id in ids]

    async def _health_of(self, ids: Sequence[Id]) -> dict[Id, Health]:
        found = await self._fetch(_HEALTH, *transposed(ids)) if ids else []
        return {Id(owner, key): sql_fires.health_of(entry, dead) for owner, key, entry, dead in found}

    async def peek(self, due_by: int, limit: int) -> list[DueItem]:
        return [DueItem(*row) for row in await self._fetch(_PEEK, due_by, limit)]

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        sql = self._database.sql(_PRUNE)
        status = await self._database.write(lambda connection: connection.execute(sql, now_ms, limit))
        return int(status.rpartition(" ")[2])

    async def _advance_and_open(self, connection: Connection, advance: AdvancePlan, opened: OpenPlan) -> Sequence[Claim]:
        """Advance rows, open fires, and return the claims except those whose fire was open already."""
        if not opened.fires:
            await self._index.apply(connection, advance)
            return opened.claims
        await self._index.take_out(connection, advance)
        moved: Sequence[Sequence[object]] = (advance.moved, advance.moved_to)
        refused: set[str] = set()
        for in_common, fires in grouped(opened.fires, of_claim).items():
            arguments = (*transposed(map(of_fire, fires)), *in_common, *moved)
            refused |= {row[0] for row in await connection.fetch(self._database.sql(ADVANCE_AND_OPEN), *arguments)}
            moved = ([], [])
        return opened.claimed([fire.id for fire in opened.fires if fire.id not in refused]) if refused else opened.claims

    async def _extend(self, fires: Sequence[Fire], until_ms: int) -> tuple[Sequence[Fire], Sequence[Fire]]:
        """Return fires whose lease is no longer the caller's, and fires that were locked."""
        leases = transposed([lease_of(fire, until_ms) for fire, _ in _in_order([(fire, None) for fire in fires])])
        sql = self._database.sql(_EXTEND)
        found = await self._database.claim(lambda connection: connection.fetch(sql, *leases))
        still = {(id, holder, attempt): is_held for id, holder, attempt, is_held in found}
        named = [(fire, still.get((fire.id, fire.holder, fire.attempt))) for fire in fires]
        return [fire for fire, is_held in named if is_held is False], [fire for fire, is_held in named if is_held]

    async def _settle(self, connection: Connection, then: str, leases: Sequence[Sequence[object]]) -> set[tuple[str, str, int]]:
        """Settle leases; return id, holder and attempt of those that are no longer the caller's."""
        return {tuple(row) for row in await connection.fetch(self._database.sql(_SETTLE[then]), *transposed(leases))}

    async def _delete_done(self, connection: Connection, fires: Sequence[Fire]) -> set[tuple[str, str, int]]:
        """Delete fires that are done; return id, holder and attempt of those that are no longer the caller's."""
        lost: set[tuple[str, str, int]] = set()
        for held, done in grouped(fires, of_lease).items():
            found = await connection.fetch(self._database.sql(_DONE), *transposed(map(of_place, done)), *held)
            lost |= {(id, *held) for (id,) in found}
        return lost

    async def _apply(self, connection: Connection, result: LeasePlan, now_ms: int) -> None:
        changed = [*result.dead, *(claim.fire for claim in result.claims if claim.fire is not None)]
        if changed:
            columns = [
                (fire.owner, fire.key, fire.id, fire.attempt, fire.state, fire.deliver_after, fire.holder, fire.reason)
                for fire in changed
            ]
            await connection.execute(self._database.sql(_LEASE), *transposed(columns))
        if result.cancelled:
            gone = [(fire.owner, fire.key, fire.id) for fire in result.cancelled]
            await connection.execute(self._database.sql(_CANCEL), *transposed(gone))
        if result.dead:
            await self._wake(connection, (fire.schedule_id for fire in result.dead), now_ms)

    async def _wake(self, connection: Connection, ids: Iterable[Id], now_ms: int) -> None:
        """Open the earliest waiting fire of each schedule, unless another is open. Usually nothing waits."""
        if await connection.fetchval(self._database.sql(_ANY_WAITS)) and (wanted := sorted(set(ids))):
            await connection.execute(self._database.sql(_WAKE), *transposed(wanted), now_ms)

    async def _busy(self, connection: Connection, ids: Sequence[Id]) -> set[Id]:
        """Return those of `ids` that have an open or waiting fire."""
        if not ids:
            return set()
        return {Id(*row) for row in await connection.fetch(self._database.sql(_BUSY), *transposed(ids))}

    async def _get(self, connection: Connection, fire_id: str, lock: str = "") -> Fire | None:
        """Find a fire by its id alone, which scans all fires: for people, not for workers."""
        sql = self._database.sql(f"SELECT {FIRE} FROM {{schema}}.tickler_fires f WHERE f.id = $1 {lock}")
        row = await connection.fetchrow(sql, fire_id)
        return None if row is None else read_fire(row)


def _settled(settlement: Settlement, fire: Fire, now_ms: int) -> Lease:
    """PostgreSQL text cannot contain NUL."""
    lease = settled_lease(settlement, fire, now_ms)
    return lease if lease.reason is None else lease._replace(reason=lease.reason.replace("\0", "\ufffd"))


def _body_bytes(row: DueSchedule) -> int:
    return len(row.body if isinstance(row.body, bytes) else row.body.encode())


def _in_order(fires: Sequence[tuple[Fire, T]]) -> list[tuple[Fire, T]]:
    """Sort fires, so that two transactions that change the same ones cannot deadlock."""
    return sorted(fires, key=lambda each: (each[0].owner, each[0].key, each[0].id))
