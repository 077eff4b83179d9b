"""*Dead*: dead, retrying and postponed fires; retry them, one or all, or cancel them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Response, get, post

from tickler.errors import FireNotFound
from tickler.fires.redaction import SOMEBODY
from tickler.model.fire import Fire
from tickler.server.audit_log import record
from tickler.server.authorization import redact_fires
from tickler.server.bulk_retry import MAX_RETRIED, retry_dead
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.pages.rendering import confirmation_page, page, read_form, redirect, schedule_path
from tickler.web.redirects import local_path

PAGE = 50
CANCEL = "The fire will never be delivered."


@get("/failed", opt={"scope": "read"})
async def failed(request: HttpRequest) -> Response[str]:
    fires, (owner, key) = context_of(request).tickler.fires, _filter(request, request.query_params)
    after = request.query_params.get("after") or None
    dead = redact_fires(request, await fires.list(state="dead", owner=owner, key=key, limit=PAGE, after=after))
    open_fires = redact_fires(request, await fires.list(state="open", owner=owner, key=key, limit=PAGE), SOMEBODY)
    retrying = [fire for fire in open_fires.items if fire.reason is not None and not fire.was_postponed]
    postponed = [fire for fire in open_fires.items if fire.was_postponed]
    groups = [[fire] for fire in dead.items] if key else group_by_reason(dead.items)
    return await page(
        request, "failed", "failed", dead=dead, groups=groups, retrying=retrying, postponed=postponed, owner=owner, key=key
    )


@get("/failed/retry-all", opt={"scope": "write"})
async def confirm_retry_all(request: HttpRequest) -> Response[str]:
    """Say how many fires a retry of all would queue."""
    owner, key = _filter(request, request.query_params)
    dead = await context_of(request).tickler.fires.list(state="dead", owner=owner, key=key, limit=MAX_RETRIED)
    ids = {(fire.owner, fire.key) for fire in dead.items}
    return await page(
        request, "retry_all", "failed", owner=owner, key=key,
        count=len(dead.items), more=dead.next is not None, schedules=len(ids), owners=len({o for o, _ in ids}),
    )  # fmt: skip


@post("/failed/retry-all", opt={"scope": "write"}, status_code=200)
async def retry_all(request: HttpRequest) -> Response[Any]:
    owner, key = _filter(request, await read_form(request))
    retried = await retry_dead(request, owner, key)
    return redirect(schedule_path(owner, key) if owner and key else "/failed", "retried-some" if retried.more else "retried-all")


@post("/failed/{fire_id:str}/{change:str}", opt={"scope": "write"}, status_code=200)
async def change(request: HttpRequest) -> Response[Any]:
    fire_id, change = request.path_params["fire_id"], request.path_params["change"]
    fields = await read_form(request)
    tickler, who = context_of(request).tickler, caller_of(request)
    fire = await tickler.fires.get(fire_id)
    if fire is None or not who.can_see(fire.owner) or change not in ("retry", "cancel"):
        raise FireNotFound(fire_id, "this fire no longer exists: it was delivered, retried or cancelled meanwhile")
    back = local_path(fields.get("back"), "/failed")
    if change == "cancel" and "confirmed" not in fields:
        return await confirmation_page(request, f"/failed/{fire_id}/cancel", "Cancel the fire", CANCEL, back)
    apply, action = (tickler.fires.retry, "retried") if change == "retry" else (tickler.fires.cancel, "cancelled")
    await apply(fire_id, by=who.name)
    await record(request, action, owner=fire.owner, key=fire.key, detail=fire_id)
    return redirect(back, action)


HANDLERS = [failed, confirm_retry_all, retry_all, change]


def group_by_reason(fires: Sequence[Fire]) -> list[list[Fire]]:
    """Group fires of one schedule that died for the same reason, so that one broken schedule does not hide all others."""
    groups: dict[tuple[str, str, str | None], list[Fire]] = {}
    for fire in fires:
        groups.setdefault((fire.owner, fire.key, fire.reason), []).append(fire)
    return list(groups.values())


def _filter(request: HttpRequest, given: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the owner and the key to show; None stands for all. A caller who is limited to an owner gets that owner."""
    owner = caller_of(request).owner or given.get("owner") or None
    return owner, given.get("key") or None if owner else None
