"""What the audit says, in words; and entries that say the same of many stores, as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pricebook.model import AuditEntry

_WORDS = {
    "create": "created the draft",
    "edit": "edited the draft",
    "put_lines": "added prices",
    "remove_lines": "removed prices",
    "submit": "submitted it",
    "send_back": "sent it back",
    "approve": "approved it",
    "approved": "approved in all stores",
    "refuse": "could not be approved",
    "unapprove": "took the approval back",
    "withdrawn": "taken back in all stores",
    "roll_back": "rolled it back",
    "supersede": "superseded",
}
_IN_STORES = {
    "open": "opened",
    "stage": "staged",
    "seal": "sealed",
    "move": "moved",
    "cancel": "cancelled",
    "settle": "settled",
    "drop": "closed",
}
_CHANGES = {"cancel": "cancelled it", "settle": "settled in all stores"}


class News(NamedTuple):
    """What was done, so many `times`: to a change set, or in so many stores. `last` is the latest of the entries."""

    last: AuditEntry
    times: int


def what_of(entry: AuditEntry) -> str:
    """Return what an entry says was done."""
    words = _IN_STORES if entry.store else _CHANGES
    return words.get(entry.action) or _WORDS.get(entry.action) or entry.action.replace("_", " ")


def news_of(entries: Iterable[AuditEntry]) -> list[News]:
    """Return entries that say the same, of a change set or of many stores, as one: in the order of the latest of each."""
    found: dict[object, News] = {}
    for each in entries:
        same = (each.action, each.change_set, each.actor, bool(each.store), each.reason)
        known = found.get(same)
        found[same] = News(each, 1) if known is None else known._replace(times=known.times + 1)
    return list(found.values())
