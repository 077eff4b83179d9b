"""Who listens to the workers of a process: each on its own, so that one that fails disturbs neither work nor others."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tickler.model.delivery import Listener, Outcome
from tickler.model.fire import Claim, Settlement

log = logging.getLogger("tickler.deliver")


class Listeners:
    """Passes on what it is told; those who begin to listen later are told from then on."""

    def __init__(self, listeners: Sequence[Listener] = ()) -> None:
        self._listeners = listeners
        self.own: list[Listener] = []  # of one worker

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        for listener in (*self._listeners, *self.own):
            try:
                listener.round_ended(at_ms, seconds, claimed)
            except Exception:
                log.exception("what listens to rounds failed; the work is not affected")

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        for listener in (*self._listeners, *self.own):
            try:
                listener.attempt_ended(claim, settlement, outcome)
            except Exception:
                log.exception("%s: what listens to attempts failed; the delivery is not affected", claim.schedule.id)
