"""Streams delivery attempts to subscribers, from this process's worker and from workers elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from tickler.clock import Clock
from tickler.errors import TicklerError
from tickler.model.delivery import Outcome
from tickler.model.fire import Claim, Settlement
from tickler.records.activity import Event, event_of, mark_watched, read_activity
from tickler.records.contract import RecordStore

MAX_QUEUED = 200  # events per subscriber; a slow one misses further events
MAX_RECENT = 50
POLL_S = 1.0
MARK_EVERY = 5  # polls

log = logging.getLogger("tickler.server")

EventQueue = asyncio.Queue[Event | None]  # None ends the stream


class EventStream:
    """Publishes events to subscribers. A slow subscriber misses events and never delays the publisher."""

    def __init__(self) -> None:
        self._subscribers: set[EventQueue] = set()
        self._subscribed = asyncio.Event()
        self.recent: deque[Event] = deque(maxlen=MAX_RECENT)

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        """Ignore it: subscribers get attempts only."""

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        """Publish an attempt; called through `Tickler.listen`."""
        if settlement.entry is not None:
            self.publish(event_of(settlement.entry))

    def publish(self, event: Event) -> None:
        self.recent.append(event)
        for queue in self._subscribers:
            with suppress(asyncio.QueueFull):
                queue.put_nowait(event)

    def end(self) -> None:
        """End every subscription, so that shutdown does not wait for open streams."""
        for queue in self._subscribers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)

    @contextmanager
    def subscribe(self) -> Iterator[EventQueue]:
        """Yield a queue that receives the events from now on."""
        queue = EventQueue(MAX_QUEUED)
        self._subscribers.add(queue)
        self._subscribed.set()
        try:
            yield queue
        finally:
            self._subscribers.discard(queue)
            if not self._subscribers:
                self._subscribed.clear()

    async def follow(self, records: RecordStore, clock: Clock, own: Callable[[], Collection[str]]) -> None:
        """While there are subscribers, ask workers elsewhere to publish their activity, and pass it on. Runs until cancelled.

        `own` returns the workers of this process, which publish here directly.
        """
        seen: dict[str, int] = {}
        polls = 0
        while True:
            if not self._subscribers:
                polls = 0
                await self._subscribed.wait()
            try:
                if polls % MARK_EVERY == 0:
                    await mark_watched(records, clock.now_ms())
                await self._pass_on(records, clock.now_ms(), own(), seen)
            except TicklerError as error:
                log.debug("cannot read the activity of other workers: %s", error)
            polls += 1
            await asyncio.sleep(POLL_S)

    async def _pass_on(self, records: RecordStore, now_ms: int, own: Collection[str], seen: dict[str, int]) -> None:
        fresh: list[Event] = []
        by_worker = await read_activity(records, now_ms)
        for gone in seen.keys() - by_worker.keys():
            del seen[gone]
        for worker, activity in by_worker.items():
            if worker in own:
                continue
            number = activity.number - seen.get(worker, 0)  # of a new worker, all that it published
            seen[worker] = activity.number
            fresh += activity.events[-number:] if number > 0 else []
        for event in sorted(fresh, key=lambda event: event.at):
            self.publish(event)


async def events_of(queue: EventQueue, owner: str | None, pulse_s: float) -> AsyncIterator[Event | None]:
    """Yield the events of an owner, or of all, until the stream ends; None at least every `pulse_s` seconds."""
    loop = asyncio.get_running_loop()
    pulse_at = loop.time() + pulse_s
    while True:
        try:
            async with asyncio.timeout_at(pulse_at):
                event = await queue.get()
        except TimeoutError:
            yield None
            pulse_at = loop.time() + pulse_s
            continue
        if event is None:
            return
        yield event if owner is None or event.owner == owner else None
