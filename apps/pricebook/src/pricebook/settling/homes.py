"""Moves the home of a store to another region, with an entry in the audit."""

from __future__ import annotations

from datetime import UTC, datetime

from pricebook.audit.entries import store_subject
from pricebook.editions.head_writes import Cause
from pricebook.errors import NotFound
from pricebook.model import AuditEntry, Head
from pricebook.settling.options import check_region
from tickler.table import OpenTable, Transaction


async def move_home(db: OpenTable, store: str, region: str, at: datetime, cause: Cause) -> None:
    check_region(region)

    async def work(tx: Transaction) -> None:
        head = await tx.get(Head.key.id(store))
        if head is None:
            raise NotFound("store")
        if head.home != region:
            tx.update(head.key, Head.home.set(region))
            tx.create(_entry(head, region, at, cause))

    await db.transact(work)


def _entry(head: Head, region: str, at: datetime, cause: Cause) -> AuditEntry:
    moved = f"from {head.home or 'no region'} to {region or 'no region'}"
    return AuditEntry(
        subject=store_subject(head.store),
        at=at,
        id=f"{head.rev:012}-home",
        day=at.astimezone(UTC).date(),
        actor=cause.actor,
        action="move_home",
        reason=f"{moved}: {cause.reason}" if cause.reason else moved,
        request=cause.request,
        store=head.store,
    )
