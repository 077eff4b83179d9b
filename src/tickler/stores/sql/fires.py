"""Columns of a fire, and what a settlement changes of them, as both SQL stores write it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from tickler.fires.settle import settled_reason
from tickler.model.fire import Fire, Settlement, read_holder

FIRE = "f.id, f.owner, f.key, f.nominal_at, f.opened_at, f.attempt, f.state, f.deliver_after, f.worker, f.reason"
fire_columns = attrgetter(
    "id", "owner", "key", "nominal_at", "opened_at", "attempt", "state", "deliver_after", "holder", "reason"
)

# The guard of every change to a leased fire; the column `worker` holds the lease token too.
SAME_LEASE = "f.owner = {owner} AND f.key = {key} AND f.id = {id} AND f.worker = {worker} AND f.attempt = {attempt}"
SETTLED = {
    "retry": "deliver_after = {deliver_after}, worker = NULL, reason = {reason}",
    "dead": "state = 'dead', deliver_after = NULL, worker = NULL, reason = {reason}",
    "release": """
        deliver_after = {deliver_after}, worker = NULL, attempt = f.attempt - 1, reason = coalesce({reason}, f.reason)
    """,
}
# A schedule `s` that is finished and owes nothing.
IS_OVER = """
    s.enabled
    AND EXISTS (SELECT 1 FROM {schema}.tickler_aside a WHERE a.owner = s.owner AND a.key = s.key AND a.state = 'finished')
    AND NOT EXISTS (SELECT 1 FROM {schema}.tickler_index i WHERE i.owner = s.owner AND i.key = s.key)
    AND NOT EXISTS (SELECT 1 FROM {schema}.tickler_fires f WHERE f.owner = s.owner AND f.key = s.key)
"""


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
