"""`/v1/schedules`: what users declare."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import get_args

import msgspec
from litestar import Response, delete, get, patch, post, put, route
from litestar.enums import HttpMethod

from tickler.errors import ScheduleNotFound
from tickler.model.cursor import encode_schedule
from tickler.model.fire import health_to_json
from tickler.model.schedule import Schedule, State, StoredSchedule
from tickler.model.schedule_json import encode_stored, schedule_from_json
from tickler.schedules.payload_patch import encoded_patch
from tickler.schedules.schedules import Written
from tickler.server.audit_log import record
from tickler.server.authorization import Nothing, check_target, place, schedule_at, visible_owner
from tickler.server.context import HttpRequest, caller, service_of
from tickler.server.etags import etag, expected_by, is_known
from tickler.server.json_body import ACCEPT_PATCH, answered, aside_of, body_of, empty_body, merge_patch_of
from tickler.server.problems import Refused
from tickler.server.query_params import MAX_LISTED, QueryParams
from tickler.server.response_redaction import history_seen, names_workers
from tickler.when import When, parse_when
from tickler.when.describe import in_words
from tickler.when.dst_marks import marked

PATH = "/v1/schedules/{owner:str}/{key:str}"
REMOVED = "tickler-removed"  # the header that names the fields which a put or a patch has taken away
MAX_PREVIEWED = 100
MAX_PAGE_BYTES = 4_000_000
READ_TOGETHER = 200  # each may have a payload of 256 KB


@put(PATH, opt={"scope": "write"})
async def put_schedule(request: HttpRequest) -> Response[bytes]:
    """Make or replace one. With `If-Match` only if it is at that version, with `If-None-Match: *` only if there is none."""
    QueryParams(request)
    owner, key = place(request)
    schedule: Schedule = await body_of(request, lambda fields: _declared(fields, owner, key))
    check_target(caller(request), schedule.target)
    written = await service_of(request).tickler.schedules.write(schedule, version=expected_by(request))
    await record(request, "put", owner=owner, key=key, detail=f"version {written.schedule.version}")
    return _written(request, written)


@patch(PATH, opt={"scope": "write"})
async def patch_schedule(request: HttpRequest) -> Response[bytes]:
    """Change some fields and keep the rest: a JSON merge patch. With `If-Match` only if it is at that version."""
    QueryParams(request)
    owner, key = place(request)
    fields = await merge_patch_of(request, lambda body: encoded_patch(_fields(body, owner, key)))
    written = await service_of(request).tickler.schedules.patch(
        owner,
        key,
        fields,
        version=expected_by(request),
        check=lambda schedule: check_target(caller(request), schedule.target),
        aside=aside_of(request),
    )
    if written.is_changed:
        names = ", ".join(sorted(fields))
        await record(request, "patched", owner=owner, key=key, detail=f"{names}: version {written.schedule.version}")
    return _written(request, written)


@get(PATH, opt={"scope": "read"})
async def get_schedule(request: HttpRequest) -> Response[bytes]:
    """One, as it is stored, and how its fires fare."""
    QueryParams(request)
    stored = await schedule_at(request)
    health = (await service_of(request).tickler.fires.health([stored.id]))[stored.id]
    headers = etag(stored, health)
    if is_known(request, headers["etag"]):
        return Response(b"", status_code=304, headers=headers)
    return answered(msgspec.Raw(encode_stored(stored, health_to_json(health))), headers=headers)


@delete(PATH, opt={"scope": "write"}, status_code=204)
async def delete_schedule(request: HttpRequest) -> None:
    """Remove it, and cancel what it owes. With `If-Match` only if it is at that version."""
    QueryParams(request)
    owner, key = place(request)
    await empty_body(request)
    if not await service_of(request).tickler.schedules.delete(owner, key, version=expected_by(request)):
        raise ScheduleNotFound(owner, key)
    await record(request, "deleted", owner=owner, key=key)


@route(PATH, http_method=[HttpMethod.OPTIONS], opt={"scope": "read"}, status_code=204)
async def options_of_schedule(request: HttpRequest) -> Response[None]:
    """Litestar's own answer names the first of these alone, where several functions share a path."""
    return Response(None, status_code=204, headers={"allow": "DELETE, GET, OPTIONS, PATCH, PUT", "accept-patch": ACCEPT_PATCH})


@get("/v1/schedules", opt={"scope": "read"})
async def list_schedules(request: HttpRequest) -> Response[bytes]:
    """By owner and key, a page at a time: of as many as are asked for, or fewer that are about 4 MB."""
    query = QueryParams(request, "owner", "key_prefix", "state", "failing", "limit", "after")
    states: tuple[State, ...] = get_args(State)
    prefix = query.text("key_prefix")
    try:
        owner = visible_owner(request, query.text("owner"))
    except Nothing:
        return answered({"items": [], "next": None})
    if prefix and owner is None:
        raise Refused(422, "key_prefix goes with owner: name whose keys they are", "key_prefix")
    state = query.one_of("state", states)
    if state == "unindexed" and caller(request).owner is not None:
        raise Refused(422, "to find those, all are compared with the index: whoever operates the service may ask", "state")
    failing = query.one_of("failing", ("true", "false")) == "true"
    left, after = query.number("limit", 100, MAX_LISTED), query.text("after")
    tickler = service_of(request).tickler
    items: list[msgspec.Raw] = []
    size = 0
    while True:
        page = await tickler.schedules.list(
            owner=owner, key_prefix=prefix or None, state=state, failing=failing, limit=min(left, READ_TOGETHER), after=after
        )
        health = await tickler.fires.health(stored.id for stored in page.items)
        for stored in page.items:
            item = msgspec.Raw(encode_stored(stored, health_to_json(health[stored.id])))
            size += len(item)
            if items and size > MAX_PAGE_BYTES:
                return answered({"items": items, "next": after})
            items.append(item)
            after = encode_schedule(stored.id)
        left -= len(page.items)
        if page.next is None or not left:
            return answered({"items": items, "next": page.next})


@post(f"{PATH}/pause", opt={"scope": "write"}, status_code=200)
async def pause_schedule(request: HttpRequest) -> Response[bytes]:
    """Hold new fires. With `If-Match` only if it is at that version."""
    return await _changed(request, "paused", service_of(request).tickler.schedules.pause)


@post(f"{PATH}/resume", opt={"scope": "write"}, status_code=200)
async def resume_schedule(request: HttpRequest) -> Response[bytes]:
    """Fire again, from now on. With `If-Match` only if it is at that version."""
    return await _changed(request, "resumed", service_of(request).tickler.schedules.resume)


@post(f"{PATH}/trigger", opt={"scope": "write"}, status_code=202)
async def trigger_schedule(request: HttpRequest) -> Response[bytes]:
    """Fire now, out of turn, whatever version there is."""
    QueryParams(request)
    await empty_body(request)
    for name in ("if-match", "if-none-match"):
        if name in request.headers:
            raise Refused(400, f"whatever is stored is fired, and no version waited for: leave {name} out", name)
    owner, key = place(request)
    fire = await service_of(request).tickler.trigger(owner, key)
    await record(request, "triggered", owner=owner, key=key, detail=fire.id)
    return answered(fire, 202)


@get(f"{PATH}/preview", opt={"scope": "read"})
async def preview_schedule(request: HttpRequest) -> Response[bytes]:
    """Its next instants, in its own zone."""
    query = QueryParams(request, "n", "after")
    count, after = query.number("n", 10, MAX_PREVIEWED), query.instant("after")
    stored = await schedule_at(request)
    start = service_of(request).tickler.now_ms() if after is None else after
    if stored.starts_at is not None:
        start = max(start, stored.starts_at - 1)
    return await _preview(request, stored.when, count, start, stored.ends_at)


@get("/v1/preview", opt={"scope": "read"})
async def preview(request: HttpRequest) -> Response[bytes]:
    """The next instants of an expression that is not stored; and what there is to say of a target."""
    query = QueryParams(request, "when", "tz", "n", "after", "target")
    text = query.text("when")
    if text is None:
        raise Refused(400, "is missing: give an expression such as '0 9 * * tue'", "when")
    when = parse_when(text, tz=query.text("tz"))
    after = query.instant("after")
    now_ms = service_of(request).tickler.now_ms()
    count, start = query.number("n", 10, MAX_PREVIEWED), now_ms if after is None else after
    target = query.text("target")
    if target is not None and "write" not in caller(request).scopes:  # warnings tell which networks workers reach
        raise Refused(403, "only a token with the scope 'write' is told about targets: leave target out", "target")
    return await _preview(request, when, count, start, target=target)


@get(f"{PATH}/why", opt={"scope": "read"})
async def why_schedule(request: HttpRequest) -> Response[bytes]:
    """Why it fired at an instant, or did not; or how it stands now."""
    query = QueryParams(request, "at")
    owner, key = place(request)
    tickler = service_of(request).tickler
    return answered(await tickler.why(owner, key, query.instant("at"), names_workers=names_workers(request)))


@get(f"{PATH}/fires", opt={"scope": "read"})
async def fires_of_schedule(request: HttpRequest) -> Response[bytes]:
    """What happened to its fires, the latest first; it outlives the schedule."""
    query = QueryParams(request, "limit", "after")
    owner, key = place(request)
    limit, after = query.number("limit", 100, MAX_LISTED), query.text("after")
    return answered(history_seen(request, await service_of(request).tickler.fires.history(owner, key, limit=limit, after=after)))


HANDLERS = [
    options_of_schedule,  # first, or Litestar makes one of its own
    put_schedule,
    patch_schedule,
    get_schedule,
    delete_schedule,
    list_schedules,
    pause_schedule,
    resume_schedule,
    trigger_schedule,
    preview_schedule,
    preview,
    why_schedule,
    fires_of_schedule,
]


async def _preview(
    request: HttpRequest, when: When, count: int, after: int, until: int | None = None, target: str | None = None
) -> Response[bytes]:
    """On a thread: a hundred 29ths of February that are Sundays take a second to find."""
    pool, asking = service_of(request).preview_pool, caller(request).token_id or ""
    following = await pool.run(asking, lambda: list(marked(when, after, count, until)))
    instants = [each.to_json() for each in following]
    found = {"when": str(when), "tz": when.tz, "words": in_words(when), "next": instants}
    warnings = service_of(request).tickler.warnings(target)
    return answered(found | {"warnings": warnings} if warnings else found)


def _declared(body: object, owner: str, key: str) -> Schedule:
    return schedule_from_json({**_fields(body, owner, key), "owner": owner, "key": key})


def _fields(body: object, owner: str, key: str) -> dict[str, object]:
    """Of the body, without its place, which is in the path; where the body names one too, it is the same."""
    if not isinstance(body, dict):
        raise Refused(400, "the body is no object: send one with `when`, and `target` if it is to be delivered")
    for name, value in (("owner", owner), ("key", key)):
        if body.get(name) not in (None, value):
            raise Refused(422, f"{name} in the body is not that of the path: leave it out of the body", name)
    return {name: value for name, value in body.items() if name not in ("owner", "key")}


def _written(request: HttpRequest, written: Written) -> Response[bytes]:
    """The schedule as it is now; what was taken from it is said beside, so that the JSON of a schedule is the same everywhere."""
    removed = written.removed
    headers = etag(written.schedule) | ({REMOVED: ", ".join(removed)} if removed else {})
    warnings = service_of(request).tickler.warnings(written.schedule.target)
    more = {"warnings": warnings} if warnings else {}
    return answered(msgspec.Raw(encode_stored(written.schedule, more)), 201 if written.is_new else 200, headers)


async def _changed(request: HttpRequest, action: str, change: Callable[..., Awaitable[StoredSchedule]]) -> Response[bytes]:
    QueryParams(request)
    await empty_body(request)
    owner, key = place(request)
    stored = await change(owner, key, version=expected_by(request))
    await record(request, action, owner=owner, key=key)
    return answered(msgspec.Raw(encode_stored(stored)), headers=etag(stored))
