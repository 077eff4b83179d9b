"""`/v1/fires`: what is owed, and what was given up."""

from __future__ import annotations

from typing import get_args
from urllib.parse import unquote

from litestar import Response, get, post

from tickler.errors import FireNotFound, InvalidInput
from tickler.model.fire import Fire, FireState
from tickler.server.audit_log import record
from tickler.server.authorization import Nothing, visible_owner
from tickler.server.bulk_retry import retry_dead
from tickler.server.context import HttpRequest, caller, service_of
from tickler.server.json_body import answered, body_of, empty_body
from tickler.server.problems import Refused
from tickler.server.query_params import MAX_LISTED, QueryParams
from tickler.server.response_redaction import fire_seen, fires_seen

_STATES: tuple[FireState, ...] = get_args(FireState)


@get("/v1/fires", opt={"scope": "read"})
async def list_fires(request: HttpRequest) -> Response[bytes]:
    """Open, waiting or dead ones, by their nominal instant, a page at a time."""
    query = QueryParams(request, "state", "owner", "key", "limit", "after")
    try:
        owner = visible_owner(request, query.text("owner"))
    except Nothing:
        return answered({"items": [], "next": None})
    page = await service_of(request).tickler.fires.list(
        state=query.one_of("state", _STATES) or "open",
        owner=owner,
        key=query.text("key"),
        limit=query.number("limit", 100, MAX_LISTED),
        after=query.text("after"),
    )
    return answered(fires_seen(request, page))


@get("/v1/fires/{fire_id:str}", opt={"scope": "read"})
async def get_fire(request: HttpRequest) -> Response[bytes]:
    """One that is not settled yet."""
    QueryParams(request)
    return answered(fire_seen(request, await _found(request)))


@post("/v1/fires/{fire_id:str}/retry", opt={"scope": "write"}, status_code=202)
async def retry_fire(request: HttpRequest) -> Response[bytes]:
    """Send a dead one again, with all its attempts."""
    QueryParams(request)
    await empty_body(request)
    fire, who, tickler = await _found(request), caller(request), service_of(request).tickler
    again = await tickler.fires.retry(fire.id, by=who.name)
    await record(request, "retried", owner=fire.owner, key=fire.key, detail=fire.id)
    return answered(fire_seen(request, again), 202)


@post("/v1/fires/{fire_id:str}/cancel", opt={"scope": "write"}, status_code=200)
async def cancel_fire(request: HttpRequest) -> Response[bytes]:
    """Never deliver it."""
    QueryParams(request)
    await empty_body(request)
    fire, who, tickler = await _found(request), caller(request), service_of(request).tickler
    cancelled = await tickler.fires.cancel(fire.id, by=who.name)
    await record(request, "cancelled", owner=fire.owner, key=fire.key, detail=fire.id)
    return answered(fire_seen(request, cancelled))


@post("/v1/fires:retry", opt={"scope": "write"}, status_code=202)
async def retry_all_fires(request: HttpRequest) -> Response[bytes]:
    """Send dead fires of an owner, of one schedule or of all again: `{"owner": …, "key": …}`, both optional.

    The earliest 1,000; `more` says that there are others.
    """
    QueryParams(request)
    wanted = await body_of(request)
    if not isinstance(wanted, dict):
        raise Refused(400, "the body is no object with owner and key: send {} for all of them")
    for name, value in wanted.items():
        if name not in ("owner", "key") or not isinstance(value, str):
            raise Refused(400, f"{name[:40]!r} is not an owner or a key that is text: leave out what does not matter", name[:40])
    try:
        owner = visible_owner(request, wanted.get("owner"))
    except Nothing:
        return answered({"retried": 0, "more": False}, 202)
    retried = await retry_dead(request, owner, wanted.get("key"))
    return answered({"retried": retried.count, "more": retried.more}, 202)


HANDLERS = [list_fires, get_fire, retry_fire, cancel_fire, retry_all_fires]


async def _found(request: HttpRequest) -> Fire:
    """One that is the caller's to see."""
    fire_id = unquote(request.path_params["fire_id"])
    try:
        fire = await service_of(request).tickler.fires.get(fire_id)
    except InvalidInput:  # no fire has such an id
        fire = None
    if fire is None or not caller(request).may_see(fire.owner):
        raise FireNotFound(fire_id, "there is no fire of that id that is not settled: its schedule's history may have it")
    return fire
