"""What happens right now, for those who watch: events of this process's runner, and of workers elsewhere."""

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

MAX_WAITING = 200  # events that a slow watcher may lag behind
MAX_RECENT = 50
LOOK_S = 1.0
WATCH_EVERY = 5  # looks

log = logging.getLogger("tickler.server")

Waiting = asyncio.Queue[Event | None]  # None: nothing more comes


class EventStream:
    """Hands events to everybody who watches; whoever is slow misses some, and nobody waits for them."""

    def __init__(self) -> None:
        self._watchers: set[Waiting] = set()
        self._some = asyncio.Event()
        self.recent: deque[Event] = deque(maxlen=MAX_RECENT)

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        """Nobody watches rounds."""

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        """For `Tickler.listen`."""
        if settlement.entry is not None:
            self.tell(event_of(settlement.entry))

    def tell(self, event: Event) -> None:
        self.recent.append(event)
        for watcher in self._watchers:
            with suppress(asyncio.QueueFull):
                watcher.put_nowait(event)

    def end(self) -> None:
        """The service stops: nobody has to wait for those who watch."""
        for watcher in self._watchers:
            if watcher.full():
                watcher.get_nowait()
            watcher.put_nowait(None)

    @contextmanager
    def watching(self) -> Iterator[Waiting]:
        """Where events gather from now on."""
        queue = Waiting(MAX_WAITING)
        self._watchers.add(queue)
        self._some.set()
        try:
            yield queue
        finally:
            self._watchers.discard(queue)
            if not self._watchers:
                self._some.clear()

    async def follow(self, records: RecordStore, clock: Clock, own: Callable[[], Collection[str]]) -> None:
        """Until cancelled: ask workers elsewhere to tell what they do while somebody watches, and pass it on.

        `own` tells the workers of this process, which tell by themselves.
        """
        seen: dict[str, int] = {}
        looks = 0
        while True:
            if not self._watchers:
                looks = 0
                await self._some.wait()
            try:
                if looks % WATCH_EVERY == 0:
                    await mark_watched(records, clock.now_ms())
                await self._pass_on(records, clock.now_ms(), own(), seen)
            except TicklerError as error:
                log.debug("nothing is heard of workers elsewhere: %s", error)
            looks += 1
            await asyncio.sleep(LOOK_S)

    async def _pass_on(self, records: RecordStore, now_ms: int, own: Collection[str], seen: dict[str, int]) -> None:
        fresh: list[Event] = []
        by_worker = await read_activity(records, now_ms)
        for gone in seen.keys() - by_worker.keys():
            del seen[gone]
        for worker, heard in by_worker.items():
            if worker in own:
                continue
            number = heard.number - seen.get(worker, 0)  # a worker that is new here tells all that it remembers
            seen[worker] = heard.number
            fresh += heard.events[-number:] if number > 0 else []
        for event in sorted(fresh, key=lambda event: event.at):
            self.tell(event)


async def events_of(queue: Waiting, owner: str | None, pulse_s: float) -> AsyncIterator[Event | None]:
    """Those of an owner or of all, as they happen, until the end; None every `pulse_s` seconds, whatever happens."""
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
