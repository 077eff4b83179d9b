"""Hides worker names, which are host names, from callers bound to an owner."""

from __future__ import annotations

from msgspec.structs import replace

from tickler.fires.fires import FirePage, HistoryPage
from tickler.fires.redaction import redacted_entry, redacted_fire
from tickler.model.fire import Fire
from tickler.server.context import HttpRequest, caller_of


def names_workers(request: HttpRequest) -> bool:
    return caller_of(request).owner is None


def redact_fire(request: HttpRequest, fire: Fire) -> Fire:
    return fire if names_workers(request) else redacted_fire(fire)


def redact_fires(request: HttpRequest, page: FirePage, worker: str | None = None) -> FirePage:
    """Show `worker` in place of a worker's name."""
    return page if names_workers(request) else replace(page, items=[redacted_fire(fire, worker) for fire in page.items])


def redact_history(request: HttpRequest, page: HistoryPage) -> HistoryPage:
    return page if names_workers(request) else replace(page, items=[redacted_entry(entry) for entry in page.items])
