"""`/v1/fires`: open, waiting and dead fires."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import get_args
from urllib.parse import unquote

from litestar import Response, get, post

from tickler.errors import FireNotFound, InvalidInput
from tickler.model.fire import Fire, FireState
from tickler.server.audit_log import record
from tickler.server.authorization import owner_filter, redact_fire, redact_fires
from tickler.server.bulk_retry import retry_dead
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.json_body import empty_body, empty_page, json_body_of, json_response
from tickler.server.query_params import LIMIT, QueryParams
from tickler.web.problems import Refused

_STATES: tuple[FireState, ...] = get_args(FireState)


@get("/v1/fires", opt={"scope": "read"})
async def list_fires(request: HttpRequest) -> Response[bytes]:
    """List open, waiting or dead fires by nominal instant, one page at a time."""
    query = QueryParams(request, "state", "owner", "key", "limit", "after")
    visible = owner_filter(request, query.text("owner"))
    if visible is None:
        return empty_page()
    page = await context_of(request).tickler.fires.list(
        state=query.one_of("state", _STATES) or "open",
        owner=visible.owner,
        key=query.text("key"),
        limit=query.number(LIMIT),
        after=query.text("after"),
    )
    return json_response(redact_fires(request, page))


@get("/v1/fires/{fire_id:str}", opt={"scope": "read"})
async def get_fire(request: HttpRequest) -> Response[bytes]:
    """Return a fire that is not settled yet."""
    QueryParams(request)
    return json_response(redact_fire(request, await _fire_at(request)))


@post("/v1/fires/{fire_id:str}/retry", opt={"scope": "write"}, status_code=202)
async def retry_fire(request: HttpRequest) -> Response[bytes]:
    """Retry a dead fire, with its full number of attempts."""
    return await _changed(request, "retried", context_of(request).tickler.fires.retry, 202)


@post("/v1/fires/{fire_id:str}/cancel", opt={"scope": "write"}, status_code=200)
async def cancel_fire(request: HttpRequest) -> Response[bytes]:
    """Cancel a fire: it is never delivered."""
    return await _changed(request, "cancelled", context_of(request).tickler.fires.cancel)


@post("/v1/fires:retry", opt={"scope": "write"}, status_code=202)
async def retry_all_fires(request: HttpRequest) -> Response[bytes]:
    """Retry the dead fires of an owner, of a schedule or of all: `{"owner": …, "key": …}`, both optional.

    Takes the earliest `MAX_RETRIED`; `more` tells whether there are others.
    """
    QueryParams(request)
    fields = await json_body_of(request)
    if not isinstance(fields, dict):
        raise Refused(400, "the body is not an object: send {} for all fires, or owner and key")
    for name, value in fields.items():
        if name not in ("owner", "key") or not isinstance(value, str):
            raise Refused(400, f"{name[:40]!r}: only owner and key are known, and both take text", name[:40])
    visible = owner_filter(request, fields.get("owner"))
    if visible is None:
        return json_response({"retried": 0, "more": False}, 202)
    retried = await retry_dead(request, visible.owner, fields.get("key"))
    return json_response({"retried": retried.count, "more": retried.more}, 202)


HANDLERS = [list_fires, get_fire, retry_fire, cancel_fire, retry_all_fires]


async def _changed(
    request: HttpRequest, action: str, change: Callable[..., Awaitable[Fire]], status: int = 200
) -> Response[bytes]:
    QueryParams(request)
    await empty_body(request)
    fire = await _fire_at(request)
    changed = await change(fire.id, by=caller_of(request).name)
    await record(request, action, owner=fire.owner, key=fire.key, detail=fire.id)
    return json_response(redact_fire(request, changed), status)


async def _fire_at(request: HttpRequest) -> Fire:
    """Return the fire of the path, if the caller can see it."""
    fire_id = unquote(request.path_params["fire_id"])
    try:
        fire = await context_of(request).tickler.fires.get(fire_id)
    except InvalidInput:  # an impossible id
        fire = None
    if fire is None or not caller_of(request).can_see(fire.owner):
        raise FireNotFound(fire_id, "no open, waiting or dead fire has this id: its schedule's history may have it")
    return fire
