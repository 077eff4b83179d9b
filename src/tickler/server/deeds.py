"""Who did what, remembered by whatever does it for them."""

from __future__ import annotations

import logging

from tickler.errors import TicklerError
from tickler.server.service import Asked, caller, service_of

log = logging.getLogger("tickler.server")


async def note(request: Asked, did: str, *, owner: str | None = None, key: str | None = None, detail: str | None = None) -> None:
    """After the deed: it was done, which whoever asked has to know, also if it cannot be remembered."""
    who, audit = caller(request), service_of(request).tickler.audit
    try:
        await audit.note(who.name, did, owner=owner, key=key, detail=detail, token_id=who.token_id)
    except TicklerError as error:
        log.warning(
            "that %s has %s %s could not be remembered: %s", who.name, did, f"{owner}/{key}" if key else owner or "", error
        )
