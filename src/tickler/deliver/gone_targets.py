"""Pauses a schedule whose target is gone for good."""

from __future__ import annotations

import logging

from tickler.errors import TicklerError
from tickler.model.fire import Claim
from tickler.schedules.schedules import Schedules

log = logging.getLogger("tickler.deliver")


async def pause_schedule(schedules: Schedules, claim: Claim, reason: str) -> None:
    """Pause it, unless it was changed meanwhile or is not active."""
    owner, key = claim.schedule.id
    try:
        stored = await schedules.get(owner, key)
        if stored is None or stored.state != "active" or stored.version != claim.schedule.version:
            return
        await schedules.pause(owner, key, reason=reason)
    except TicklerError as error:
        log.warning("could not pause %s, although %s: %s", claim.schedule.id, reason, error)
    else:
        log.warning("paused %s: %s", claim.schedule.id, reason)
