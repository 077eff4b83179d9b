"""What the engine calls: the handlers that schedules and sends name. What they return is in the history of the fire."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from pricebook.errors import NotFound
from pricebook.identifiers import BULK, CARRY_ON, SETTLE, SWEEP, SWEEP_OWNER
from tickler import Delivery, Every, Policy, PythonTarget, Schedule

if TYPE_CHECKING:
    from pricebook.app.pricebook import Pricebook

SWEPT_EACH = Every(minutes=1)
SWEEP_POLICY = Policy(timeout=300, overlap="skip", attempts=3, backoff=(5, 20))

log = logging.getLogger("pricebook")


class _StorePayload(msgspec.Struct):
    store: str


class _IdPayload(msgspec.Struct):
    id: str


def register(book: Pricebook) -> None:
    """Register the handlers of an open pricebook."""

    @book.t.handler(SETTLE)
    async def settle(delivery: Delivery) -> str:
        return await _unless_gone(book.settling.settle, msgspec.convert(delivery.payload, _StorePayload).store)

    @book.t.handler(CARRY_ON)
    async def carry_on(delivery: Delivery) -> str:
        return await _unless_gone(book.change_sets.carry_on, msgspec.convert(delivery.payload, _IdPayload).id)

    @book.t.handler(BULK)
    async def work(delivery: Delivery) -> str:
        return await book.bulk.work(msgspec.convert(delivery.payload, _IdPayload).id)

    @book.t.handler(SWEEP)
    async def sweep_all(delivery: Delivery) -> str:
        return await sweep(book)


async def begin_sweeps(book: Pricebook) -> None:
    """Look each minute for what was lost. Call it wherever what is due is delivered; it is written once."""
    schedule = Schedule(owner=SWEEP_OWNER, key="sweep", when=SWEPT_EACH, target=PythonTarget(SWEEP), policy=SWEEP_POLICY)
    await book.t.schedules.declare(SWEEP_OWNER, [schedule])


async def sweep(book: Pricebook) -> str:
    """Begin again what was lost: schedules of stores, change sets, and imports. Delete what has expired."""
    parts = (book.settling.sweep(), book.change_sets.sweep(), book.bulk.sweep(), book.db.sweep())
    found = await asyncio.gather(*parts, return_exceptions=True)
    for error in found:
        if isinstance(error, BaseException):
            raise error  # after the others had their turn
    stores, change_sets, jobs, _ = found
    return f"began again: {stores} stores, {change_sets} change sets, {jobs} imports"


async def _unless_gone(work: Callable[[str], Awaitable[str]], id: str) -> str:
    try:
        return await work(id)
    except NotFound as error:
        return f"nothing to do: {error}"
