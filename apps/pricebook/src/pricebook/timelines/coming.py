"""What changes next, across all stores: editions that do not count yet, by the instant from which they will."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from pricebook.editions.timing import Now
from pricebook.editions.transitions import ever_counts
from pricebook.model import Edition, Head, UnsettledEdition
from tickler.table import MISSING, OpenTable

MAX_ENTRIES = 400


class ComingChange(Struct, frozen=True):
    """Editions of the same change set that begin at the same instant."""

    at: datetime
    change_set: str | None
    stores: tuple[str, ...]
    zone: str  # of the first of them

    @property
    def store_count(self) -> int:
        return len(self.stores)


class Coming(Struct, frozen=True):
    changes: list[ComingChange]
    has_more: bool  # than the entries that were looked at


class ComingChanges:
    def __init__(self, db: OpenTable, now: Now) -> None:
        self._db = db
        self._now = now

    async def next(self, may_see: Callable[[str], bool]) -> Coming:
        """Return what changes next in the stores that `may_see` accepts, among the first entries of the index of editions."""
        now = self._now()
        page = await self._db.query(UnsettledEdition.by_instant().since(now), first=MAX_ENTRIES)
        stores = list(dict.fromkeys(entry.store for entry in page.items if may_see(entry.store)))
        heads = await self._db.get_many([Head.key.id(store) for store in stores])
        found: dict[tuple[datetime, str | None], list[Head]] = {}
        for head in (head for head in heads if head is not None):
            for edition in head.editions.values():
                if ever_counts(edition) and edition.from_at is not MISSING and edition.from_at > now:
                    found.setdefault((edition.from_at, change_set_of(edition)), []).append(head)
        changes = [
            ComingChange(at, change_set, tuple(sorted(head.store for head in heads)), heads[0].tz)
            for (at, change_set), heads in sorted(found.items(), key=lambda each: (each[0][0], each[0][1] or ""))
        ]
        return Coming(changes, page.has_next)


def change_set_of(edition: Edition) -> str | None:
    """Return the id of the change set that an edition is of; None for one that was made without."""
    id = getattr(edition, "change_set", MISSING)
    return None if id is MISSING else id
