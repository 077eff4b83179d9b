"""Publishes recent attempts while a dashboard is open."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from tickler.clock import Clock
from tickler.errors import TicklerError
from tickler.model.delivery import Outcome
from tickler.model.fire import Claim, Settlement
from tickler.records.activity import MAX_EVENTS, Event, event_of, is_watched, publish
from tickler.records.contract import RecordStore

UNWATCHED_PAUSE_S = 3.0  # how often an unwatched worker checks whether a dashboard was opened
PUBLISH_PAUSE_S = 0.7

log = logging.getLogger("tickler.deliver")


class ActivityPublisher:
    """Collects the last attempts of a worker, and writes them about once a second; neither while no dashboard is open."""

    def __init__(self, records: RecordStore, clock: Clock, worker: str) -> None:
        self._records = records
        self._clock = clock
        self._worker = worker
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._number = 0
        self._watched = False

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        """Rounds are not published."""

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        if self._watched and settlement.entry is not None:
            self._number += 1
            self._events.append(event_of(settlement.entry))

    async def run(self) -> None:
        """Publish until cancelled."""
        written, looked_at = 0, float("-inf")
        loop = asyncio.get_running_loop()
        while True:
            try:
                if loop.time() - looked_at >= UNWATCHED_PAUSE_S:
                    looked_at = loop.time()
                    self._watched = await is_watched(self._records, self._clock.now_ms())
                if self._number > written:
                    number = self._number
                    await publish(self._records, self._worker, number, self._events, self._clock.now_ms())
                    written = number
            except TicklerError as error:
                log.debug("could not publish recent attempts: %s", error)
            await asyncio.sleep(PUBLISH_PAUSE_S if self._watched else UNWATCHED_PAUSE_S)
