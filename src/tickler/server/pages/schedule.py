"""*One schedule*: its timeline, every attempt, why; and the buttons that change it."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.clock import datetime_ms
from tickler.errors import ScheduleNotFound
from tickler.fires.redaction import SOMEBODY
from tickler.model.fire import Health
from tickler.model.schedule import StoredSchedule
from tickler.server.audit_log import record
from tickler.server.authorization import path_id
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.pages.rendering import address, ask_first, form_of, inside, link, page, see
from tickler.server.pages.schedules import may_edit, payload_text
from tickler.server.pages.timeline import timeline
from tickler.server.response_redaction import names_workers, redact_fires, redact_history
from tickler.when import Unreadable, marked
from tickler.when.describe import in_words

HISTORY = 20
UPCOMING = 10
MARKED = 20  # fires that are owed, in each state: on the timeline
LISTED = 3  # and in the table
DELETE = "Delete {} / {}? What it still owes is cancelled."
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
    owed = [
        redact_fires(request, await tickler.fires.list(state=state, owner=owner, key=key, limit=MARKED), SOMEBODY).items
        for state in ("open", "waiting", "dead")
    ]
    fires = [fire for each in owed for fire in each]
    listed = [fire for each in owed for fire in each[:LISTED]]
    health = Health(failing=bool(owed[-1]))
    reads = stored is not None and not isinstance(stored.when, Unreadable)
    return await page(
        request, "schedule", "schedules",
        owner=owner, key=key, stored=stored, history=history, health=health,
        payload="" if stored is None else await payload_text(request, stored),
        warnings=[] if stored is None else tickler.warnings(stored.target),
        may_edit=stored is not None and may_edit(caller_of(request), stored.target),
        fires=listed, others=len(fires) - len(listed), dead=len(owed[-1]), most=MARKED,
        words=in_words(stored.when) if stored is not None and reads else "",
        upcoming=_upcoming(stored) if stored is not None and reads else [],
        why=await tickler.why(owner, key, names_workers=names_workers(request)), delete=DELETE.format(owner, key),
        drawn=timeline(history.items, fires, tickler.now_ms(), _paused_at(stored)),
    )  # fmt: skip


@post(f"{PATH}/{{change:str}}", opt={"scope": "write"}, status_code=200)
async def change(request: HttpRequest) -> Response[Any]:
    """A button of the page."""
    change = request.path_params["change"]
    fields = await form_of(request)
    owner, key = path_id(request)
    tickler, detail = context_of(request).tickler, None
    back = inside(fields.get("back"), link(owner, key))
    if change == "pause":
        await tickler.schedules.pause(owner, key)
        said = "paused"
    elif change == "resume":
        await tickler.schedules.resume(owner, key)
        said = "resumed"
    elif change == "trigger":
        detail = (await tickler.trigger(owner, key)).id
        said = "triggered"
    elif change == "delete":
        if "sure" not in fields:
            return await ask_first(request, link(owner, key, "delete"), "Delete", DELETE.format(owner, key), back)
        if not await tickler.schedules.delete(owner, key):
            raise ScheduleNotFound(owner, key)
        said, back = "deleted", address("/schedules", owner=owner)
    else:
        raise ScheduleNotFound(owner, key)
    await record(request, said, owner=owner, key=key, detail=detail)
    return see(back, said)


HANDLERS = [schedule, change]


def _paused_at(stored: StoredSchedule | None) -> int | None:
    """Since when it has been paused at least: whatever was changed last, it was paused from then on."""
    return stored.updated_at if stored is not None and stored.state == "paused" else None


def _upcoming(stored: StoredSchedule) -> list[tuple[int, tuple[str, ...]]]:
    """Its next instants, as it is declared, and what the clock does there; none where it does not fire."""
    if stored.next_fire_at is None:
        return []
    found = marked(stored.when, stored.next_fire_at - stored.offset_ms() - 1, UPCOMING, stored.ends_at)
    return [(datetime_ms(each.at, "at"), each.marks) for each in found]
