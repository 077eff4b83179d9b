"""*Failed*: fires that were given up, and those that are tried again; send them again, one or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Response, get, post

from tickler.errors import FireNotFound
from tickler.fires.redaction import SOMEBODY
from tickler.model.fire import Fire
from tickler.server.audit_log import record
from tickler.server.bulk_retry import MAX_RETRIED, retry_dead
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.pages.rendering import ask_first, form_of, inside, link, page, see
from tickler.server.response_redaction import redact_fires

PAGE = 50
CANCEL = "It is never delivered, then."


@get("/failed", opt={"scope": "read"})
async def failed(request: HttpRequest) -> Response[str]:
    fires, (owner, key) = context_of(request).tickler.fires, _of(request, request.query_params)
    after = request.query_params.get("after") or None
    dead = redact_fires(request, await fires.list(state="dead", owner=owner, key=key, limit=PAGE, after=after))
    open_fires = redact_fires(request, await fires.list(state="open", owner=owner, key=key, limit=PAGE), SOMEBODY)
    retrying = [fire for fire in open_fires.items if fire.reason is not None]
    groups = [[fire] for fire in dead.items] if key else alike(dead.items)
    return await page(request, "failed", "failed", dead=dead, groups=groups, retrying=retrying, owner=owner, key=key)


@get("/failed/retry-all", opt={"scope": "write"})
async def ask(request: HttpRequest) -> Response[str]:
    """What will happen, before it does."""
    owner, key = _of(request, request.query_params)
    dead = await context_of(request).tickler.fires.list(state="dead", owner=owner, key=key, limit=MAX_RETRIED)
    ids = {(fire.owner, fire.key) for fire in dead.items}
    return await page(
        request,
        "retry_all",
        "failed",
        count=len(dead.items),
        more=dead.next is not None,
        schedules=len(ids),
        owners=len({o for o, _ in ids}),
        owner=owner,
        key=key,
    )


@post("/failed/retry-all", opt={"scope": "write"}, status_code=200)
async def retry_all(request: HttpRequest) -> Response[Any]:
    owner, key = _of(request, await form_of(request))
    retried = await retry_dead(request, owner, key)
    return see(link(owner, key) if owner and key else "/failed", "retried-some" if retried.more else "retried-all")


@post("/failed/{fire_id:str}/{change:str}", opt={"scope": "write"}, status_code=200)
async def change(request: HttpRequest) -> Response[Any]:
    fire_id, change = request.path_params["fire_id"], request.path_params["change"]
    fields = await form_of(request)
    tickler, who = context_of(request).tickler, caller_of(request)
    fire = await tickler.fires.get(fire_id)
    if fire is None or not who.can_see(fire.owner) or change not in ("retry", "cancel"):
        raise FireNotFound(fire_id, "there is no such fire any more: somebody else was faster")
    back = inside(fields.get("back"), "/failed")
    if change == "cancel" and "sure" not in fields:
        return await ask_first(request, f"/failed/{fire_id}/cancel", "Cancel it", CANCEL, back)
    done, said = (tickler.fires.retry, "retried") if change == "retry" else (tickler.fires.cancel, "cancelled")
    await done(fire_id, by=who.name)
    await record(request, said, owner=fire.owner, key=fire.key, detail=fire_id)
    return see(back, said)


HANDLERS = [failed, ask, retry_all, change]


def alike(fires: Sequence[Fire]) -> list[list[Fire]]:
    """Those of the same schedule that failed for the same reason are one line: a single broken one must not hide all others."""
    groups: dict[tuple[str, str, str | None], list[Fire]] = {}
    for fire in fires:
        groups.setdefault((fire.owner, fire.key, fire.reason), []).append(fire)
    return list(groups.values())


def _of(request: HttpRequest, asked: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The owner and the key that were asked for; all of them, where none was. Who is bound to an owner asks for no other."""
    owner = caller_of(request).owner or asked.get("owner") or None
    return owner, asked.get("key") or None if owner else None
