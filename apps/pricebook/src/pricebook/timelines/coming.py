"""What changes next, across all stores: editions that will count, and ends of prices for a time, by their instants."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.editions.timing import MILLISECOND, Now
from pricebook.editions.transitions import ever_counts
from pricebook.model import Edition, Head, Notice, UnsettledEdition
from tickler.table import MISSING, OpenTable

MAX_ENTRIES = 400  # of each index


class ComingChange(Struct, frozen=True):
    """Editions of the same change set that begin at the same instant, or whose prices end then. `zone` is of the first store."""

    at: datetime
    change_set: str | None
    stores: tuple[str, ...]
    zone: str
    ends: bool = False


class Coming(Struct, frozen=True):
    """`has_more`: the last of the changes may concern more stores, and there may be others after it."""

    changes: list[ComingChange]
    has_more: bool


class _Turn(NamedTuple):
    """What stores have in common that are one entry."""

    at: datetime
    change_set: str
    ends: bool


class ComingChanges:
    def __init__(self, db: OpenTable, now: Now) -> None:
        self._db = db
        self._now = now

    async def next(self, caller: Caller) -> Coming:
        """Return what changes next in the stores of the caller, among the first entries of the indexes of editions and ends."""
        caller.require("read")
        now = self._now()
        begins = await self._db.query(UnsettledEdition.by_instant().since(now), first=MAX_ENTRIES)
        ends = await self._db.query(Notice.pending().since(now + MILLISECOND), first=MAX_ENTRIES)
        entries = {(entry.store, entry.number) for entry in begins.items if caller.may_see(entry.store)}
        notices = [notice for notice in ends.items if notice.kind == "ended" and caller.may_see(notice.store)]
        heads = await self._heads({store for store, _ in entries} | {notice.store for notice in notices})
        turns = [(turn, head) for head in heads.values() for turn in _of_editions(head, entries)]
        for notice in notices:
            if (head := heads.get(notice.store)) is not None:
                turns += [(turn, head) for turn in _of_notice(notice, head)]
        cuts = [begins.items[-1].from_at] if begins.has_next else []
        cuts += [ends.items[-1].at] if ends.has_next else []
        found: dict[_Turn, dict[str, Head]] = {}
        for turn, head in turns:
            if turn.at > now and all(turn.at <= cut for cut in cuts):
                found.setdefault(turn, {})[head.store] = head
        return Coming([_change(turn, found[turn]) for turn in sorted(found)], bool(cuts))

    async def _heads(self, stores: set[str]) -> dict[str, Head]:
        heads = await self._db.get_many([Head.key.id(store) for store in sorted(stores)])
        return {head.store: head for head in heads if head is not None}


def change_set_of(edition: Edition) -> str | None:
    """Return the id of the change set that an edition is of; None for one that was made without."""
    return None if edition.change_set is MISSING else edition.change_set


def _of_editions(head: Head, entries: set[tuple[str, int]]) -> Iterator[_Turn]:
    """Yield when editions of a store begin, and when their prices end."""
    for number, edition in head.editions.items():
        if (head.store, number) in entries and ever_counts(edition) and edition.from_at is not MISSING:
            yield _Turn(edition.from_at, change_set_of(edition) or "", False)
            yield from _ends_of(edition)


def _of_notice(notice: Notice, head: Head) -> Iterator[_Turn]:
    """Yield when prices of a settled edition end, unless they are taken back before."""
    taken_back = [
        edition.from_at
        for edition in head.editions.values()
        if edition.retracts == notice.number and ever_counts(edition) and edition.from_at is not MISSING
    ]
    for turn in _ends_of(notice.edition):
        if turn.at >= notice.at and all(turn.at < at for at in taken_back):
            yield turn


def _ends_of(edition: Edition) -> Iterator[_Turn]:
    for until in edition.untils:
        if edition.to_at is MISSING or until < edition.to_at:
            yield _Turn(until, change_set_of(edition) or "", True)


def _change(turn: _Turn, heads: dict[str, Head]) -> ComingChange:
    stores = sorted(heads)
    return ComingChange(turn.at, turn.change_set or None, tuple(stores), heads[stores[0]].tz, turn.ends)
