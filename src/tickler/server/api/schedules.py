"""`/v1/schedules`: reads and writes schedules; previews and explains them."""

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
from tickler.server.authorization import check_target, names_workers, owner_filter, path_id, redact_history, schedule_at
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.etags import etag, expected_by, is_known
from tickler.server.json_body import ACCEPT_PATCH, empty_body, empty_page, json_body_of, json_response, merge_patch_of, off_loop
from tickler.server.query_params import LIMIT, PREVIEW_COUNT, QueryParams
from tickler.web.problems import Refused
from tickler.when import When, parse_when
from tickler.when.describe import in_words
from tickler.when.dst_marks import marked

PATH = "/v1/schedules/{owner:str}/{key:str}"
REMOVED = "tickler-removed"  # header: the fields that a put or patch removed
MAX_PAGE_BYTES = 4_000_000
READ_TOGETHER = 200  # per read: each may have a payload of 256 KB


@put(PATH, opt={"scope": "write"})
async def put_schedule(request: HttpRequest) -> Response[bytes]:
    """Create or replace a schedule. `If-Match`: only at that version; `If-None-Match: *`: only if it does not exist."""
    QueryParams(request)
    owner, key = path_id(request)
    schedule: Schedule = await json_body_of(request, lambda fields: _declared(fields, owner, key))
    check_target(caller_of(request), schedule.target)
    written = await context_of(request).tickler.schedules.write(schedule, version=expected_by(request))
    await record(request, "put", owner=owner, key=key, detail=f"version {written.schedule.version}")
    return _written(request, written)


@patch(PATH, opt={"scope": "write"})
async def patch_schedule(request: HttpRequest) -> Response[bytes]:
    """Apply a JSON merge patch: change some fields and keep the rest. `If-Match`: only at that version."""
    QueryParams(request)
    owner, key = path_id(request)
    fields = await merge_patch_of(request, lambda body: encoded_patch(_fields(body, owner, key)))
    written = await context_of(request).tickler.schedules.patch(
        owner,
        key,
        fields,
        version=expected_by(request),
        check=lambda schedule: check_target(caller_of(request), schedule.target),
        aside=off_loop(request),
    )
    if written.is_changed:
        names = ", ".join(sorted(fields))
        await record(request, "patched", owner=owner, key=key, detail=f"{names}: version {written.schedule.version}")
    return _written(request, written)


@get(PATH, opt={"scope": "read"})
async def get_schedule(request: HttpRequest) -> Response[bytes]:
    """Return a stored schedule with its health."""
    QueryParams(request)
    stored = await schedule_at(request)
    health = (await context_of(request).tickler.fires.health([stored.id]))[stored.id]
    headers = etag(stored, health)
    if is_known(request, headers["etag"]):
        return Response(b"", status_code=304, headers=headers)
    return json_response(msgspec.Raw(encode_stored(stored, health_to_json(health))), headers=headers)


@delete(PATH, opt={"scope": "write"}, status_code=204)
async def delete_schedule(request: HttpRequest) -> None:
    """Delete a schedule, and cancel its undelivered fires. `If-Match`: only at that version."""
    QueryParams(request)
    owner, key = path_id(request)
    await empty_body(request)
    if not await context_of(request).tickler.schedules.delete(owner, key, version=expected_by(request)):
        raise ScheduleNotFound(owner, key)
    await record(request, "deleted", owner=owner, key=key)


@route(PATH, http_method=[HttpMethod.OPTIONS], opt={"scope": "read"}, status_code=204)
async def options_of_schedule(request: HttpRequest) -> Response[None]:
    """Answer OPTIONS. Litestar's own answer names only one of several handlers that share a path."""
    return Response(None, status_code=204, headers={"allow": "DELETE, GET, OPTIONS, PATCH, PUT", "accept-patch": ACCEPT_PATCH})


@get("/v1/schedules", opt={"scope": "read"})
async def list_schedules(request: HttpRequest) -> Response[bytes]:
    """List schedules by owner and key, one page at a time. A page ends early at about 4 MB."""
    query = QueryParams(request, "owner", "key_prefix", "state", "failing", "limit", "after")
    states: tuple[State, ...] = get_args(State)
    prefix = query.text("key_prefix")
    visible = owner_filter(request, query.text("owner"))
    if visible is None:
        return empty_page()
    owner = visible.owner
    if prefix and owner is None:
        raise Refused(422, "key_prefix needs owner: name the owner of the keys", "key_prefix")
    state = query.one_of("state", states)
    if state == "unindexed" and caller_of(request).owner is not None:
        raise Refused(422, "unindexed needs a token that is not bound to an owner: it scans all schedules", "state")
    failing = query.one_of("failing", ("true", "false")) == "true"
    left, after = query.number(LIMIT), query.text("after")
    tickler = context_of(request).tickler
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
                return json_response({"items": items, "next": after})
            items.append(item)
            after = encode_schedule(stored.id)
        left -= len(page.items)
        if page.next is None or not left:
            return json_response({"items": items, "next": page.next})


@post(f"{PATH}/pause", opt={"scope": "write"}, status_code=200)
async def pause_schedule(request: HttpRequest) -> Response[bytes]:
    """Pause a schedule: no new fires. `If-Match`: only at that version."""
    return await _changed(request, "paused", context_of(request).tickler.schedules.pause)


@post(f"{PATH}/resume", opt={"scope": "write"}, status_code=200)
async def resume_schedule(request: HttpRequest) -> Response[bytes]:
    """Resume a schedule from now on. `If-Match`: only at that version."""
    return await _changed(request, "resumed", context_of(request).tickler.schedules.resume)


@post(f"{PATH}/trigger", opt={"scope": "write"}, status_code=202)
async def trigger_schedule(request: HttpRequest) -> Response[bytes]:
    """Fire a schedule now, outside its times, whatever its version."""
    QueryParams(request)
    await empty_body(request)
    for name in ("if-match", "if-none-match"):
        if name in request.headers:
            raise Refused(400, f"a trigger fires whatever is stored and checks no version: leave {name} out", name)
    owner, key = path_id(request)
    fire = await context_of(request).tickler.trigger(owner, key)
    await record(request, "triggered", owner=owner, key=key, detail=fire.id)
    return json_response(fire, 202)


@get(f"{PATH}/preview", opt={"scope": "read"})
async def preview_schedule(request: HttpRequest) -> Response[bytes]:
    """Return the next instants of a stored schedule, in its zone."""
    query = QueryParams(request, "n", "after")
    count, after = query.number(PREVIEW_COUNT), query.instant("after")
    stored = await schedule_at(request)
    start = context_of(request).tickler.now_ms() if after is None else after
    if stored.starts_at is not None:
        start = max(start, stored.starts_at - 1)
    return await _preview(request, stored.when, count, start, stored.ends_at)


@get("/v1/preview", opt={"scope": "read"})
async def preview(request: HttpRequest) -> Response[bytes]:
    """Return the next instants of an expression that is not stored, and the warnings about a target."""
    query = QueryParams(request, "when", "tz", "n", "after", "target")
    text = query.text("when")
    if text is None:
        raise Refused(400, "is missing: give an expression such as '0 9 * * tue'", "when")
    when = parse_when(text, tz=query.text("tz"))
    after = query.instant("after")
    now_ms = context_of(request).tickler.now_ms()
    count, start = query.number(PREVIEW_COUNT), now_ms if after is None else after
    target = query.text("target")
    if target is not None and "write" not in caller_of(request).scopes:  # warnings reveal which networks workers reach
        raise Refused(403, "target needs a token with the scope 'write': leave it out", "target")
    return await _preview(request, when, count, start, target=target)


@get(f"{PATH}/why", opt={"scope": "read"})
async def why_schedule(request: HttpRequest) -> Response[bytes]:
    """Explain why a schedule fired at an instant or did not, or its state now."""
    query = QueryParams(request, "at")
    owner, key = path_id(request)
    tickler = context_of(request).tickler
    return json_response(await tickler.why(owner, key, query.instant("at"), names_workers=names_workers(request)))


@get(f"{PATH}/fires", opt={"scope": "read"})
async def fires_of_schedule(request: HttpRequest) -> Response[bytes]:
    """Return the history of a schedule's fires, latest first. It outlives the schedule."""
    query = QueryParams(request, "limit", "after")
    owner, key = path_id(request)
    limit, after = query.number(LIMIT), query.text("after")
    history = await context_of(request).tickler.fires.history(owner, key, limit=limit, after=after)
    return json_response(redact_history(request, history))


HANDLERS = [
    options_of_schedule,  # first, or Litestar adds its own
    put_schedule, patch_schedule, get_schedule, delete_schedule, list_schedules, pause_schedule, resume_schedule,
    trigger_schedule, preview_schedule, preview, why_schedule, fires_of_schedule,
]  # fmt: skip


async def _preview(
    request: HttpRequest, when: When, count: int, after: int, until: int | None = None, target: str | None = None
) -> Response[bytes]:
    """Compute on a thread: finding a hundred 29ths of February that are Sundays takes a second."""
    pool, token_id = context_of(request).preview_pool, caller_of(request).token_id or ""
    following = await pool.run(token_id, lambda: list(marked(when, after, count, until)))
    instants = [each.to_json() for each in following]
    preview = {"when": str(when), "tz": when.tz, "words": in_words(when), "next": instants}
    warnings = context_of(request).tickler.warnings(target)
    return json_response(preview | {"warnings": warnings} if warnings else preview)


def _declared(body: object, owner: str, key: str) -> Schedule:
    return schedule_from_json({**_fields(body, owner, key), "owner": owner, "key": key})


def _fields(body: object, owner: str, key: str) -> dict[str, object]:
    """Return the body without owner and key, which are in the path; if the body repeats them, they must match."""
    if not isinstance(body, dict):
        raise Refused(400, "the body is not an object: send one with `when`, and with `target` to deliver it")
    for name, value in (("owner", owner), ("key", key)):
        if body.get(name) not in (None, value):
            raise Refused(422, f"{name} in the body differs from the path: leave it out of the body", name)
    return {name: value for name, value in body.items() if name not in ("owner", "key")}


def _written(request: HttpRequest, written: Written) -> Response[bytes]:
    """Return the written schedule. Removed fields are in a header, so that a schedule's JSON is the same everywhere."""
    removed = written.removed
    headers = etag(written.schedule) | ({REMOVED: ", ".join(removed)} if removed else {})
    warnings = context_of(request).tickler.warnings(written.schedule.target)
    more = {"warnings": warnings} if warnings else {}
    return json_response(msgspec.Raw(encode_stored(written.schedule, more)), 201 if written.is_new else 200, headers)


async def _changed(request: HttpRequest, action: str, change: Callable[..., Awaitable[StoredSchedule]]) -> Response[bytes]:
    QueryParams(request)
    await empty_body(request)
    owner, key = path_id(request)
    stored = await change(owner, key, version=expected_by(request))
    await record(request, action, owner=owner, key=key)
    return json_response(msgspec.Raw(encode_stored(stored)), headers=etag(stored))
