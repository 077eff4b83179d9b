"""Rendering, forms, redirects and error pages, for all pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Response
from litestar.enums import MediaType
from msgspec.structs import replace

from tickler.errors import ScheduleNotFound
from tickler.observe import human_format
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.middleware.caller import ANONYMOUS, CALLER, Caller
from tickler.server.pages.assets import ASSETS
from tickler.server.pages.time_format import format_time, sentence, time_element, with_times
from tickler.server.pages.timeline import entry_state, fire_state
from tickler.server.problems import problem_of
from tickler.version import VERSION
from tickler.web.redirects import requested_path, with_query

MAX_NAV_COUNT = 99  # dead fires that the navigation counts

NAV = (("now", "/", "Now"), ("forecast", "/forecast", "Forecast"), ("schedules", "/schedules", "Schedules"),
       ("failed", "/failed", "Dead"), ("doctor", "/doctor", "Doctor"), ("audit_log", "/audit", "Audit"))  # fmt: skip
FOR_ALL_OWNERS = frozenset({"forecast", "doctor"})  # hidden from callers who are limited to one owner

# What a page says after a change. The address holds only the name, so that a link cannot put words on the page.
NOTICES = {
    "put": "Saved.",
    "paused": "Paused. The schedule does not fire until you resume it.",
    "resumed": "Resumed. The schedule fires again from now on.",
    "triggered": "{} queued for delivery.",
    "deleted": "Deleted.",
    "retried": "The fire is queued for a retry.",
    "retried-all": "All dead fires are queued for a retry.",
    "retried-some": "The earliest 1,000 dead fires are queued for a retry. More dead fires remain.",
    "cancelled": "Cancelled. The fire will never be delivered.",
    "in": "You are signed in.",
    "out": "You are signed out.",
}


async def page(request: HttpRequest, name: str, section: str, status: int = 200, **values: Any) -> Response[str]:
    """Render the template `name`; `section` is the entry of the navigation that it belongs to."""
    who = _caller_or_nobody(request)
    form_token = await context_of(request).forms.token(who.client_id)
    counts = {}
    if who is not ANONYMOUS:
        dead = await context_of(request).tickler.fires.list(state="dead", owner=who.owner, limit=MAX_NAV_COUNT + 1)
        counts["failed"] = len(dead.items)
    return _render(request, name, section, status, {**values, "form_token": form_token, "counts": counts})


def _render(request: HttpRequest, name: str, section: str, status: int, values: Mapping[str, Any]) -> Response[str]:
    service, who = context_of(request), _caller_or_nobody(request)
    nav = [each for each in NAV if who.owner is None or each[0] not in FOR_ALL_OWNERS]
    now_ms = service.tickler.now_ms()
    shared = {
        "section": section,
        "max_count": MAX_NAV_COUNT,
        "nav": nav if who is not ANONYMOUS else [],
        "who": who,
        "may": {scope: scope in who.scopes for scope in ("read", "write", "operate")},
        "version": VERSION,
        "runs_here": service.runs_here,
        "notice": NOTICES.get(request.query_params.get("notice", ""), "").format(values.get("subject", "One fire")),
        "time": partial(time_element, now_ms=now_ms),
        "format_time": partial(format_time, now_ms=now_ms),
        "with_times": partial(with_times, now_ms=now_ms),
        "sentence": partial(sentence, now_ms=now_ms),
    }
    text = _templates.get_template(f"{name}.html").render({**shared, **values})
    return Response(text, status_code=status, media_type=MediaType.HTML, headers={"cache-control": "no-store"})


def _caller_or_nobody(request: HttpRequest) -> Caller:
    who = request.scope.get(CALLER)
    return who if isinstance(who, Caller) else ANONYMOUS


async def confirmation_page(request: HttpRequest, path: str, label: str, question: str, back: str) -> Response[str]:
    """Ask before a change that cannot be undone. With JavaScript, the browser has asked already and sends `confirmed`."""
    return await page(request, "confirm", "", path=path, label=label, question=question, back=back)


async def read_form(request: HttpRequest) -> dict[str, str]:
    """Return the fields of a form. Its token proves that one of our pages sent it, and not another site."""
    kind, body = request.headers.get("content-type", ""), await request.body()
    return await context_of(request).forms.read(kind, body, caller_of(request).client_id)


def redirect(path: str, notice: str | None = None, **query: str | None) -> Response[bytes]:
    """Let the browser GET this path, and show a notice there."""
    return Response(b"", status_code=303, headers={"location": with_query(path, **query, notice=notice)})


def error_page(request: HttpRequest, error: Exception) -> Response[Any]:
    """Render an error without reading the store, hence without the form to sign out."""
    problem = problem_of(error)
    if problem.status == 401:
        return redirect("/login", next=requested_path(request.scope, without="notice"))
    if isinstance(error, ScheduleNotFound):  # its own remedy is for programmers
        problem = replace(problem, detail=f"there is no schedule {error.owner} / {error.key}: it may have been deleted")
    return _render(request, "error", "", problem.status, {"problem": problem, "form_token": "", "counts": {}})


def schedule_path(owner: str, key: str, *more: str) -> str:
    """Return the path of the page of one schedule."""
    return "/".join(["/schedules", *(quote(each, safe="") for each in (owner, key)), *more])


def at_least(count: int, limit: int) -> str:
    return f"{count:,}+" if count >= limit else f"{count:,}"


def span(ms: int) -> str:
    """Format a duration; seconds below a minute have a fraction."""
    return f"{ms / 1000:.3g} s" if 1_000 <= ms < 60_000 else human_format.span(ms)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tickler.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({"span": span, "at_least": at_least})
    functions = {"schedule_path": schedule_path, "with_query": with_query, "asset": ASSETS.url}
    environment.globals.update({**functions, "entry_state": entry_state, "fire_state": fire_state})
    return environment


_templates = _environment()
