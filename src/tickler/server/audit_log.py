"""Who did what, remembered by whatever does it for them."""

from __future__ import annotations

import asyncio
import logging

from tickler.errors import TicklerError
from tickler.server.context import HttpRequest, caller, service_of

MAX_OWNERS = 1_000  # that are told of one deed to all of them
WRITES_AT_ONCE = 50

log = logging.getLogger("tickler.server")


class AffectedOwners:
    """How much was done to whose, of the first so many owners."""

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
    """After the deed: it was done, which whoever asked has to know, also if it cannot be remembered."""
    try:
        await _record(request, action, owner, key, detail)
    except TicklerError as error:
        _say_forgotten(request, action, error)


async def record_many(request: HttpRequest, action: str, touched: AffectedOwners, detail: str) -> None:
    """Of what was done to many owners at once: for all, and for each of them, who sees nothing but their own."""
    owners = list(touched.counts)
    try:
        if len(owners) < 2:
            await _record(request, action, owners[0] if owners else caller(request).owner, None, detail)
            return
        number = f"more than {MAX_OWNERS:,} owners, of whom the first are told" if touched.more else f"{len(owners):,} owners"
        await _record(request, action, None, None, f"{detail}, of {number}")
        for start in range(0, len(owners), WRITES_AT_ONCE):
            some = owners[start : start + WRITES_AT_ONCE]
            await asyncio.gather(
                *(_record(request, action, owner, None, f"{touched.counts[owner]:,} of theirs") for owner in some)
            )
    except TicklerError as error:
        _say_forgotten(request, action, error)


async def _record(request: HttpRequest, action: str, owner: str | None, key: str | None, detail: str | None) -> None:
    who, audit = caller(request), service_of(request).tickler.audit
    await audit.record(who.name, action, owner=owner, key=key, detail=detail, token_id=who.token_id)


def _say_forgotten(request: HttpRequest, action: str, error: TicklerError) -> None:
    log.warning("that %s has %s something could not be remembered: %s", caller(request).name, action, error)
