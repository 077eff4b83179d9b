"""Records in the audit log what callers changed."""

from __future__ import annotations

import asyncio
import logging

from tickler.errors import TicklerError
from tickler.server.context import HttpRequest, caller_of, context_of

MAX_OWNERS = 1_000  # that get an entry of their own for one bulk action
WRITES_AT_ONCE = 50

log = logging.getLogger("tickler.server")


class AffectedOwners:
    """Counts of a bulk action by owner, for the first `MAX_OWNERS` owners."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.more = False

    def add(self, owner: str, count: int = 1) -> None:
        if owner in self.counts or len(self.counts) < MAX_OWNERS:
            self.counts[owner] = self.counts.get(owner, 0) + count
        else:
            self.more = True


async def record(
    request: HttpRequest, action: str, *, owner: str | None = None, key: str | None = None, detail: str | None = None
) -> None:
    """Record an action that was done. It stays done if recording fails, so the failure is only logged."""
    try:
        await _record(request, action, owner, key, detail)
    except TicklerError as error:
        _log_lost(request, action, error)


async def record_many(request: HttpRequest, action: str, affected: AffectedOwners, detail: str) -> None:
    """Record a bulk action: one entry for all, and one per owner, since a bound token sees only its own."""
    owners = list(affected.counts)
    try:
        if len(owners) < 2:
            await _record(request, action, owners[0] if owners else caller_of(request).owner, None, detail)
            return
        number = f"more than {MAX_OWNERS:,} owners, recorded for the first" if affected.more else f"{len(owners):,} owners"
        await _record(request, action, None, None, f"{detail}, of {number}")
        for start in range(0, len(owners), WRITES_AT_ONCE):
            some = owners[start : start + WRITES_AT_ONCE]
            await asyncio.gather(
                *(_record(request, action, owner, None, f"{affected.counts[owner]:,} of this owner") for owner in some)
            )
    except TicklerError as error:
        _log_lost(request, action, error)


async def _record(request: HttpRequest, action: str, owner: str | None, key: str | None, detail: str | None) -> None:
    caller, audit = caller_of(request), context_of(request).tickler.audit
    await audit.record(caller.name, action, owner=owner, key=key, detail=detail, token_id=caller.token_id)


def _log_lost(request: HttpRequest, action: str, error: TicklerError) -> None:
    log.warning("audit entry lost: %s %s: %s", caller_of(request).name, action, error)
