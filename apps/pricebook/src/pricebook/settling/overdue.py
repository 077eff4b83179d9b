"""Finds what is late: editions that should be settled, and notices that should be sent. It reads what is late, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import NamedTuple, TypeVar

from pricebook.editions.transitions import is_due
from pricebook.model import Head, Notice, UnsettledEdition
from pricebook.settling.jobs import SOON, job_of
from tickler.table import OpenTable

AT_A_TIME = 100

Item = TypeVar("Item", UnsettledEdition, Notice)


class Late(NamedTuple):
    """An edition, or a notice, that should have been dealt with; and the key of the schedule that does it."""

    head: Head
    key: str


async def late_work(db: OpenTable, at: datetime) -> AsyncIterator[Late]:
    """Yield what should have been dealt with by an instant."""
    async for entry, head in _with_heads(db, db.iterate(UnsettledEdition.by_instant().until(at))):
        edition = head.editions.get(entry.number)
        job = None if edition is None or not is_due(edition, at) else job_of(edition)
        if job is not None:
            yield Late(head, job[0])
    async for _, head in _with_heads(db, db.iterate(Notice.pending().until(at))):
        yield Late(head, SOON)


async def _with_heads(db: OpenTable, items: AsyncIterator[Item]) -> AsyncIterator[tuple[Item, Head]]:
    async for some in _batches(items):
        stores = list(dict.fromkeys(item.store for item in some))
        found: list[Head | None] = await db.get_many([Head.key.id(store) for store in stores])
        heads = {head.store: head for head in found if head is not None}
        for item in some:
            if item.store in heads:
                yield item, heads[item.store]


async def _batches(items: AsyncIterator[Item]) -> AsyncIterator[list[Item]]:
    some: list[Item] = []
    async for item in items:
        some.append(item)
        if len(some) == AT_A_TIME:
            yield some
            some = []
    if some:
        yield some
