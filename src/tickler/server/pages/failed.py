"""*Failed*: fires that were given up, and those that are tried again; send them again, one or all."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.errors import FireNotFound
from tickler.nameless import SOMEBODY
from tickler.server.deeds import note
from tickler.server.pages.page import form_of, page, see
from tickler.server.retrying import MOST_RETRIED, retry_dead
from tickler.server.seen import fires_seen
from tickler.server.service import Asked, caller, service_of

PAGE = 50


@get("/failed", opt={"scope": "read"})
async def failed(request: Asked) -> Response[str]:
    fires, owner = service_of(request).tickler.fires, caller(request).owner
    after = request.query_params.get("after") or None
    dead = fires_seen(request, await fires.list(state="dead", owner=owner, limit=PAGE, after=after))
    open_fires = fires_seen(request, await fires.list(state="open", owner=owner, limit=PAGE), SOMEBODY)
    retrying = [fire for fire in open_fires.items if fire.reason is not None]
    return await page(request, "failed", "failed", dead=dead, retrying=retrying)


@get("/failed/retry-all", opt={"scope": "write"})
async def ask(request: Asked) -> Response[str]:
    """What will happen, before it does."""
    dead = await service_of(request).tickler.fires.list(state="dead", owner=caller(request).owner, limit=MOST_RETRIED)
    ids = {(fire.owner, fire.key) for fire in dead.items}
    return await page(
        request,
        "retry_all",
        "failed",
        count=len(dead.items),
        more=dead.next is not None,
        schedules=len(ids),
        owners=len({o for o, _ in ids}),
    )


@post("/failed/retry-all", opt={"scope": "write"}, status_code=200)
async def retry_all(request: Asked) -> Response[Any]:
    await form_of(request)
    retried = await retry_dead(request, caller(request).owner)
    return see("/failed", "retried-some" if retried.more else "retried-all")


@post("/failed/{fire_id:str}/{change:str}", opt={"scope": "write"}, status_code=200)
async def change(request: Asked) -> Response[Any]:
    fire_id, change = request.path_params["fire_id"], request.path_params["change"]
    await form_of(request)
    tickler, who = service_of(request).tickler, caller(request)
    fire = await tickler.fires.get(fire_id)
    if fire is None or not who.may_see(fire.owner) or change not in ("retry", "cancel"):
        raise FireNotFound(fire_id, "there is no such fire any more: somebody else was faster")
    done, said = (tickler.fires.retry, "retried") if change == "retry" else (tickler.fires.cancel, "cancelled")
    await done(fire_id, by=who.name)
    await note(request, said, owner=fire.owner, key=fire.key, detail=fire_id)
    return see("/failed", said)


HANDLERS = [failed, ask, retry_all, change]
