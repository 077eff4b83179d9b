"""What is done when a schedule fires: a store is settled, its change sets learn of it, and events are sent.

It may be late, run twice at once, or stop anywhere: what is left to do is in the table, as editions and notices.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pricebook.editions.settlement import Settled
from pricebook.editions.switch import Switch
from pricebook.events import Events
from pricebook.model import Head, Notice
from pricebook.points import AtPoint, pass_on
from tickler.table import MISSING, OpenTable

MAX_ROUNDS = 100  # of notices that follow each other


class ChangeSetStores(Protocol):
    """The part of change sets that is told of settled editions."""

    async def store_settled(self, change_set: str, store: str, edition: int) -> None:
        """Note that an edition of a change set, which counted and was not cancelled, is settled. It may be called again."""


class StoreSettlement:
    def __init__(
        self, db: OpenTable, switch: Switch, events: Events, change_sets: ChangeSetStores, at_point: AtPoint = pass_on
    ) -> None:
        self._db = db
        self._switch = switch
        self._events = events
        self._change_sets = change_sets
        self._at_point = at_point

    async def settle(self, store: str) -> Settled:
        await self._at_point("settling.begun")
        settled = await self._switch.settle(store)
        await self._at_point("settling.settled")
        return settled

    async def tell(self, store: str, now: datetime) -> int:
        """Tell what there is to be told of a store by now. Returns how many events were sent."""
        sent = 0
        for _ in range(MAX_ROUNDS):
            due = [notice for notice in await self._events.pending(store) if notice.kind != "ended" or notice.at <= now]
            if not due:
                break
            head = await self._db.get(Head.key.id(store))
            assert head is not None, "a store with notices has a head"
            for notice in due:
                sent += await self._tell(notice, head)
        return sent

    async def _tell(self, notice: Notice, head: Head) -> int:
        """Tell one thing. The notice is deleted last, so that nothing is left out."""
        edition = notice.edition
        if notice.kind == "settled" and edition.change_set is not MISSING and edition.to_at is MISSING:
            await self._change_sets.store_settled(edition.change_set, notice.store, notice.number)
            await self._at_point("settling.change_set")
        sent = await self._events.send(notice, head)
        await self._at_point("settling.told")
        return sent
