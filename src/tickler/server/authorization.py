"""Decides which owners' data a caller can see, and which targets a caller can write.

Callers bound to an owner see no worker names, which are host names.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from msgspec.structs import replace

from tickler.errors import ScheduleNotFound
from tickler.fires.fires import FirePage, HistoryPage
from tickler.fires.redaction import redacted_entry, redacted_fire
from tickler.model.fire import Fire
from tickler.model.schedule import StoredSchedule
from tickler.model.target import HttpTarget, Target
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.middleware.caller import Caller
from tickler.web.problems import Refused


class OwnerFilter(NamedTuple):
    """Restricts a list to one owner; None lists all owners."""

    owner: str | None


def path_id(request: HttpRequest) -> tuple[str, str]:
    """Return owner and key from the path. The schedules of other owners do not exist for a bound token."""
    owner, key = unquote(request.path_params["owner"]), unquote(request.path_params["key"])
    if not caller_of(request).can_see(owner):
        raise ScheduleNotFound(owner, key)
    return owner, key


async def schedule_at(request: HttpRequest) -> StoredSchedule:
    """Return the schedule that the path names."""
    owner, key = path_id(request)
    stored = await context_of(request).tickler.schedules.get(owner, key)
    if stored is None:
        raise ScheduleNotFound(owner, key)
    return stored


def owner_filter(request: HttpRequest, requested: str | None) -> OwnerFilter | None:
    """Return the owners that a list may show; None if the caller can see none of them, and the list is empty."""
    caller = caller_of(request)
    owner = caller.owner if requested is None else requested
    return OwnerFilter(owner) if caller.can_see(owner) else None


def may_write(caller: Caller, target: Target | None) -> bool:
    return caller.owner is None or target is None or isinstance(target, HttpTarget)


def check_target(caller: Caller, target: Target | None) -> None:
    """Refuse targets other than HTTP for tokens bound to an owner: they run with the worker's own rights."""
    if not may_write(caller, target):
        raise Refused(422, "this token may write HTTP targets only: give a URL", "target")


def names_workers(request: HttpRequest) -> bool:
    return caller_of(request).owner is None


def redact_fire(request: HttpRequest, fire: Fire) -> Fire:
    return fire if names_workers(request) else redacted_fire(fire)


def redact_fires(request: HttpRequest, page: FirePage, worker: str | None = None) -> FirePage:
    """Show `worker` in place of a worker's name."""
    return page if names_workers(request) else replace(page, items=[redacted_fire(fire, worker) for fire in page.items])


def redact_history(request: HttpRequest, page: HistoryPage) -> HistoryPage:
    return page if names_workers(request) else replace(page, items=[redacted_entry(entry) for entry in page.items])
