"""*Schedules*: the list, and the form that creates or edits one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args
from zoneinfo import available_timezones

from litestar import Response, get, post
from msgspec.structs import replace

from tickler.errors import InvalidInput, TicklerError, VersionConflict
from tickler.model.payload import held_payload, payload_bytes
from tickler.model.policy import policy_to_json
from tickler.model.revision import Expected
from tickler.model.schedule import Schedule, State, StoredSchedule, declared_fields
from tickler.model.schedule_json import read_schedule_json, schedule_from_json
from tickler.model.strict_json import read_json
from tickler.model.target import HttpTarget, PythonTarget, Target
from tickler.server.audit_log import record
from tickler.server.authorization import check_target, may_write, schedule_at
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.etags import read_revision, revision_text
from tickler.server.json_body import read_off_loop
from tickler.server.pages.rendering import page, read_form, redirect, schedule_path
from tickler.server.problems import problem_of
from tickler.web.problems import Refused
from tickler.web.redirects import with_query
from tickler.webhooks.encryption import origin_of
from tickler.when import At, iso_utc

PAGE = 30
FAILING = "failing"  # has a dead fire, in whatever state the schedule is
STATES = (FAILING, *(each for each in get_args(State) if each != "unindexed"))  # only a full check finds those
ZONES = sorted(name for name in available_timezones() if "/" in name or name == "UTC")
POLICY_TEXTS = ("delivery", "missed", "overlap")
POLICY_NUMBERS = ("spread", "attempts", "timeout")
KINDS = ("http", "python", "none", "keep")
FIELDS = (
    *("owner", "key", "when", "tz", "kind", "to", "payload", "starts_at", "ends_at", "enabled", "version"),
    *POLICY_TEXTS,
    *POLICY_NUMBERS,
)


@get("/schedules", opt={"scope": "read"})
async def schedules(request: HttpRequest) -> Response[str]:
    who, query, tickler = caller_of(request), request.query_params, context_of(request).tickler
    owner = who.owner or query.get("owner", "").strip() or None
    prefix = query.get("key", "").strip() or None
    state, after = query.get("state") or None, query.get("after") or None
    failing = state == FAILING
    values: dict[str, Any] = {"owner": owner or "", "key": prefix or "", "chosen_state": state or "", "states": STATES}
    values["back"] = with_query("/schedules", owner=owner, key=prefix, state=state, after=after)
    try:
        if prefix and owner is None:
            raise InvalidInput("enter an owner too: a key prefix is searched within one owner")
        if state == "unindexed":
            raise InvalidInput("only a full check finds unindexed schedules: press Check everything on the page Doctor")
        listed = await tickler.schedules.list(
            owner=owner, key_prefix=prefix, state=None if failing else state, failing=failing, limit=PAGE, after=after
        )
    except InvalidInput as error:
        return await page(request, "schedules", "schedules", 422, listed=None, error=str(error), **values)
    health = await tickler.fires.health(each.id for each in listed.items)
    return await page(request, "schedules", "schedules", listed=listed, health=health, error="", **values)


@get("/new-schedule", opt={"scope": "write"})
async def new(request: HttpRequest) -> Response[str]:
    owner = caller_of(request).owner
    kind, to = ("http", "") if owner else ("python", "echo")
    return await _form(request, {"owner": owner or "", "when": "* * * * *", "tz": "UTC", "kind": kind, "to": to})


@get("/schedules/{owner:str}/{key:str}/edit", opt={"scope": "write"})
async def edit(request: HttpRequest) -> Response[str]:
    stored = await schedule_at(request)
    if not may_write(caller_of(request), stored.target):
        raise Refused(403, "the target is not a URL, and your token cannot write such a target: ask the operator of the service")
    return await _form(request, _fields(stored) | {"payload": await payload_text(request, stored)})


@post("/new-schedule", opt={"scope": "write"}, status_code=200)
async def create(request: HttpRequest) -> Response[Any]:
    return await _save(request, await read_form(request), None)


@post("/schedules/{owner:str}/{key:str}/edit", opt={"scope": "write"}, status_code=200)
async def save(request: HttpRequest) -> Response[Any]:
    fields, stored = await read_form(request), await schedule_at(request)
    return await _save(request, {**fields, "owner": stored.owner, "key": stored.key}, stored)


HANDLERS = [schedules, new, edit, create, save]


async def _save(request: HttpRequest, fields: dict[str, str], stored: StoredSchedule | None) -> Response[Any]:
    service, who = context_of(request), caller_of(request)
    try:
        size = sum(len(text) for text in fields.values())
        schedule = await read_off_loop(request, size, lambda: _declared(fields, stored))
        if not who.can_see(schedule.owner):
            raise Refused(422, "is not yours: your token is limited to another owner", "owner")
        check_target(who, schedule.target)
        version: Expected = 0 if stored is None else read_revision(fields.get("version", ""))
        done = await service.tickler.schedules.update(schedule, version=version)
    except VersionConflict:
        if stored is None:
            return await _form(request, fields, stored, {"key": "already exists: open that schedule to edit it"})
        changed = "Somebody else changed this schedule after you opened the form. Nothing was saved."
        return await _form(request, fields, stored, {"form": changed})
    except TicklerError as error:
        problem = problem_of(error)
        if problem.status >= 500:
            raise
        return await _form(request, fields, stored, {_field_at_fault(problem.field): problem.detail})
    await record(request, "put", owner=done.owner, key=done.key, detail=f"version {done.version}")
    return redirect(schedule_path(done.owner, done.key), "put")


async def _form(
    request: HttpRequest, fields: Mapping[str, str], stored: StoredSchedule | None = None, errors: Mapping[str, str] | None = None
) -> Response[str]:
    is_new = stored is None and not fields.get("version")
    return await page(
        request, "form", "schedules", 422 if errors else 200,
        fields={name: fields.get(name, "") for name in FIELDS}, errors=errors or {}, zones=ZONES, is_new=is_new,
    )  # fmt: skip


def _field_at_fault(field: str | None) -> str:
    """Return the field of the form that shows an error; "form" if no field is at fault."""
    if field is None:
        return "form"
    if field.startswith("target"):
        return "to"
    name = field.removeprefix("policy.")
    return name if name in FIELDS else "form"


async def payload_text(request: HttpRequest, stored: StoredSchedule) -> str:
    """Format a stored payload; empty if there is none."""

    def read() -> str:
        return "" if held_payload(stored) is None else json.dumps(stored.payload, indent=2, ensure_ascii=False)

    return await read_off_loop(request, payload_bytes(stored), read)


def _kind(target: Target | None) -> tuple[str, str]:
    """Return the kind of a target and its URL or handler, as the form shows them."""
    if isinstance(target, HttpTarget):
        return "http", target.url
    if isinstance(target, PythonTarget):
        return "python", target.handler
    return ("none", "") if target is None else ("keep", "")


def _fields(stored: StoredSchedule) -> dict[str, str]:
    """Return the fields of the form for a stored schedule, without its payload."""
    policy = policy_to_json(stored.policy)
    kind, to = _kind(stored.target)
    shown = {
        "owner": stored.owner,
        "key": stored.key,
        "when": str(stored.when),
        "tz": stored.when.tz,
        "kind": kind,
        "to": to,
        "starts_at": "" if stored.starts_at is None else iso_utc(stored.starts_at),
        "ends_at": "" if stored.ends_at is None else iso_utc(stored.ends_at),
        "enabled": "on" if stored.enabled else "",
        "version": revision_text(stored),
    }
    return shown | {name: str(policy[name]) for name in (*POLICY_TEXTS, *POLICY_NUMBERS) if name in policy}


def _declared(fields: Mapping[str, str], stored: StoredSchedule | None) -> Schedule:
    """Build a schedule from a form. It keeps what the form does not show of the stored one."""
    declared: dict[str, object] = {name: fields.get(name, "").strip() for name in ("owner", "key", "when")}
    declared["tz"] = fields.get("tz", "").strip() or None
    declared["enabled"] = fields.get("enabled") == "on"
    declared["policy"] = _policy(fields, stored)
    for name in ("starts_at", "ends_at"):
        declared[name] = fields.get(name, "").strip() or None
    if text := fields.get("payload", "").strip():
        try:
            declared["payload"] = read_schedule_json(text.encode(errors="surrogatepass"))
        except InvalidInput as error:
            raise Refused(422, f"the payload {error}", "payload") from None
    if stored is not None and stored.delete_after != isinstance(stored.when, At):
        declared["delete_after"] = stored.delete_after
    schedule = schedule_from_json({**declared, "target": None})
    return _with_target(schedule, fields, stored)


def _with_target(schedule: Schedule, fields: Mapping[str, str], stored: StoredSchedule | None) -> Schedule:
    """Set the target. An unchanged one keeps its hidden parts, such as secrets."""
    kind, to = fields.get("kind", ""), fields.get("to", "").strip()
    before = None if stored is None else stored.target
    if kind not in KINDS:
        raise Refused(400, f"must be one of {', '.join(KINDS)}", "kind")
    if kind == "none":
        return schedule
    if kind == "python" and "://" in to:
        raise Refused(422, 'is a URL: choose "POST to a URL" as the target, or give the name of a handler', "target.handler")
    target: Target | None
    if kind == "keep" or (stored is not None and _kind(before) == (kind, to)):
        target = before
    elif kind == "http":
        target = _moved(before, to) if isinstance(before, HttpTarget) else HttpTarget(to)
    else:
        target = PythonTarget(to)
    return Schedule(**{**declared_fields(schedule), "target": target})


def _moved(before: HttpTarget, url: str) -> HttpTarget:
    """Change the URL and keep what the form does not show. Encrypted parts belong to one origin and cannot follow."""
    moved, origin = replace(before, url=url), origin_of(before.url)
    if before.sealed is not None and origin != origin_of(moved.url):
        text = f"headers or secret are encrypted for {origin} alone: keep that origin, or PUT them again through the API"
        raise Refused(422, text, "target.url")
    return moved


def _policy(fields: Mapping[str, str], stored: StoredSchedule | None) -> dict[str, object]:
    policy: dict[str, object] = {} if stored is None else policy_to_json(stored.policy)
    for name in POLICY_TEXTS:
        if text := fields.get(name, "").strip():
            policy[name] = text
    for name in POLICY_NUMBERS:
        if text := fields.get(name, "").strip():
            try:
                policy[name] = read_json(text.encode(errors="surrogatepass"))
            except InvalidInput:
                raise Refused(422, "must be a number", f"policy.{name}") from None
        else:
            policy.pop(name, None)
    return policy
