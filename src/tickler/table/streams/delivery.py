"""Delivers changes to handlers: in order for each item, different items at the same time, and again after a failure."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from tickler.errors import GiveUp, InvalidItem, SchemaMismatch
from tickler.table.engines.change_log import ChangeRecord
from tickler.table.streams.context import StreamContext
from tickler.table.streams.events import Event
from tickler.table.streams.item_change import ItemChange, item_change
from tickler.table.streams.parking import ParkedChange, Parking

FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 30.0
MAX_ERROR_CHARACTERS = 500

log = logging.getLogger("tickler.table")

AnyHandler = Callable[[ItemChange[Any, Any]], Awaitable[None] | None]


class Subscription(NamedTuple):
    events: Sequence[Event[Any, Any]]
    handler: AnyHandler

    def concerns(self, change: ItemChange[Any, Any]) -> bool:
        return any(event.happened(change.old, change.new) for event in self.events)


class Stopped(Exception):
    """The consumer stops, or has lost the shard: what is not delivered yet stays where it is."""


class Interrupted(Stopped):
    """The consumer stops between two attempts at a change: the last of `attempts` failed with `error`."""

    def __init__(self, error: Exception, attempts: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.attempts = attempts


class Delivery:
    def __init__(self, context: StreamContext, parking: Parking) -> None:
        self.delivered = 0
        self.parked = 0
        self._table = context.table
        self._changes = context.changes
        self._parking = parking
        self._options = context.options
        self._clock = context.clock
        self._by_entity: dict[str, list[Subscription]] = {}
        self._slots = asyncio.Semaphore(context.options.concurrency)
        self._stopping = asyncio.Event()

    def subscribe(self, entity: str, subscription: Subscription) -> None:
        self._by_entity.setdefault(entity, []).append(subscription)

    def stop(self) -> None:
        """Let handlers that run end, start no other, and end pauses before retries."""
        self._stopping.set()

    def resume(self) -> None:
        self._stopping.clear()

    async def deliver(
        self, records: Sequence[ChangeRecord], on_done: Callable[[int], None], may_start: Callable[[], bool]
    ) -> None:
        """Deliver records of one shard. `on_done` is told the number of each, in any order, once it is delivered or parked.

        `may_start` is asked before each handler. Raises what the store raises when a change cannot be parked.
        """
        by_item: dict[tuple[str, str], list[tuple[int, ChangeRecord]]] = {}
        for number, record in enumerate(records):
            if record.entity in self._by_entity:
                by_item.setdefault((record.pk, record.sk), []).append((number, record))
            else:
                on_done(number)
        items = [self._item(group, on_done, may_start) for group in by_item.values()]
        for outcome in await asyncio.gather(*items, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, Stopped):
                raise outcome

    async def retry(self, parked: ParkedChange, may_start: Callable[[], bool]) -> str | None:
        """Deliver a parked change. Returns the error if that fails. `may_start` is asked before each handler.

        One that was interrupted has the attempts that are left, any other all of them.
        """
        most = self._options.attempts
        try:
            change = self._decoded(parked.record)
            if change is not None:
                await self._attempts(change, may_start, most - parked.attempts if parked.attempts < most else most)
        except Stopped:
            raise
        except Exception as error:
            return error_text(error)
        self.delivered += 1
        return None

    async def _item(
        self, group: Sequence[tuple[int, ChangeRecord]], on_done: Callable[[int], None], may_start: Callable[[], bool]
    ) -> None:
        for number, record in group:
            await self._one(record, may_start)
            on_done(number)

    async def _one(self, record: ChangeRecord, may_start: Callable[[], bool]) -> None:
        if self._parking.is_blocked(record):
            await self._park(record, "waits for an earlier change of the same item", 0, may_start, again=True)
            return
        try:
            change = self._decoded(record)
            if change is not None:
                await self._attempts(change, may_start, self._options.attempts)
        except Interrupted as stop:
            await self._park(record, error_text(stop.error), stop.attempts, may_start, again=True)
        except Stopped:
            raise
        except Exception as error:
            attempts = self._options.attempts if not isinstance(error, GiveUp | InvalidItem | SchemaMismatch) else 1
            await self._park(record, error_text(error), attempts, may_start)
        else:
            self.delivered += 1

    def _decoded(self, record: ChangeRecord) -> ItemChange[Any, Any] | None:
        """Return the change if it concerns a handler."""
        definition = self._table.entities[record.entity]
        change = item_change(self._table.name, definition, record, self._changes)
        return change if any(each.concerns(change) for each in self._by_entity.get(record.entity, ())) else None

    async def _attempts(self, change: ItemChange[Any, Any], may_start: Callable[[], bool], most: int) -> None:
        """Call the handlers of a change, each until it succeeds. Raises the last error after too many attempts.

        Raises `Interrupted` if the consumer stops after a failure.
        """
        concerned = [each for each in self._by_entity[change.key.definition.name] if each.concerns(change)]
        for attempt in range(1, most + 1):
            try:
                while concerned:
                    await self._call(concerned[0].handler, change, may_start)
                    del concerned[0]
            except (Stopped, GiveUp):
                raise
            except Exception as error:
                if attempt == most:
                    raise
                log.warning("consumer %s: attempt %d of %s failed", self._options.name, attempt, change.id, exc_info=error)
                try:
                    await self.pause(attempt)
                except Stopped:
                    raise Interrupted(error, attempt) from None
            else:
                return

    async def _call(self, handler: AnyHandler, change: ItemChange[Any, Any], may_start: Callable[[], bool]) -> None:
        async with self._slots:
            if self._stopping.is_set() or not may_start():
                raise Stopped
            is_coroutine = inspect.iscoroutinefunction(handler)
            try:
                outcome = handler(change) if is_coroutine else await asyncio.to_thread(_called, handler, change)
                if inspect.isawaitable(outcome):  # a plain function may return a coroutine
                    await self._within_timeout(outcome)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise RuntimeError("the handler cancelled itself, or awaited what somebody else cancelled") from error

    async def _within_timeout(self, outcome: Awaitable[None]) -> None:
        limit = asyncio.timeout(self._options.timeout.total_seconds())
        try:
            async with limit:
                await outcome
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TimeoutError(f"the handler took longer than {self._options.timeout}") from error

    async def _park(
        self, record: ChangeRecord, error: str, attempts: int, may_start: Callable[[], bool], *, again: bool = False
    ) -> None:
        """Park a change; `again`: to be tried again without being asked. While too many are parked, wait, so that all stops.

        A process that has lost the shard parks nothing: the next one may have delivered this change, and later ones, meanwhile.
        """
        if not may_start():
            raise Stopped
        parked = ParkedChange(record, error, attempts, self._clock.now_ms())
        waits = 0
        while not await self._parking.park(parked, again=again):
            waits += 1
            if waits == 1:
                log.error(
                    "consumer %s stops at a change of %s %s, because %d changes are parked already: retry or discard them",
                    self._options.name, record.entity, record.pk, self._options.max_parked,
                )  # fmt: skip
            await self.pause(waits + 3)
            if not may_start():
                raise Stopped
            await self._parking.refresh()
        self.parked += 1
        if not again:
            log.error("consumer %s parked %s %s: %s", self._options.name, record.entity, record.position, error)

    async def pause(self, attempt: int) -> None:
        """Wait before the next attempt, longer each time. Raises `Stopped` when the consumer stops."""
        ceiling = min(MAX_PAUSE_S, FIRST_PAUSE_S * 4.0 ** min(attempt - 1, 10))
        try:
            async with asyncio.timeout(ceiling * random.uniform(0.5, 1)):  # noqa: S311  # not a secret
                await self._stopping.wait()
        except TimeoutError:
            return
        raise Stopped


def _called(handler: AnyHandler, change: ItemChange[Any, Any]) -> Awaitable[None] | None:
    try:
        return handler(change)
    except StopIteration as error:  # a future does not carry it, so that nobody would ever know
        raise RuntimeError("the handler raised StopIteration") from error


def error_text(error: BaseException) -> str:
    shown = str(error) or "no message"
    return f"{type(error).__name__}: {shown}"[:MAX_ERROR_CHARACTERS]
