"""What the audit says, in words; and entries that say the same of many stores, as one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
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
    "drop": "forgotten",
}
_CHANGES = {"cancel": "cancelled it", "settle": "settled in all stores"}


class News(NamedTuple):
    """What was done, `times` times in a row: to a change set, or in so many stores. `last` is the latest of the entries."""

    last: AuditEntry
    times: int


def what_of(entry: AuditEntry) -> str:
    """Return what an entry says was done."""
    words = _IN_STORES if entry.store else _CHANGES
    return words.get(entry.action) or _WORDS.get(entry.action) or entry.action.replace("_", " ")


def news_of(entries: Iterable[AuditEntry]) -> list[News]:
    """Return entries that follow each other and say the same as one."""
    found = []
    for _, same in groupby(entries, lambda each: (each.action, each.change_set, each.actor, bool(each.store), each.reason)):
        alike = list(same)
        found.append(News(alike[0], len(alike)))
    return found
