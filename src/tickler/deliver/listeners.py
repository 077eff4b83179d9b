"""Notifies those who listen to a worker: of its rounds, its attempts and their outcomes."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence

from tickler.model.delivery import Delivery, Listener, Outcome
from tickler.model.fire import Claim, Settlement

OnDispatch = Callable[[Delivery, Outcome], Awaitable[None] | None]

log = logging.getLogger("tickler.deliver")


class Listeners:
    """Calls each on its own: one that raises is logged, and disturbs neither the work nor the others.

    Both sequences belong to the caller and may grow: new members are notified from then on.
    """

    def __init__(self, dispatch_callbacks: Sequence[OnDispatch] = (), listeners: Sequence[Listener] = ()) -> None:
        self._dispatch_callbacks = dispatch_callbacks
        self._listeners = listeners
        self._own: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Notify this one too, of this worker alone."""
        self._own.append(listener)

    async def dispatched(self, delivery: Delivery, outcome: Outcome) -> None:
        for callback in self._dispatch_callbacks:
            try:
                answer = callback(delivery, outcome)
                if answer is not None and inspect.isawaitable(answer):  # isawaitable(None) is slow
                    await answer
            except (Exception, SystemExit, asyncio.CancelledError):  # also when cut off: the outcome is known, and is settled
                text = "%s: an on_dispatch callback failed; the delivery is not affected"
                log.exception(text, delivery.id, extra=log_fields(delivery))

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        for listener in (*self._listeners, *self._own):
            try:
                listener.round_ended(at_ms, seconds, claimed)
            except Exception:
                log.exception("a listener failed at the end of a round; the work is not affected")

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        for listener in (*self._listeners, *self._own):
            try:
                listener.attempt_ended(claim, settlement, outcome)
            except Exception:
                log.exception("%s: a listener failed at the end of an attempt; the delivery is not affected", claim.schedule.id)


def log_fields(delivery: Delivery) -> dict[str, object]:
    """Return the fields of a log record about a delivery."""
    return {"fire_id": delivery.id, "owner": delivery.owner, "key": delivery.key, "attempt": delivery.attempt}
