"""How far a caller reaches: whose schedules are there for them, and what they may write."""

from __future__ import annotations

from urllib.parse import unquote

from tickler.errors import ScheduleNotFound
from tickler.model.schedule import StoredSchedule
from tickler.model.target import HttpTarget, Target
from tickler.server.context import HttpRequest, caller, service_of
from tickler.server.middleware.caller import Caller
from tickler.server.problems import Refused


def place(request: HttpRequest) -> tuple[str, str]:
    """Owner and key from the path. Those of others do not exist."""
    owner, key = unquote(request.path_params["owner"]), unquote(request.path_params["key"])
    if not caller(request).may_see(owner):
        raise ScheduleNotFound(owner, key)
    return owner, key


async def schedule_at(request: HttpRequest) -> StoredSchedule:
    """The one that the path names."""
    owner, key = place(request)
    stored = await service_of(request).tickler.schedules.get(owner, key)
    if stored is None:
        raise ScheduleNotFound(owner, key)
    return stored


def visible_owner(request: HttpRequest, asked_for: str | None) -> str | None:
    """Whose data a list may show: one owner's, or everybody's. A bound token sees no list but its own."""
    bound = caller(request).owner
    if bound is not None and asked_for not in (None, bound):
        raise Nothing
    return bound or asked_for


class Nothing(Exception):
    """It is not theirs: the same as if there were nothing."""


def check_target(who: Caller, target: Target | None) -> None:
    """Whoever is bound to an owner must not reach into the worker."""
    if who.owner is not None and target is not None and not isinstance(target, HttpTarget):
        raise Refused(422, "this token may write HTTP targets only: give a URL", "target")
