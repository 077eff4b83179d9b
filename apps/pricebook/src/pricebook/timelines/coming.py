"""What changes next, across all stores: editions that do not count yet, by the instant from which they will."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.editions.timing import Now
from pricebook.editions.transitions import ever_counts
from pricebook.model import Edition, Head, UnsettledEdition
from tickler.table import MISSING, OpenTable

MAX_ENTRIES = 400


class ComingChange(Struct, frozen=True):
    """Editions of the same change set that begin at the same instant. `zone` is that of the first of its stores."""

    at: datetime
    change_set: str | None
    stores: tuple[str, ...]
    zone: str


class Coming(Struct, frozen=True):
    """`has_more`: the last of the changes may concern more stores, and there may be others after it."""

    changes: list[ComingChange]
    has_more: bool


class ComingChanges:
    def __init__(self, db: OpenTable, now: Now) -> None:
        self._db = db
        self._now = now

    async def next(self, caller: Caller) -> Coming:
        """Return what changes next in the stores of the caller, among the first entries of the index of editions."""
        caller.require("read")
        now = self._now()
        page = await self._db.query(UnsettledEdition.by_instant().since(now), first=MAX_ENTRIES)
        entries = {(entry.store, entry.number) for entry in page.items if caller.may_see(entry.store)}
        heads = await self._db.get_many([Head.key.id(store) for store in dict.fromkeys(store for store, _ in sorted(entries))])
        found: dict[tuple[datetime, str | None], list[Head]] = {}
        for head in (each for each in heads if each is not None):
            for number, edition in head.editions.items():
                at = edition.from_at
                if (head.store, number) in entries and ever_counts(edition) and at is not MISSING and at > now:
                    found.setdefault((at, change_set_of(edition)), []).append(head)
        changes = [
            ComingChange(at, change_set, tuple(head.store for head in of_it), of_it[0].tz)
            for (at, change_set), of_it in sorted(found.items(), key=lambda each: (each[0][0], each[0][1] or ""))
        ]
        return Coming(changes, page.has_next)


def change_set_of(edition: Edition) -> str | None:
    """Return the id of the change set that an edition is of; None for one that was made without."""
    return None if edition.change_set is MISSING else edition.change_set
