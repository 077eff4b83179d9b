"""Columns of a fire, what a settlement changes of them, and reads of fires and their history, as both SQL stores make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from tickler.fires.settle import settled_reason
from tickler.model.cursor import decode_entry_number
from tickler.model.fire import Entry, Fire, FireState, Health, Settlement, read_holder
from tickler.model.schedule import Id
from tickler.stores.sql.database import NO_LIMIT, Database

FIRE = "f.id, f.owner, f.key, f.nominal_at, f.opened_at, f.attempt, f.state, f.deliver_after, f.worker, f.reason"
of_fire = attrgetter("id", "owner", "key", "nominal_at")
of_claim = attrgetter("opened_at", "attempt", "state", "deliver_after", "holder", "reason")  # alike in all that a claim leases
of_place = attrgetter("owner", "key", "id")
of_lease = attrgetter("holder", "attempt")

# The guard of every change to a leased fire; the column `worker` holds the lease token too.
SAME_LEASE = "f.owner = {owner} AND f.key = {key} AND f.id = {id} AND f.worker = {worker} AND f.attempt = {attempt}"
_UNCOUNTED = "deliver_after = {deliver_after}, worker = NULL, attempt = f.attempt - 1, reason = coalesce({reason}, f.reason)"
SETTLED = {
    "retry": "deliver_after = {deliver_after}, worker = NULL, reason = {reason}",
    "dead": "state = 'dead', deliver_after = NULL, worker = NULL, reason = {reason}",
    "release": _UNCOUNTED,
    "postpone": _UNCOUNTED,
}
# A schedule `s` that is finished and owes nothing.
IS_OVER = """
    s.enabled
    AND EXISTS (SELECT 1 FROM {schema}.tickler_aside a WHERE a.owner = s.owner AND a.key = s.key AND a.state = 'finished')
    AND NOT EXISTS (SELECT 1 FROM {schema}.tickler_index i WHERE i.owner = s.owner AND i.key = s.key)
    AND NOT EXISTS (SELECT 1 FROM {schema}.tickler_fires f WHERE f.owner = s.owner AND f.key = s.key)
"""
_HISTORY = """
    SELECT number, entry FROM {schema}.tickler_history
    WHERE owner = $1 AND key = $2 AND (at, number) < ($3, $4) ORDER BY at DESC, number DESC LIMIT $5
"""
_COUNT_EXPIRED = "SELECT count(*) FROM (SELECT 1 FROM {schema}.tickler_history WHERE expires_at <= $1 LIMIT $2) AS expired"

decode_entry = msgspec.json.Decoder(Entry).decode


class Lease(NamedTuple):
    """A lease, and what a change to its fire writes."""

    owner: str
    key: str
    id: str
    worker: str | None
    attempt: int
    deliver_after: int | None = None
    reason: str | None = None


def lease_of(fire: Fire, deliver_after: int | None = None, reason: str | None = None) -> Lease:
    return Lease(fire.owner, fire.key, fire.id, fire.holder, fire.attempt, deliver_after, reason)


def settled_lease(settlement: Settlement, fire: Fire, now_ms: int) -> Lease:
    deliver_after = now_ms if settlement.deliver_after is None else settlement.deliver_after
    return lease_of(fire, deliver_after, settled_reason(settlement))


def fire_columns(fire: Fire) -> tuple[object, ...]:
    """Return the columns `FIRE` of a row."""
    return (*of_fire(fire), *of_claim(fire))


def grouped(fires: Iterable[Fire], in_common: Callable[[Fire], tuple[object, ...]]) -> dict[tuple[Any, ...], list[Fire]]:
    """Return fires by what they have in common. A statement takes that once: an array or JSON costs by the element."""
    groups: dict[tuple[object, ...], list[Fire]] = {}
    for fire in fires:
        groups.setdefault(in_common(fire), []).append(fire)
    return groups


def read_fire(row: Iterable[Any]) -> Fire:
    """Return the fire of a row with the columns `FIRE`."""
    id, owner, key, nominal_at, opened_at, attempt, state, deliver_after, holder, reason = row
    worker, lease_token = (None, None) if holder is None else read_holder(holder)
    return Fire(
        id=id,
        owner=owner,
        key=key,
        nominal_at=nominal_at,
        opened_at=opened_at,
        attempt=attempt,
        state=state,
        deliver_after=deliver_after,
        worker=worker,
        reason=reason,
        lease_token=lease_token,
    )


def health_of(last: str | None, dead: int) -> Health:
    return Health(None if last is None else decode_entry(last), bool(dead))


class SqlFireReads:
    def __init__(self, database: Database) -> None:
        self._fetch = database.fetch

    async def history(self, *, id: Id, before: tuple[int, str] | None, limit: int) -> list[tuple[str, Entry]]:
        place = (NO_LIMIT, NO_LIMIT) if before is None else (before[0], decode_entry_number(before[1]))
        return [(str(number), decode_entry(entry)) for number, entry in await self._fetch(_HISTORY, *id, *place, limit)]

    async def count_expired(self, now_ms: int, most: int) -> int:
        ((count,),) = await self._fetch(_COUNT_EXPIRED, now_ms, most)
        return int(count)

    async def list(
        self, *, state: FireState, id: Id | None, owner: str | None, after: tuple[int, str] | None, limit: int
    ) -> list[Fire]:
        parameters: list[object] = [limit, state]
        sparse = "" if state == "open" else "AND f.state <> 'open'"  # lets the database use the partial index
        query = f"SELECT {FIRE} FROM {{schema}}.tickler_fires f WHERE f.state = $2 {sparse}"
        if id is not None:
            parameters += id
            query += " AND f.owner = $3 AND f.key = $4"
        if owner is not None:
            parameters.append(owner)
            query += f" AND f.owner = ${len(parameters)}"
        if after is not None:
            parameters += after
            query += f" AND (f.nominal_at, f.id) > (${len(parameters) - 1}, ${len(parameters)})"
        return [read_fire(row) for row in await self._fetch(f"{query} ORDER BY f.nominal_at, f.id LIMIT $1", *parameters)]
