"""Fires and their history in SQLite."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Literal

from tickler.database.sqlite.connection import Connection
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict
from tickler.fires.byte_budget import ByteBudget
from tickler.fires.claim import ClaimBatch
from tickler.fires.contract import ClaimRequest, LeaseRequest
from tickler.fires.lease import LeasePlan, lease
from tickler.fires.settle import change, ends_fire
from tickler.index.advance import ROW_FORMAT
from tickler.model.fire import MANUALLY, RELEASED, Claim, DueItem, Entry, Extension, Fire, Health, Settlement
from tickler.model.schedule import Id
from tickler.stores.sql import fires as sql_fires
from tickler.stores.sql.fires import (
    FIRE,
    IS_OVER,
    SAME_LEASE,
    SETTLED,
    grouped,
    lease_of,
    of_claim,
    of_fire,
    of_lease,
    of_place,
    read_fire,
    settled_lease,
)
from tickler.stores.sqlite import rows, schedules
from tickler.stores.sqlite.due import read_due
from tickler.stores.sqlite.index import SqliteIndex, apply

_OTHER_OWNERS = "AND f.owner NOT IN (SELECT value FROM json_each(?))"
_HEAD_START = f"AND (f.reason IS NULL OR f.reason NOT LIKE '{RELEASED}%' OR f.deliver_after <= ?)"
_NEWER_IS_DUE = "SELECT 1 FROM tickler_index WHERE has_target = 1 AND next_fire_at <= ? AND format > ? LIMIT 1"

# What the fires of a claim have in common is bound once, and not read from JSON for each of them.
OPEN = f"""
    INSERT INTO tickler_fires (opened_at, attempt, state, deliver_after, worker, reason, id, owner, key, nominal_at)
    SELECT ?, ?, ?, ?, ?, ?, {rows.from_json(4)} FROM json_each(?) WHERE true ON CONFLICT DO NOTHING
"""
_BUSY = f"""
    SELECT DISTINCT s.owner, s.key FROM {rows.WANTED}
    CROSS JOIN tickler_fires s ON {rows.WANTED_ID} WHERE s.state <> 'dead'
"""
_OPEN_SINCE = f"SELECT {FIRE} FROM tickler_fires f WHERE f.deliver_after <= ? {{which}} ORDER BY f.deliver_after LIMIT ?"
_LEASE = """
    UPDATE tickler_fires SET attempt = ?, state = ?, deliver_after = ?, worker = ?, reason = ?
    WHERE owner = ? AND key = ? AND id = ?
"""
_REOPEN = """
    UPDATE tickler_fires SET opened_at = ?, attempt = 0, state = 'open', deliver_after = ?, worker = NULL, reason = NULL
    WHERE owner = ? AND key = ? AND id = ?
"""
_OF_LEASE = "WHERE " + re.sub(r"{(\w+)}", r":\1", SAME_LEASE)
_CANCEL = "DELETE FROM tickler_fires WHERE owner = ? AND key = ? AND id = ?"
_ALL_DONE = f"""
    DELETE FROM tickler_fires
    WHERE (owner, key, id) IN (SELECT {rows.from_json(3)} FROM json_each(?)) AND worker = ? AND attempt = ?
"""
_EXTEND = f"UPDATE tickler_fires AS f SET deliver_after = :deliver_after {_OF_LEASE}"
_SETTLE = {
    then: f"UPDATE tickler_fires AS f SET {changed.format(deliver_after=':deliver_after', reason=':reason')} {_OF_LEASE}"
    for then, changed in SETTLED.items()
} | {"done": f"DELETE FROM tickler_fires AS f {_OF_LEASE}"}
_WAKE = """
    UPDATE tickler_fires AS f SET state = 'open', opened_at = max(?, nominal_at), deliver_after = max(?, nominal_at)
    WHERE owner = ? AND key = ? AND state = 'waiting'
        AND nominal_at = (SELECT min(nominal_at) FROM tickler_fires WHERE owner = f.owner AND key = f.key AND state = 'waiting')
        AND NOT EXISTS (SELECT 1 FROM tickler_fires WHERE owner = f.owner AND key = f.key AND state = 'open')
"""
_DELETE_FINISHED = f"DELETE FROM tickler_schedules AS s WHERE s.owner = ? AND s.key = ? AND {IS_OVER}".replace("{schema}.", "")
_CAN_OPEN = """
    SELECT EXISTS (SELECT 1 FROM tickler_schedules WHERE owner = ? AND key = ?),
        EXISTS (SELECT 1 FROM tickler_fires WHERE owner = ? AND key = ? AND id = ?)
"""
# In the order of the given list.
_HEALTH = """
    SELECT
        (
            SELECT h.entry FROM tickler_history h
            WHERE h.owner = json_extract(wanted.value, '$[0]') AND h.key = json_extract(wanted.value, '$[1]')
            ORDER BY h.at DESC, h.number DESC LIMIT 1
        ),
        EXISTS (
            SELECT 1 FROM tickler_fires f
            WHERE f.owner = json_extract(wanted.value, '$[0]') AND f.key = json_extract(wanted.value, '$[1]') AND f.state = 'dead'
        )
    FROM json_each(?) AS wanted ORDER BY wanted.key
"""
_PEEK = """
    SELECT * FROM (
        SELECT owner, key, next_fire_at AS at, NULL AS id FROM tickler_index
        WHERE has_target = 1 AND next_fire_at <= $1 ORDER BY next_fire_at LIMIT $2
    )
    UNION ALL SELECT * FROM (
        SELECT owner, key, deliver_after, id FROM tickler_fires WHERE deliver_after <= $1 ORDER BY deliver_after LIMIT $2
    )
    ORDER BY at LIMIT $2
"""
_PRUNE = """
    DELETE FROM tickler_history
    WHERE number IN (SELECT number FROM tickler_history WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
"""


class SqliteFires(sql_fires.SqlFireReads):
    def __init__(self, connection: Connection, index: SqliteIndex) -> None:
        super().__init__(connection)
        self._connection = connection
        self._index = index

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        now_ms = request.now_ms

        def work(connection: sqlite3.Connection) -> list[Claim]:
            claimed: list[Claim] = []
            left, budget = request.limit, ByteBudget(request.max_bytes)
            while left > 0:
                due = read_due(connection, request.until_ms, left, request.except_owners, budget)
                batch = ClaimBatch(due, request, left)
                apply(connection, batch.advance)
                opened = batch.open(_busy(connection, batch.exclusive))
                claimed += opened.claimed(_opened(connection, opened.fires))
                rows.record(connection, opened.entries, request.expires_at)
                left -= batch.size
                if not batch.advance.problems:
                    break
                budget = budget if claimed else ByteBudget(request.max_bytes)
            if left > 0 and connection.execute(_NEWER_IS_DUE, (now_ms, ROW_FORMAT)).fetchone():
                self._index.report_outdated(connection, now_ms)
            return claimed

        return await self._connection.write(work)

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        now_ms = request.now_ms
        which = [_OTHER_OWNERS] if request.except_owners else []
        which += [] if request.expired else ["AND f.worker IS NULL"]
        which += [_HEAD_START] if request.head_start_ms else []
        query = _OPEN_SINCE.format(which=" ".join(which))
        others: list[object] = [rows.as_json(list(request.except_owners))] if request.except_owners else []
        others += [now_ms - request.head_start_ms] if request.head_start_ms else []

        def work(connection: sqlite3.Connection) -> list[Claim]:
            due = [read_fire(row) for row in connection.execute(query, (now_ms, *others, request.limit)).fetchall()]
            if not due:
                return []
            ids = list(dict.fromkeys(fire.schedule_id for fire in due))
            stored, left = schedules.read_within(ByteBudget(request.max_bytes), connection, ids)
            taken = takewhile(lambda fire: fire.schedule_id not in left, due)
            result = lease(((fire, stored.get(fire.schedule_id)) for fire in taken), request)
            _apply_leases(connection, result, now_ms)
            rows.record(connection, result.entries, request.expires_at)
            return result.claims

        return await self._connection.write(work)

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        def work(connection: sqlite3.Connection) -> Extension:
            leases = [(fire, lease_of(fire, until_ms)._asdict()) for fire in fires]
            return Extension([fire for fire, lease in leases if not connection.execute(_EXTEND, lease).rowcount])

        return await self._connection.write(work)

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        def work(connection: sqlite3.Connection) -> list[Fire]:
            rows.record(connection, [each.entry for each in settlements if each.entry is not None], expires_at)
            lost = _settle_all(connection, [(each, each.fire) for each in settlements if each.fire is not None], now_ms)
            _wake(connection, (each.id for each in settlements if ends_fire(each)), now_ms)
            for each in settlements:
                if each.delete_schedule and connection.execute(_DELETE_FINISHED, each.id).rowcount:
                    rows.leave(connection, [each.id])
            return lost

        return await self._connection.write(work)

    async def open(self, fire: Fire, entry: Entry | None = None, *, expires_at: int = 0, using: object = None) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            if not _can_open(connection, fire) or _open(connection, [fire]) == 0:
                return False
            rows.record(connection, [] if entry is None else [entry], expires_at)
            return True

        if not isinstance(using, UnitOfWork):
            return await self._connection.write(work, using)
        if not await self._connection.read(lambda connection: _can_open(connection, fire)):
            return False
        await using.join(self._connection, [fire.schedule_id])

        def part(connection: sqlite3.Connection) -> None:
            if not work(connection):
                raise TransactionConflict(f"the schedule {fire.schedule_id}")

        using.add(part)
        return True

    async def change(
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = MANUALLY
    ) -> Fire | None:
        def work(connection: sqlite3.Connection) -> Fire | None:
            fire = _get(connection, fire_id)
            decided = change(fire, to, now_ms, why)
            if fire is None or decided is None:
                return None
            if decided.after is None:
                connection.execute(_CANCEL, (*fire.schedule_id, fire.id))
                _wake(connection, [fire.schedule_id], now_ms)
            else:
                connection.execute(_REOPEN, (now_ms, now_ms, *fire.schedule_id, fire.id))
            rows.record(connection, [decided.entry], expires_at)
            return fire

        return await self._connection.write(work)

    async def get(self, fire_id: str) -> Fire | None:
        return await self._connection.read(lambda connection: _get(connection, fire_id))

    async def health(self, ids: Sequence[Id]) -> dict[Id, Health]:
        found = await self._connection.read(lambda connection: connection.execute(_HEALTH, (rows.as_json(ids),)).fetchall())
        return {id: sql_fires.health_of(*row) for id, row in zip(ids, found, strict=True)}

    async def peek(self, due_by: int, limit: int) -> list[DueItem]:
        return [DueItem(*row) for row in await self._fetch(_PEEK, due_by, limit)]

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        due = "SELECT 1 FROM tickler_history WHERE expires_at <= ? LIMIT 1"
        if not await self._connection.read(lambda connection: connection.execute(due, (now_ms,)).fetchone()):
            return 0  # without taking the write lock
        return await self._connection.write(lambda connection: connection.execute(_PRUNE, (now_ms, limit)).rowcount)


def _can_open(connection: sqlite3.Connection, fire: Fire) -> bool:
    known, is_open = connection.execute(_CAN_OPEN, (*fire.schedule_id, *fire.schedule_id, fire.id)).fetchone()
    return bool(known and not is_open)


def _open(connection: sqlite3.Connection, fires: Sequence[Fire]) -> int:
    """Open fires, and return how many were not open already."""
    groups = grouped(fires, of_claim).items()
    return sum(
        connection.execute(OPEN, (*in_common, rows.as_json([of_fire(fire) for fire in group]))).rowcount
        for in_common, group in groups
    )


def _opened(connection: sqlite3.Connection, fires: Sequence[Fire]) -> set[str]:
    """Open fires, and return the ids of those that were not open already."""
    if _open(connection, fires) == len(fires):
        return {fire.id for fire in fires}
    return {fire.id for fire in fires if _get(connection, fire.id) == fire}


def _settle_all(connection: sqlite3.Connection, owed: Sequence[tuple[Settlement, Fire]], now_ms: int) -> list[Fire]:
    """Settle fires, and return those whose lease is no longer the caller's."""
    if not owed:
        return []
    if all(each.then == "done" for each, _ in owed):  # the usual case, faster in one statement
        connection.execute("SAVEPOINT settling")
        groups = grouped((fire for _, fire in owed), of_lease).items()
        done = ((rows.as_json([of_place(fire) for fire in fires]), *held) for held, fires in groups)
        if sum(connection.execute(_ALL_DONE, each).rowcount for each in done) == len(owed):
            connection.execute("RELEASE settling")
            return []
        connection.execute("ROLLBACK TO settling")
        connection.execute("RELEASE settling")
    return [fire for each, fire in owed if not _settle(connection, each, fire, now_ms)]


def _settle(connection: sqlite3.Connection, settlement: Settlement, fire: Fire, now_ms: int) -> bool:
    """Change a fire if its lease is still the caller's."""
    lease = settled_lease(settlement, fire, now_ms)._asdict()
    return connection.execute(_SETTLE[settlement.then], lease).rowcount == 1


def _apply_leases(connection: sqlite3.Connection, result: LeasePlan, now_ms: int) -> None:
    changed = [*result.dead, *(claim.fire for claim in result.claims if claim.fire is not None)]
    connection.executemany(
        _LEASE,
        [
            (fire.attempt, fire.state, fire.deliver_after, fire.holder, fire.reason, *fire.schedule_id, fire.id)
            for fire in changed
        ],
    )
    connection.executemany(_CANCEL, [(*fire.schedule_id, fire.id) for fire in result.cancelled])
    _wake(connection, [fire.schedule_id for fire in result.dead], now_ms)


def _wake(connection: sqlite3.Connection, ids: Iterable[Id], now_ms: int) -> None:
    """Open the earliest waiting fire of each schedule, unless another is open. Usually nothing waits."""
    if connection.execute("SELECT 1 FROM tickler_fires WHERE state = 'waiting' LIMIT 1").fetchone():
        connection.executemany(_WAKE, [(now_ms, now_ms, *id) for id in ids])


def _busy(connection: sqlite3.Connection, ids: Sequence[Id]) -> set[Id]:
    """Return those of `ids` that have an open or waiting fire."""
    return {Id(*row) for row in connection.execute(_BUSY, (rows.as_json(ids),))} if ids else set()


def _get(connection: sqlite3.Connection, fire_id: str) -> Fire | None:
    """Find a fire by its id alone, which scans all fires: for people, not for workers."""
    row = connection.execute(f"SELECT {FIRE} FROM tickler_fires f WHERE f.id = ?", (fire_id,)).fetchone()
    return None if row is None else read_fire(row)
