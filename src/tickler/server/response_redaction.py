"""What callers see of what happened: whoever is bound to an owner is not told which machine it was."""

from __future__ import annotations

from msgspec.structs import replace

from tickler.fires.fires import FirePage, HistoryPage
from tickler.fires.redaction import redacted_entry, redacted_fire
from tickler.model.fire import Fire
from tickler.server.context import HttpRequest, caller


def names_workers(request: HttpRequest) -> bool:
    return caller(request).owner is None


def fire_seen(request: HttpRequest, fire: Fire) -> Fire:
    return fire if names_workers(request) else redacted_fire(fire)


def fires_seen(request: HttpRequest, page: FirePage, worker: str | None = None) -> FirePage:
    """`worker` stands for whoever has one of them."""
    return page if names_workers(request) else replace(page, items=[redacted_fire(fire, worker) for fire in page.items])


def history_seen(request: HttpRequest, page: HistoryPage) -> HistoryPage:
    return page if names_workers(request) else replace(page, items=[redacted_entry(entry) for entry in page.items])
