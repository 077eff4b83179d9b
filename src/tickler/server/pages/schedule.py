"""*One schedule*: its timeline, every attempt, why; and the buttons that change it."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.errors import ScheduleNotFound
from tickler.nameless import SOMEBODY
from tickler.server.deeds import note
from tickler.server.pages.page import form_of, link, page, see
from tickler.server.pages.timeline import timeline
from tickler.server.reach import place
from tickler.server.seen import fires_seen, history_seen, names_workers
from tickler.server.service import Asked, service_of
from tickler.when import Unreadable
from tickler.when.words import in_words

HISTORY = 50
UPCOMING = 10
PATH = "/schedules/{owner:str}/{key:str}"


@get(PATH, opt={"scope": "read"})
async def schedule(request: Asked) -> Response[str]:
    owner, key = place(request)
    tickler = service_of(request).tickler
    stored = await tickler.schedules.get(owner, key)
    after = request.query_params.get("after") or None
    history = history_seen(request, await tickler.fires.history(owner, key, limit=HISTORY, after=after))
    if stored is None and not history.items:
        raise ScheduleNotFound(owner, key)
    open_fires = [
        fire
        for state in ("open", "waiting", "dead")
        for fire in fires_seen(request, await tickler.fires.list(state=state, owner=owner, key=key, limit=20), SOMEBODY).items
    ]
    reads = stored is not None and not isinstance(stored.when, Unreadable)
    return await page(
        request, "schedule", "schedules",
        owner=owner, key=key, stored=stored, history=history, fires=open_fires,
        words=in_words(stored.when) if stored is not None and reads else "",
        upcoming=_upcoming(stored, tickler.now_ms()) if reads else [],
        why=await tickler.why(owner, key, names_workers=names_workers(request)),
        drawn=timeline(history.items, open_fires, tickler.now_ms()),
    )  # fmt: skip


@post(f"{PATH}/{{change:str}}", opt={"scope": "write"}, status_code=200)
async def change(request: Asked) -> Response[Any]:
    """A button of the page."""
    change = request.path_params["change"]
    fields = await form_of(request)
    owner, key = place(request)
    tickler, detail = service_of(request).tickler, None
    back = link(owner, key) if fields.get("back") != "list" else "/schedules"
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
        if not await tickler.schedules.delete(owner, key):
            raise ScheduleNotFound(owner, key)
        said, back = "deleted", "/schedules"
    else:
        raise ScheduleNotFound(owner, key)
    await note(request, said, owner=owner, key=key, detail=detail)
    return see(back, said)


HANDLERS = [schedule, change]


def _upcoming(stored: Any, now_ms: int) -> list[int]:
    """Its next instants, as it is declared; none where it does not fire."""
    if stored.next_fire_at is None:
        return []
    found: list[int] = []
    at: int | None = stored.next_fire_at - stored.offset_ms()
    while at is not None and len(found) < UPCOMING and (stored.ends_at is None or at <= stored.ends_at):
        found.append(at)
        at = stored.when.next_after(at)
    return found
