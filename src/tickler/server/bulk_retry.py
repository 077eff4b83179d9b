"""Retries dead fires in bulk, and records it in the audit log of every owner concerned."""

from __future__ import annotations

from tickler.fires.fires import Retried
from tickler.server.audit_log import AffectedOwners, record, record_many
from tickler.server.context import HttpRequest, caller_of, context_of

MAX_RETRIED = 1_000  # fires per request


async def retry_dead(request: HttpRequest, owner: str | None, key: str | None = None) -> Retried:
    """Retry the dead fires of a schedule, of an owner or of all owners, earliest first."""
    fires = context_of(request).tickler.fires
    retried = await fires.retry_many(owner=owner, key=key, by=caller_of(request).name, most=MAX_RETRIED)
    detail = f"{retried.count} fires"
    if owner is not None:
        await record(request, "retried all", owner=owner, key=key, detail=detail)
        return retried
    affected = AffectedOwners()
    for affected_owner, count in retried.by_owner.items():
        affected.add(affected_owner, count)
    await record_many(request, "retried all", affected, detail)
    return retried
