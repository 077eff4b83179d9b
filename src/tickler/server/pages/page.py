"""What all pages share: how one is rendered, what its forms carry, how an error looks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Request, Response
from litestar.enums import MediaType
from markupsafe import Markup, escape

from tickler.clock import to_datetime
from tickler.errors import UnknownTimezone
from tickler.server.pages.assets import url_of
from tickler.server.problems import Refused, problem_of
from tickler.server.service import Asked, caller, service_of
from tickler.server.who import KEY, NOBODY, Who
from tickler.version import VERSION
from tickler.when import When
from tickler.when.zones import load_zone

MOST_FIELDS = 100

NAV = (("now", "/", "Now"), ("forecast", "/forecast", "Forecast"), ("schedules", "/schedules", "Schedules"),
       ("failed", "/failed", "Failed"), ("doctor", "/doctor", "Doctor"), ("deeds", "/deeds", "Log"))  # fmt: skip
FOR_ALL_OWNERS = frozenset({"forecast", "doctor"})  # nothing for whoever is bound to one

# What a page says after something was done; named in the address, so that nobody else's words get there.
SAID = {
    "put": "Saved.",
    "paused": "Paused: it fires no more until it is resumed.",
    "resumed": "Resumed: it fires again from now on.",
    "triggered": "Fired: a worker delivers it now.",
    "deleted": "Deleted.",
    "retried": "Sent again: a worker tries it now.",
    "retried-all": "All of them are sent again.",
    "retried-some": "The earliest 1,000 are sent again; there are more.",
    "cancelled": "Cancelled: it is never delivered.",
    "in": "You are signed in.",
    "out": "You are signed out.",
}


async def page(request: Asked, name: str, here: str, status: int = 200, **values: Any) -> Response[str]:
    """`here` is the part of the page that is open."""
    form_token = await service_of(request).sessions.form_token(_asking(request).token_id)
    return _rendered(request, name, here, status, {**values, "form_token": form_token})


def _rendered(request: Asked, name: str, here: str, status: int, values: Mapping[str, Any]) -> Response[str]:
    service, who = service_of(request), _asking(request)
    nav = [each for each in NAV if who.owner is None or each[0] not in FOR_ALL_OWNERS]
    shared = {
        "here": here,
        "nav": nav if who is not NOBODY else [],
        "who": who,
        "may": {scope: scope in who.scopes for scope in ("read", "write", "operate")},
        "version": VERSION,
        "now_ms": service.tickler.now_ms(),
        "runs_here": service.runs_here,
        "said": SAID.get(request.query_params.get("said", ""), ""),
    }
    text = _templates.get_template(f"{name}.html").render({**shared, **values})
    return Response(text, status_code=status, media_type=MediaType.HTML, headers={"cache-control": "no-store"})


def _asking(request: Asked) -> Who:
    who = request.scope.get(KEY)
    return who if isinstance(who, Who) else NOBODY


async def form_of(request: Asked) -> dict[str, str]:
    """The fields of a form of ours; what another site sends has no token in it that fits."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "this takes a form of the page: use the API under /v1 instead")
    try:
        text = (await request.body()).decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400, "the form does not read: open the page again") from None
    fields = dict(pairs)
    given = fields.pop("form_token", "")
    if not await service_of(request).sessions.is_form_token(given, caller(request).token_id):
        raise Refused(403, "this form is too old, or was not sent by the page: open the page again")
    return fields


def see(path: str, said: str | None = None, **query: str | None) -> Response[bytes]:
    """Go and look there."""
    given = {name: value for name, value in {**query, "said": said}.items() if value}
    where = f"{path}{'&' if '?' in path else '?'}{urlencode(given)}" if given else path
    return Response(b"", status_code=303, headers={"location": where})


def error_page(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Without the form to sign out: nothing is read from the store when something went wrong."""
    problem = problem_of(error)
    if problem.status == 401:
        return see("/login", next=_wanted(request))
    return _rendered(request, "error", "", problem.status, {"problem": problem, "form_token": ""})


def _wanted(request: Asked) -> str | None:
    """Where to go once signed in, as it was written. Nowhere in particular from a form: what it did is not done by looking."""
    if request.method != "GET":
        return None
    path, query = request.scope["raw_path"].partition(b"?")[0].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    kept = "&".join(each for each in query.split("&") if each and not each.startswith("said="))
    return f"{path}?{kept}" if kept else path


def link(owner: str, key: str, *more: str) -> str:
    """To the page of one schedule."""
    return "/".join(["/schedules", *(quote(each, safe="") for each in (owner, key)), *more])


def local(ms: int, when: When) -> str:
    """An instant as people say it where the schedule is."""
    try:
        there = to_datetime(ms).astimezone(load_zone(when.tz).info)
    except UnknownTimezone:
        there = to_datetime(ms)
    return f"{there:%a %d %b %Y, %H:%M:%S}"


def iso(ms: int) -> str:
    return to_datetime(ms).isoformat(timespec="milliseconds")


def utc(ms: int) -> str:
    return f"{to_datetime(ms):%A %d %b, %H:%M} UTC"


def at_least(count: int, most: int) -> str:
    return f"{count:,}+" if count >= most else f"{count:,}"


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def span(ms: int) -> str:
    """How long, in its largest unit."""
    for name, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms >= size:
            return f"{ms / size:.3g} {name}"
    return f"{ms} ms"


def with_code(text: str) -> Markup:
    """What stands between backticks is code; all of it is somebody's text, and escaped."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def _made() -> Environment:
    made = Environment(
        loader=PackageLoader("tickler.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Any] = {
        "local": local,
        "iso": iso,
        "utc": utc,
        "pretty": pretty,
        "span": span,
        "at_least": at_least,
        "with_code": with_code,
    }
    made.filters.update(filters)
    made.globals.update({"link": link, "asset": url_of})
    return made


_templates = _made()
