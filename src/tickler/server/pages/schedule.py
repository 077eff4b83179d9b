"""One schedule: why it fires or not, its timeline and history, and the buttons that change it."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.clock import datetime_ms
from tickler.errors import ScheduleNotFound
from tickler.fires.redaction import SOMEBODY
from tickler.model.fire import Health
from tickler.model.schedule import StoredSchedule
from tickler.server.audit_log import record
from tickler.server.authorization import may_write, names_workers, path_id, redact_fires, redact_history
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.pages.rendering import confirmation_page, page, read_form, redirect, schedule_path
from tickler.server.pages.schedules import payload_text
from tickler.server.pages.timeline import timeline
from tickler.web.redirects import local_path, with_query
from tickler.when import Unreadable, marked
from tickler.when.describe import in_words

HISTORY = 20
UPCOMING = 10
MAX_MARKS = 20  # unsettled fires in each state on the timeline
MAX_ROWS = 3  # the same in the table
DELETE = "Delete {} / {}? Its pending and dead fires are cancelled."
PATH = "/schedules/{owner:str}/{key:str}"


@get(PATH, opt={"scope": "read"})
async def schedule(request: HttpRequest) -> Response[str]:
    owner, key = path_id(request)
    tickler = context_of(request).tickler
    stored = await tickler.schedules.get(owner, key)
    after = request.query_params.get("after") or None
    history = redact_history(request, await tickler.fires.history(owner, key, limit=HISTORY, after=after))
    if stored is None and not history.items:
        raise ScheduleNotFound(owner, key)
    by_state = [
        redact_fires(request, await tickler.fires.list(state=state, owner=owner, key=key, limit=MAX_MARKS), SOMEBODY).items
        for state in ("open", "waiting", "dead")
    ]
    fires = [fire for each in by_state for fire in each]
    listed = [fire for each in by_state for fire in each[:MAX_ROWS]]
    health = Health(failing=bool(by_state[-1]))
    is_readable = stored is not None and not isinstance(stored.when, Unreadable)
    return await page(
        request, "schedule", "schedules",
        owner=owner, key=key, subject=f"{owner}/{key}", stored=stored, history=history, health=health,
        payload="" if stored is None else await payload_text(request, stored),
        warnings=[] if stored is None else tickler.warnings(stored.target),
        may_edit=stored is not None and may_write(caller_of(request), stored.target),
        fires=listed, unlisted=len(fires) - len(listed), dead=len(by_state[-1]), max_marks=MAX_MARKS,
        words=in_words(stored.when) if stored is not None and is_readable else "",
        upcoming=_upcoming(stored) if stored is not None and is_readable else [],
        why=await tickler.why(owner, key, names_workers=names_workers(request)), delete=DELETE.format(owner, key),
        timeline=timeline(history.items, fires, tickler.now_ms(), _paused_at(stored)),
    )  # fmt: skip


@post(f"{PATH}/{{change:str}}", opt={"scope": "write"}, status_code=200)
async def change(request: HttpRequest) -> Response[Any]:
    """Do what a button of the page says."""
    change = request.path_params["change"]
    fields = await read_form(request)
    owner, key = path_id(request)
    tickler, detail = context_of(request).tickler, None
    back = local_path(fields.get("back"), schedule_path(owner, key))
    if change in ("pause", "resume"):
        await (tickler.schedules.pause if change == "pause" else tickler.schedules.resume)(owner, key)
        action = f"{change}d"
    elif change == "trigger":
        detail = (await tickler.trigger(owner, key)).id
        action = "triggered"
    elif change == "delete":
        if "confirmed" not in fields:
            path = schedule_path(owner, key, "delete")
            return await confirmation_page(request, path, "Delete", DELETE.format(owner, key), back)
        if not await tickler.schedules.delete(owner, key):
            raise ScheduleNotFound(owner, key)
        action, back = "deleted", with_query("/schedules", owner=owner)
    else:
        raise ScheduleNotFound(owner, key)
    await record(request, action, owner=owner, key=key, detail=detail)
    return redirect(back, action)


HANDLERS = [schedule, change]


def _paused_at(stored: StoredSchedule | None) -> int | None:
    """Return an instant since which the schedule has been paused: that of its last change."""
    return stored.updated_at if stored is not None and stored.state == "paused" else None


def _upcoming(stored: StoredSchedule) -> list[tuple[int, tuple[str, ...]]]:
    """Return the next instants of the expression, with notes on clock changes; empty if the schedule does not fire."""
    if stored.next_fire_at is None:
        return []
    instants = marked(stored.when, stored.next_fire_at - stored.offset_ms() - 1, UPCOMING, stored.ends_at)
    return [(datetime_ms(each.at, "at"), each.marks) for each in instants]
