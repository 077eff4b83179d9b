"""A named consumer of the changes of a table: its handlers, and the ways to run it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, TypeVar, overload

import msgspec

from tickler.database.background import running_in_background
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.table.engines.change_log import EventSource
from tickler.table.engines.metadata import EntryWrite
from tickler.table.streams.context import StreamContext
from tickler.table.streams.delivery import AnyHandler, Delivery, Stopped, Subscription
from tickler.table.streams.events import Event
from tickler.table.streams.item_change import ItemChange
from tickler.table.streams.parked_retry import retry_one
from tickler.table.streams.parking import PARKED, RETRY, ParkedChange, Parking
from tickler.table.streams.progress import PREFIX
from tickler.table.streams.session import Session

FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 30.0
EMPTY_READS = 2  # after which a consumer that works in steps has caught up

O1 = TypeVar("O1")
O2 = TypeVar("O2")
O3 = TypeVar("O3")
N1 = TypeVar("N1")
N2 = TypeVar("N2")
N3 = TypeVar("N3")
H = TypeVar("H", bound=AnyHandler)
L = TypeVar("L", bound=Callable[[], Awaitable[None] | None])

log = logging.getLogger("tickler.table")

Handler = Callable[[ItemChange[O1, N1]], Awaitable[None] | None]


class Consumed(msgspec.Struct, frozen=True):
    """What a call of `consume` has done. `caught_up`: there was nothing left in the shards that it could have."""

    delivered: int
    parked: int
    caught_up: bool


class Consumer:
    """Made by `OpenTable.consumer`. Subscribe handlers with `on`, then use `running`, `run`, `consume` or `consume_event`."""

    def __init__(self, context: StreamContext, wakers: set[Callable[[], None]]) -> None:
        options = context.options
        self._context = context
        self._wakers = wakers
        self._parking = Parking(context.metadata, options.name, options.max_parked)
        self._delivery = Delivery(context, self._parking)
        self._lost_callbacks: list[Callable[[], Awaitable[None] | None]] = []
        self._one_loss = asyncio.Lock()
        self._is_running = False
        self._stopping = asyncio.Event()

    @property
    def name(self) -> str:
        return self._context.options.name

    @overload
    def on(self, one: Event[O1, N1], /) -> Callable[[Handler[O1, N1]], Handler[O1, N1]]: ...
    @overload
    def on(
        self, one: Event[O1, N1], two: Event[O2, N2], /
    ) -> Callable[[Handler[O1 | O2, N1 | N2]], Handler[O1 | O2, N1 | N2]]: ...
    @overload
    def on(
        self, one: Event[O1, N1], two: Event[O2, N2], three: Event[O3, N3], /
    ) -> Callable[[Handler[O1 | O2 | O3, N1 | N2 | N3]], Handler[O1 | O2 | O3, N1 | N2 | N3]]: ...
    def on(self, *events: Event[Any, Any]) -> Callable[[Any], Any]:
        """Call the decorated function with each change that is one of `events`, which are all of one entity.

        It may be a coroutine function or a plain one, which runs in a thread. Changes come at least once, and those of one item
        in order. If it raises, it is called again later; `GiveUp` parks the change at once.
        """
        for event in events:
            if not isinstance(event, Event):
                raise InvalidInput(f"on: {event!r} is no event: pass some, as in @consumer.on(created(Order))")
        names = {self._context.table.definition_for(event.entity).name for event in events}
        if len(names) != 1:
            raise InvalidInput("on: pass events of one entity, and a handler for each entity")
        (name,) = names

        def subscribe(handler: AnyHandler) -> AnyHandler:
            self._delivery.subscribe(name, Subscription(events, handler))
            return handler

        return subscribe

    def on_lost(self, callback: L) -> L:
        """Call a function when changes were deleted before this consumer had read them, before it goes on behind them.

        It may be a coroutine function or a plain one, which runs in a thread. It is called for each shard, one at a time, and
        again if it raises.
        """
        self._lost_callbacks.append(callback)
        return callback

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Deliver changes while the block runs. At its end, handlers that have begun are waited for.

        A crash cancels the block, and is raised there; without `await`, at the end of the block.
        """
        async with running_in_background(self._run(self._begin()), self.stop, f"consumer {self.name}"):
            yield self

    def stop(self) -> None:
        """Let `run` end after the handlers that have begun."""
        self._stopping.set()
        self._delivery.stop()

    async def run(self) -> None:
        """Deliver changes until `stop`, or until it is cancelled."""
        await self._run(self._begin())

    async def _run(self, session: Session) -> None:
        fastest, slowest = self._context.changes.poll_s
        pause, failures = fastest, 0
        try:
            while not self._stopping.is_set():
                try:
                    is_found = await session.step()
                except StoreUnavailable as error:
                    failures += 1
                    log.warning("consumer %s: %s", self.name, error)
                    await self._wait(min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10)))
                    continue
                failures = 0
                is_idle = not is_found and not session.is_delivering
                pause = min(slowest, pause * 1.5) if is_idle else fastest
                if not is_found:
                    await session.wait(pause if is_idle else slowest)
        finally:
            await self._end(session)
        session.raise_crash()

    async def consume(self, *, budget_ms: int = 10_000) -> Consumed:
        """Deliver what there is, until nothing is left or the time is spent. For hosts without a running process."""
        session = self._begin()
        loop = asyncio.get_running_loop()
        ends_at, empty = loop.time() + budget_ms / 1000, 0
        before = self._delivery.delivered, self._delivery.parked
        try:
            while loop.time() < ends_at and empty < EMPTY_READS and not self._stopping.is_set():
                if await session.step():
                    empty = 0
                elif session.has_moved:
                    empty = 0
                    await asyncio.sleep(0)  # a step may have found everything without waiting
                elif session.is_delivering:
                    await session.wait(max(0.0, ends_at - loop.time()))
                else:
                    empty += 1
                    await session.wait(self._context.changes.poll_s[0])
        finally:
            await self._end(session)
        session.raise_crash()
        delivered, parked = self._delivery.delivered - before[0], self._delivery.parked - before[1]
        return Consumed(delivered, parked, empty >= EMPTY_READS)

    async def consume_event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Deliver the changes of an event that AWS Lambda gets from a stream of DynamoDB. Returns what the function must return.

        Lambda keeps the position then. Turn on ReportBatchItemFailures, so that it repeats only what was not delivered.
        """
        changes = self._context.changes
        if not isinstance(changes, EventSource):
            raise InvalidInput("consume_event is for tables on DynamoDB: use consume(budget_ms=…) here")
        records = changes.records_of(event)
        await self._parking.refresh()
        if not self._is_running:
            self._delivery.resume()
        delivered: set[int] = set()
        try:
            await self._delivery.deliver(records, delivered.add, lambda: True)
            for key in await self._parking.due():
                with suppress(Stopped):
                    await retry_one(self._context, self._delivery, self._parking, key)
        except StoreUnavailable as error:
            log.warning("consumer %s: %s", self.name, error)
        missing = [record for number, record in enumerate(records) if number not in delivered]
        return {"batchItemFailures": [{"itemIdentifier": record.position} for record in missing[:1]]}

    async def parked(self, *, limit: int = 100) -> list[ParkedChange]:
        """Return changes that keep failing, and those that wait behind them, oldest first."""
        return await self._parking.listed(limit=limit)

    async def retry(self, id: str | None = None) -> int:
        """Ask for another try of a parked change, or of all. The consumer makes it where it runs. Returns of how many."""
        return await self._parking.ask_again(id)

    async def discard(self, id: str | None = None) -> int:
        """Delete a parked change, or all, so that they are never delivered. Returns how many."""
        return await self._parking.discard(id)

    async def forget(self) -> None:
        """Delete what is kept of this consumer: positions and parked changes. Changes are not kept for it any more."""
        for prefix in (f"{PREFIX}{self.name}/", f"{PARKED}{self.name}/", f"{RETRY}{self.name}/"):
            entries = await self._context.metadata.read(prefix, keys_only=True)
            await self._context.metadata.write([EntryWrite(entry.key, None) for entry in entries])

    def _begin(self) -> Session:
        if self._is_running:
            raise InvalidInput(f"consumer {self.name!r} runs already: one of these objects runs once at a time")
        self._is_running = True
        self._stopping.clear()
        self._delivery.resume()
        session = Session(self._context, self._delivery, self._parking, self._call_lost_callbacks)
        self._wakers.add(session.wake.set)
        return session

    async def _end(self, session: Session) -> None:
        try:
            await session.close()
        finally:
            self._wakers.discard(session.wake.set)
            self._is_running = False

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _call_lost_callbacks(self) -> None:
        async with self._one_loss:
            for callback in self._lost_callbacks:
                outcome = callback() if inspect.iscoroutinefunction(callback) else await asyncio.to_thread(callback)
                if outcome is not None:
                    await outcome
