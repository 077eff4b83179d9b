"""Logs attempts that failed."""

from __future__ import annotations

import logging

from tickler.deliver.log_throttle import ThrottledLog
from tickler.model.fire import Claim, Settlement

log = logging.getLogger("tickler.deliver")


class FailureLog:
    """Throttled: thousands of attempts may fail in a second."""

    def __init__(self) -> None:
        self._dead = ThrottledLog(log, logging.WARNING, "and %d more are dead")
        self._retried = ThrottledLog(log, logging.INFO, "and %d more failed")

    def log(self, claim: Claim, settlement: Settlement) -> None:
        id, fire, entry = claim.schedule.id, claim.fire, settlement.entry
        attempt = 1 if fire is None else fire.attempt
        why = (entry.detail if entry else None) or "unknown reason"
        extra = {"fire_id": entry.fire_id if entry else None, "owner": id.owner, "key": id.key, "attempt": attempt}
        if fire is None:
            self._dead.log("%s was not delivered and is not retried: %s", id, why, extra=extra)
        elif settlement.then == "dead":
            text = "%s is dead after attempt %d: %s (`tickler retry %s` sends it again)"
            self._dead.log(text, id, attempt, why, fire.id, extra=extra)
        else:
            self._retried.log("%s failed at attempt %d and is retried: %s", id, attempt, why, extra=extra)

    def log_suppressed(self) -> None:
        self._dead.log_suppressed()
        self._retried.log_suppressed()
