"""What all pages share: how one is rendered, what its forms carry, how an error looks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Response
from litestar.enums import MediaType
from markupsafe import Markup, escape
from msgspec.structs import replace

from tickler.clock import to_datetime
from tickler.errors import ScheduleNotFound, UnknownTimezone
from tickler.observe import human_format as phrases
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.middleware.caller import ANONYMOUS, CALLER, Caller
from tickler.server.pages.assets import url_of
from tickler.server.problems import Refused, problem_of
from tickler.version import VERSION
from tickler.when import When
from tickler.when.zones import load_zone

MAX_FIELDS = 100
MAX_NAV_COUNT = 99  # dead fires that the navigation counts

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


async def page(request: HttpRequest, name: str, here: str, status: int = 200, **values: Any) -> Response[str]:
    """`here` is the part of the page that is open."""
    who = _asking(request)
    form_token = await context_of(request).sessions.form_token(who.client_id)
    counts = {} if who is ANONYMOUS else {"failed": await _count_dead(request, who.owner)}
    return _rendered(request, name, here, status, {**values, "form_token": form_token, "counts": counts})


async def _count_dead(request: HttpRequest, owner: str | None) -> int:
    """Fires that were given up, no further than one more than is shown."""
    return len((await context_of(request).tickler.fires.list(state="dead", owner=owner, limit=MAX_NAV_COUNT + 1)).items)


def _rendered(request: HttpRequest, name: str, here: str, status: int, values: Mapping[str, Any]) -> Response[str]:
    service, who = context_of(request), _asking(request)
    nav = [each for each in NAV if who.owner is None or each[0] not in FOR_ALL_OWNERS]
    shared = {
        "here": here,
        "max_count": MAX_NAV_COUNT,
        "nav": nav if who is not ANONYMOUS else [],
        "who": who,
        "may": {scope: scope in who.scopes for scope in ("read", "write", "operate")},
        "version": VERSION,
        "now_ms": service.tickler.now_ms(),
        "runs_here": service.runs_here,
        "said": SAID.get(request.query_params.get("said", ""), ""),
    }
    text = _templates.get_template(f"{name}.html").render({**shared, **values})
    return Response(text, status_code=status, media_type=MediaType.HTML, headers={"cache-control": "no-store"})


def _asking(request: HttpRequest) -> Caller:
    who = request.scope.get(CALLER)
    return who if isinstance(who, Caller) else ANONYMOUS


async def ask_first(request: HttpRequest, path: str, label: str, question: str, back: str) -> Response[str]:
    """Before what cannot be undone, unless the form says that it was asked: with JavaScript the page does so by itself."""
    return await page(request, "sure", "", path=path, label=label, question=question, back=back)


async def form_of(request: HttpRequest) -> dict[str, str]:
    """The fields of a form of ours; what another site sends has no token in it that fits."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "this takes a form of the page: use the API under /v1 instead")
    try:
        text = (await request.body()).decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400, "the form does not read: open the page again") from None
    fields = dict(pairs)
    given = fields.pop("form_token", "")
    if not await context_of(request).sessions.is_form_token(given, caller_of(request).client_id):
        raise Refused(403, "this form is too old, or was not sent by the page: open the page again")
    return fields


def see(path: str, said: str | None = None, **query: str | None) -> Response[bytes]:
    """Go and look there."""
    return Response(b"", status_code=303, headers={"location": address(path, **query, said=said)})


def address(path: str, **query: str | None) -> str:
    """A path with what is asked for there."""
    given = urlencode({name: value for name, value in query.items() if value})
    return f"{path}{'&' if '?' in path else '?'}{given}" if given else path


def inside(path: str | None, otherwise: str = "/") -> str:
    """A place of this page, and nowhere else."""
    if path is None or not path.startswith("/") or path.startswith(("//", "/\\")):
        return otherwise
    place, mark, query = path.partition("?")
    return quote(place, safe="/%") + mark + quote(query, safe="%&=+")


def error_page(request: HttpRequest, error: Exception) -> Response[Any]:
    """Without the form to sign out: nothing is read from the store when something went wrong."""
    problem = problem_of(error)
    if problem.status == 401:
        return see("/login", next=_wanted(request))
    if isinstance(error, ScheduleNotFound):  # whose own remedy is for programmers
        problem = replace(problem, detail=f"there is no schedule {error.owner} / {error.key}: it may have been deleted")
    return _rendered(request, "error", "", problem.status, {"problem": problem, "form_token": "", "counts": {}})


def _wanted(request: HttpRequest) -> str | None:
    """Where to go once signed in, as it was written. Nowhere in particular from a form: what it did is not done by looking."""
    if request.method != "GET":
        return None
    path, query = request.scope["raw_path"].partition(b"?")[0].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    kept = "&".join(each for each in query.split("&") if each and not each.startswith("said="))
    return f"{path}?{kept}" if kept else path


def link(owner: str, key: str, *more: str) -> str:
    """To the page of one schedule."""
    return "/".join(["/schedules", *(quote(each, safe="") for each in (owner, key)), *more])


def local(ms: int, when: When, now_ms: int) -> str:
    """An instant as people say it where the schedule is; no seconds or year that go without saying."""
    try:
        zone: tzinfo = load_zone(when.tz).info
    except UnknownTimezone:
        zone = UTC
    there, now = to_datetime(ms).astimezone(zone), to_datetime(now_ms).astimezone(zone)
    year, seconds = "" if there.year == now.year else f" {there.year}", f":{there:%S}" if there.second else ""
    return f"{there:%a} {there.day} {there:%b}{year}, {there:%H:%M}{seconds}"


def iso(ms: int) -> str:
    return to_datetime(ms).isoformat(timespec="milliseconds")


def utc(ms: int) -> str:
    return f"{to_datetime(ms):%A %d %b, %H:%M} UTC"


def at_least(count: int, most: int) -> str:
    return f"{count:,}+" if count >= most else f"{count:,}"


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def span(ms: int) -> str:
    """How long; of less than a minute in seconds with a fraction."""
    return f"{ms / 1000:.3g} s" if 1_000 <= ms < 60_000 else phrases.span(ms)


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
        "span": span,
        "at_least": at_least,
        "with_code": with_code,
    }
    made.filters.update(filters)
    made.globals.update({"link": link, "address": address, "asset": url_of})
    return made


_templates = _made()
