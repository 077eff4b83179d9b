"""Sending dead fires again, together: so many at once, and everybody whose they are is told."""

from __future__ import annotations

from tickler.fires.fires import Retried
from tickler.server.audit_log import AffectedOwners, record, record_many
from tickler.server.context import HttpRequest, caller, service_of

MAX_RETRIED = 1_000  # fires that one request sends again


async def retry_dead(request: HttpRequest, owner: str | None, key: str | None = None) -> Retried:
    """Of a schedule, of an owner or of all; the earliest first."""
    fires = service_of(request).tickler.fires
    retried = await fires.retry_many(owner=owner, key=key, by=caller(request).name, most=MAX_RETRIED)
    detail = f"{retried.count} fires"
    if owner is not None:
        await record(request, "retried all", owner=owner, key=key, detail=detail)
        return retried
    touched = AffectedOwners()
    for each, count in retried.by_owner.items():
        touched.add(each, count)
    await record_many(request, "retried all", touched, detail)
    return retried
